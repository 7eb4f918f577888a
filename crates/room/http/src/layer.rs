//! Waiting rooms as a `tower` layer: finds the room of a request, gets its verdict, and forwards
//! the request or responds.
//!
//! The inner service may be any service; in the product it is the
//! [`ReverseProxy`](anteroom_proxy::reverse_proxy::ReverseProxy). The node's rooms decide about
//! admission. This module takes the request to them and their verdict back:
//!
//! - `route_table` finds the room, `decision` gets its verdict, `at_once` does so without a wait,
//!   `shared_tickets` counts the networks of each ticket;
//! - `headers` adds tickets, and headers for the origin;
//! - `own_paths` responds to the requests of waiting pages, `event_streams` sends them events;
//! - `origins` reports failures of origins to rooms;
//! - `verdict`, `access_log`, `queued_lines`, `counters` and `metrics` record the verdicts.

mod access_log;
mod at_once;
mod counters;
mod decision;
mod event_streams;
mod headers;
mod metrics;
mod origins;
mod own_paths;
mod queued_lines;
mod route_table;
mod shared_tickets;
mod verdict;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use anteroom_config::Config;
use anteroom_node::{Node, Outcome, Pass};
use anteroom_proxy::downstream::connection_table::Claim;
use anteroom_proxy::downstream::drain::DrainSignal;
use anteroom_proxy::upstream::{Origins, Plan};
use anteroom_room::id::VisitorId;
use anteroom_room::queue_position::QueuePosition;
use arc_swap::ArcSwap;
use http::{Method, Request, Response, StatusCode};

use crate::bypass::BypassRequest;
use crate::waiting::{
    Answer, Look, RequestKind, WaitingView, accepts_gzip, language_form, prepare, respond,
};
use access_log::AccessEntry;
use anteroom_proxy::body::{Body, ResponseBody};
use anteroom_proxy::cookies;
use anteroom_proxy::error_page;
use anteroom_proxy::forwarded::Client;
use anteroom_proxy::header_view::HeaderView;
use anteroom_proxy::language;
use anteroom_proxy::path::{Decoding, Readings};
use anteroom_proxy::request_context::{CannotQueue, KnownVisitor, RequestContext, Upstream};
use anteroom_proxy::request_view::RequestView;
use anteroom_proxy::reverse_proxy::expect;
use anteroom_proxy::status::RequestError;
pub use at_once::Passed;
use counters::Counters;
pub use counters::{CountsByRoom, SharedTicketCounts};
use decision::{BegunHere, note_ticket};
use event_streams::EventStreams;
use own_paths::OwnPaths;
pub use own_paths::is_own_path;
use queued_lines::QueuedLines;
pub use route_table::{RoomProblem, RouteTableError};
use route_table::{RoomRoute, RouteTable, RouteTableDraft};
use shared_tickets::SharedTickets;
use verdict::Verdict;

/// Number of headers that a request gets on its way to the origin.
const HEADERS_ADDED: usize = 12;

/// Layer that puts rooms in front of a service.
#[derive(Clone)]
pub struct WaitingRoomLayer {
    gate: Arc<Gate>,
}

struct Gate {
    node: Arc<Node>,
    routes: Arc<ArcSwap<RouteTable>>,
    /// Whether the layer is applied to a service.
    is_applied: AtomicBool,
    counters: Counters,
    shared_tickets: SharedTickets,
    queued_lines: QueuedLines,
    own_paths: OwnPaths,
    origins: Origins<Body>,
    /// Whether all rooms are known. If not, nothing passes to a site.
    are_known: AtomicBool,
}

/// Result of [`WaitingRoomLayer::plan`], to be committed or dropped.
pub struct NextRooms {
    origins: Plan<Body>,
    routes: RouteTableDraft,
}

impl std::fmt::Debug for NextRooms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NextRooms({:?})", self.origins)
    }
}

impl WaitingRoomLayer {
    /// Returns a layer for the rooms of `config`, which run in `node`. `draining` signals the end
    /// of the process.
    ///
    /// # Errors
    ///
    /// [`RouteTableError`] with all mistakes in the rooms' paths, bypass rules and origins.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn new(
        node: Arc<Node>,
        config: &Config,
        draining: DrainSignal,
    ) -> Result<Self, RouteTableError> {
        let counters = Counters::default();
        let origins = Origins::new(origins::limits(&config.server));
        let plan = origins::plan(&origins, config)?;
        let draft = RouteTableDraft::new(config, &plan)?;
        let routes = RouteTable::new(&node, draft, &counters)?;
        let routes = Arc::new(ArcSwap::from_pointee(routes));
        origins.commit(plan);
        let connections = config.server.size_limits.connections;
        prepare();
        tokio::spawn(origins::watch(Arc::downgrade(&routes)));
        let gate = Arc::new(Gate {
            node,
            routes,
            is_applied: AtomicBool::new(false),
            counters,
            shared_tickets: SharedTickets::default(),
            queued_lines: QueuedLines::default(),
            own_paths: OwnPaths::new(EventStreams::new(connections, draining)),
            origins,
            are_known: AtomicBool::new(true),
        });
        Ok(Self { gate })
    }

    /// Checks the rooms of `config` for mistakes that only this crate can find.
    ///
    /// # Errors
    ///
    /// As [`WaitingRoomLayer::new`].
    pub fn check(config: &Config) -> Result<(), RouteTableError> {
        RouteTable::check(config)
    }

    /// Prepares a changed configuration with all steps that may fail, and changes nothing.
    ///
    /// # Errors
    ///
    /// As [`WaitingRoomLayer::new`].
    pub fn plan(&self, config: &Config) -> Result<NextRooms, RouteTableError> {
        let origins = origins::plan(&self.gate.origins, config)?;
        let routes = RouteTableDraft::new(config, &origins)?;
        Ok(NextRooms { origins, routes })
    }

    /// Puts a plan into effect for new requests. The node already runs its rooms.
    ///
    /// # Errors
    ///
    /// [`RouteTableError`] if the node does not run one of the rooms. Nothing changes then.
    pub fn commit(&self, plan: NextRooms) -> Result<(), RouteTableError> {
        let gate = &self.gate;
        let routes = RouteTable::new(&gate.node, plan.routes, &gate.counters)?;
        gate.origins.commit(plan.origins);
        gate.routes.store(Arc::new(routes));
        Ok(())
    }

    /// Notes whether all rooms are known: those of the file, and those that were made over the API.
    /// Until then, no request to a site passes, because a room that is not known may cover it.
    pub fn set_known(&self, are_known: bool) {
        self.gate.are_known.store(are_known, Ordering::Relaxed);
    }

    /// Returns how often origins decode a path, by the configuration in effect.
    #[must_use]
    pub fn decoding(&self) -> Decoding {
        self.gate.routes.load().decoding
    }

    /// Whether the layer is applied to a service. Without one, waiting pages get no responses.
    #[must_use]
    pub fn has_rooms(&self) -> bool {
        self.gate.is_applied.load(Ordering::Relaxed)
    }

    /// Returns the visitor whose valid ticket a request carries. `None` without a room or a ticket.
    #[must_use]
    pub fn visitor_of(
        &self,
        client: &Client,
        readings: &Readings<'_>,
        headers: HeaderView<'_>,
    ) -> Option<KnownVisitor> {
        let routes = self.gate.routes.load();
        let route = routes.find(client.host(), readings).ok()??;
        let tickets = cookies::values(headers, &route.cookie_name);
        let (visitor, is_active) = route.room.visitor_of(&tickets)?;
        Some(KnownVisitor {
            id: visitor.0,
            is_active,
        })
    }
}

impl<S> tower::Layer<S> for WaitingRoomLayer {
    type Service = WaitingRoom<S>;

    fn layer(&self, inner: S) -> WaitingRoom<S> {
        self.gate.is_applied.store(true, Ordering::Relaxed);
        WaitingRoom {
            gate: Arc::clone(&self.gate),
            inner,
        }
    }
}

/// Service with rooms in front.
#[derive(Clone)]
pub struct WaitingRoom<S> {
    gate: Arc<Gate>,
    inner: S,
}

impl<S, B, R> tower::Service<Request<B>> for WaitingRoom<S>
where
    S: tower::Service<Request<B>, Response = Response<R>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    B: Send + 'static,
    R: ResponseBody,
{
    type Response = Response<R>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The service that was found ready serves this request; the clone waits for its turn.
        let next = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, next);
        let gate = Arc::clone(&self.gate);
        Box::pin(async move { Ok(gate.serve(request, inner).await) })
    }
}

impl Gate {
    async fn serve<S, B, R>(&self, request: Request<B>, inner: S) -> Response<R>
    where
        S: tower::Service<Request<B>, Response = Response<R>, Error = Infallible>,
        R: ResponseBody,
    {
        // The body need not be `Sync`, so no reference to it may cross an await point.
        let (mut head, body) = request.into_parts();
        let begun = head.extensions.remove();
        let request = Request::from_parts(head, ());
        let client = RequestContext::of(&request).map(|context| context.client.address);
        let mut access = AccessEntry::new(request.method(), request.uri().path(), client);
        let response = self.decide(request, body, inner, begun, &mut access).await;
        access.set_status(response.status());
        response
    }

    async fn decide<S, B, R>(
        &self,
        request: Request<()>,
        body: B,
        inner: S,
        begun: Option<BegunHere>,
        access: &mut AccessEntry,
    ) -> Response<R>
    where
        S: tower::Service<Request<B>, Response = Response<R>, Error = Infallible>,
        R: ResponseBody,
    {
        let routes = self.routes.load_full();
        let Some(view) = RequestView::of(&request) else {
            return own_response(reject(RequestError::BadRequest, request.headers().into()));
        };
        let reject = |refusal| own_response(reject(refusal, view.headers));
        if self.may_be_of_unknown_room(&routes, view.client.host()) {
            return reject(RequestError::Unavailable);
        }
        if is_own_path(view.path) {
            let noting = (&mut *access, &self.queued_lines);
            let response = self.own_paths.respond(&routes, &view, begun, noting);
            return own_response(response.await);
        }
        let Ok(readings) = Readings::under(routes.decoding, view.path) else {
            return reject(RequestError::BadRequest);
        };
        let Ok(found) = routes.find(view.client.host(), &readings) else {
            return reject(RequestError::BadRequest);
        };
        let Some(route) = found else {
            return match routes.origin_of(view.client.host()) {
                Some(upstream) => {
                    let request = request.map(|()| body);
                    forward_bypassed(request, inner, upstream, access, Verdict::NoRoom).await
                }
                None => reject(RequestError::NotFound),
            };
        };
        access.set_room(route);
        if route.room.is_suspended().await {
            let upstream = route.upstream.clone();
            let request = request.map(|()| body);
            return forward_bypassed(request, inner, upstream, access, Verdict::Suspended).await;
        }
        if route.bypass.allow(&readings, &BypassRequest::of(&view)) {
            let upstream = route.upstream.clone();
            let request = request.map(|()| body);
            return forward_bypassed(request, inner, upstream, access, Verdict::Bypass).await;
        }
        if expect::is_unknown(request.headers()) {
            // Rejected before it takes a slot: it would not reach the origin.
            return reject(RequestError::ExpectationFailed);
        }
        let kind = kind_of(route, &view);
        match self.shared_tickets.decide(route, &view, kind, begun).await {
            // Only a poll without a ticket gets this outcome, and this request is none.
            Outcome::MayCome => reject(RequestError::Unavailable),
            Outcome::Pass(pass) => {
                access.set_pass(&pass);
                note_ticket(&view, true);
                let scheme = view.client.scheme;
                let response = forward_admitted(route, &pass, request.map(|()| body), inner).await;
                headers::finish(route, &pass, scheme, response).await
            }
            Outcome::Queue {
                ticket,
                visitor,
                position,
            } => {
                let waiting = (ticket, visitor, position);
                own_response(self.queued(route, &view, kind, waiting, access))
            }
        }
    }

    /// Whether a room that is not known yet may cover a request to this host.
    fn may_be_of_unknown_room(&self, routes: &RouteTable, host: &str) -> bool {
        !self.are_known.load(Ordering::Relaxed) && routes.has_site(host)
    }

    /// Builds the response to a waiting visitor.
    fn queued(
        &self,
        route: &RoomRoute,
        request: &RequestView<'_>,
        kind: RequestKind,
        (ticket, visitor, position): (Option<String>, Option<VisitorId>, QueuePosition),
        access: &mut AccessEntry,
    ) -> Response<Body> {
        note_ticket(request, false);
        let room = route.current();
        let view = WaitingView {
            host: request.client.host(),
            reference: route.reference(request.headers, visitor),
            ..room.view(position, route.language(request.headers))
        };
        access.set_queued(&view, &self.queued_lines);
        let shape = Answer {
            kind,
            is_head: *request.method == Method::HEAD,
            has_gzip: accepts_gzip(request.headers),
            queueing_status: status_of(room.config.queueing_status_code),
            non_navigation_status: status_of(room.config.non_navigation_status_code),
        };
        let entry = match kind {
            RequestKind::PageAfterPost => entry_after_form(route, request),
            _ => String::new(),
        };
        let look = Look {
            template: route.template(),
            target: request.target,
            entry: &entry,
            brand: route.brand.as_ref(),
        };
        let response = respond(&view, shape, look).map(Body::full);
        headers::add_waiting(route, response, ticket, request.client.scheme, &view)
    }
}

/// Returns the kind of a request to a room.
fn kind_of(route: &RoomRoute, request: &RequestView<'_>) -> RequestKind {
    let json_enabled = route.room.config().json_response_enabled;
    RequestKind::of(request.method, request.headers, json_enabled)
}

/// Forwards a visitor's request to the origin, with headers about the visitor.
async fn forward_admitted<S, B, R>(
    route: &RoomRoute,
    pass: &Pass,
    mut request: Request<B>,
    inner: S,
) -> Response<R>
where
    S: tower::Service<Request<B>, Response = Response<R>, Error = Infallible>,
    R: ResponseBody,
{
    // Room for the headers that are added here and on the way, in one allocation.
    request.headers_mut().reserve(HEADERS_ADDED);
    headers::add_visitor(route, pass, request.headers_mut());
    forward(request, inner, route.upstream.clone()).await
}

/// Forwards a request that needs no verdict to the origin, without our own cookies.
async fn forward_bypassed<S, B, R>(
    request: Request<B>,
    inner: S,
    upstream: Upstream,
    access: &mut AccessEntry,
    verdict: Verdict,
) -> Response<R>
where
    S: tower::Service<Request<B>, Response = Response<R>, Error = Infallible>,
    R: ResponseBody,
{
    let context = RequestContext::of(&request);
    let connection = context.and_then(|context| context.connection.as_ref());
    if connection.is_some_and(Claim::needs_ticket) {
        let (headers, default) = (request.headers(), upstream.language.default);
        let refusal = RequestError::Unavailable;
        return own_response(error_page::error_response_or(headers, default, refusal));
    }
    access.set_verdict(verdict);
    let mut response = forward(request, inner, upstream).await;
    // Commands are meant for us, even if there is no session to end.
    headers::take_commands(response.headers_mut());
    response
}

async fn forward<S, B, R>(
    mut request: Request<B>,
    mut inner: S,
    mut upstream: Upstream,
) -> Response<R>
where
    S: tower::Service<Request<B>, Response = Response<R>, Error = Infallible>,
    R: ResponseBody,
{
    if RequestContext::of(&request).is_some_and(|context| context.is_over_limit) {
        return cannot_wait();
    }
    upstream.language.chosen = language::chosen(request.headers());
    cookies::without(request.headers_mut(), cookies::PREFIX);
    if let Some(context) = RequestContext::of_mut(&mut request) {
        context.upstream = Some(upstream);
    }
    let Ok(response) = inner.call(request).await;
    response
}

/// Returns where a visitor enters who sent a form and met the queue: the page with the form, or the
/// room's own path. A GET on the address of the form would be something else than was sent.
fn entry_after_form(route: &RoomRoute, request: &RequestView<'_>) -> String {
    let from = language_form::referer(request.headers, request.client.host());
    let path = |target: &str| target.split('?').next().unwrap_or_default().to_owned();
    let from = from.filter(|from| path(from) != request.path);
    from.unwrap_or_else(|| {
        let route = route.config.routes.first();
        route.map_or("/", |route| &route.path).to_owned()
    })
}

/// Builds the response to a request that had to wait and cannot.
fn cannot_wait<R: ResponseBody>() -> Response<R> {
    let mut response = Response::new(R::from_own(Body::empty()));
    *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    response.extensions_mut().insert(CannotQueue);
    response
}

fn reject(refusal: RequestError, headers: HeaderView<'_>) -> Response<Body> {
    error_page::error_response(headers, refusal)
}

/// Converts a response of the rooms themselves.
fn own_response<R: ResponseBody>(response: Response<Body>) -> Response<R> {
    response.map(R::from_own)
}

/// Converts the status of waiting responses, which was checked when the config was read.
fn status_of(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::OK)
}
