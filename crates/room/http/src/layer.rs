//! What happens to a request: find its room, ask who may pass, take it to the origin or answer.
//!
//! A `tower` layer: what stands behind it is any service that answers requests, in the product the
//! [`ReverseProxy`](anteroom_proxy::reverse_proxy::ReverseProxy). Who goes in is decided by the
//! node's rooms; this file carries the question there and the answer back:
//!
//! - `route_table` finds the room, `decision` asks it, `shared_tickets` counts who shares a ticket;
//! - `headers` adds tickets and what the origin is told;
//! - `own_paths` answers what waiting pages ask, `event_streams` tells them to ask;
//! - `origins` tells rooms how their origins are;
//! - `verdict`, `access_log`, `queued_lines`, `counters` and `metrics` say what was decided.

mod access_log;
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
use anteroom_node::{Intent, Node, Outcome, Pass};
use anteroom_proxy::downstream::connection_table::Claim;
use anteroom_proxy::downstream::drain::DrainSignal;
use anteroom_proxy::upstream::{Origins, Plan};
use anteroom_room::decision::QueuePosition;
use arc_swap::ArcSwap;
use http::{HeaderMap, Method, Request, Response, StatusCode};

use crate::bypass::BypassRequest;
use crate::waiting::{Answer, Look, RequestKind, prepare, respond};
use access_log::AccessEntry;
use anteroom_proxy::body::{AnswerBody, Body};
use anteroom_proxy::cookies;
use anteroom_proxy::error_page;
use anteroom_proxy::forwarded::{Client, Scheme};
use anteroom_proxy::language;
use anteroom_proxy::path::{Decoding, Readings};
use anteroom_proxy::request_context::{CannotWait, KnownVisitor, RequestContext, Upstream};
use anteroom_proxy::reverse_proxy::expect;
use anteroom_proxy::status::Refusal;
use counters::Counters;
pub use counters::{CountsByRoom, SharedTicketCounts};
use decision::{intent_of, note_ticket};
use event_streams::EventStreams;
use own_paths::OwnPaths;
pub use own_paths::is_own_path;
use queued_lines::QueuedLines;
pub use route_table::{RoomProblem, RouteTableError};
use route_table::{RoomRoute, RouteTable, RouteTableDraft};
use shared_tickets::SharedTickets;
use verdict::Verdict;

/// As many headers as a request is given on its way to the origin.
const HEADERS_ADDED: usize = 12;

/// Puts rooms in front of a service.
#[derive(Clone)]
pub struct WaitingRoomLayer {
    gate: Arc<Gate>,
}

struct Gate {
    node: Arc<Node>,
    routes: Arc<ArcSwap<RouteTable>>,
    /// Whether a service is behind it.
    stands: AtomicBool,
    counters: Counters,
    shared_tickets: SharedTickets,
    queued_lines: QueuedLines,
    own_paths: OwnPaths,
    origins: Origins<Body>,
}

/// What [`WaitingRoomLayer::plan`] found; to be let hold, or thrown away.
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
    /// A layer for the rooms of `config`, which run in `node`, until `draining` says that the
    /// process ends.
    ///
    /// # Errors
    ///
    /// [`RouteTableError`] with everything that is wrong with the rooms' paths, bypass rules and
    /// origins.
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
            stands: AtomicBool::new(false),
            counters,
            shared_tickets: SharedTickets::default(),
            queued_lines: QueuedLines::default(),
            own_paths: OwnPaths::new(EventStreams::new(connections, draining)),
            origins,
        });
        Ok(Self { gate })
    }

    /// Says what is wrong with the rooms of `config`, as far as only this crate can know.
    ///
    /// # Errors
    ///
    /// As [`WaitingRoomLayer::new`].
    pub fn check(config: &Config) -> Result<(), RouteTableError> {
        RouteTable::check(config)
    }

    /// Reads and finds out everything about a changed configuration that may go wrong; nothing has
    /// changed yet.
    ///
    /// # Errors
    ///
    /// As [`WaitingRoomLayer::new`].
    pub fn plan(&self, config: &Config) -> Result<NextRooms, RouteTableError> {
        let origins = origins::plan(&self.gate.origins, config)?;
        let routes = RouteTableDraft::new(config, &origins)?;
        Ok(NextRooms { origins, routes })
    }

    /// Lets a plan hold for requests from now on. The node runs its rooms already.
    ///
    /// # Errors
    ///
    /// [`RouteTableError`] if the node does not run one of them; nothing changes then.
    pub fn commit(&self, plan: NextRooms) -> Result<(), RouteTableError> {
        let gate = &self.gate;
        let routes = RouteTable::new(&gate.node, plan.routes, &gate.counters)?;
        gate.origins.commit(plan.origins);
        gate.routes.store(Arc::new(routes));
        Ok(())
    }

    /// How often origins are taken to decode a path, by the configuration that holds now.
    #[must_use]
    pub fn decoding(&self) -> Decoding {
        self.gate.routes.load().decoding
    }

    /// Whether it stands before a service: before it does, nobody answers waiting pages.
    #[must_use]
    pub fn stands(&self) -> bool {
        self.gate.stands.load(Ordering::Relaxed)
    }

    /// Who shows a good ticket of the room that covers a request; `None` also where no room does.
    #[must_use]
    pub fn visitor_of(
        &self,
        client: &Client,
        readings: &Readings<'_>,
        headers: &HeaderMap,
    ) -> Option<KnownVisitor> {
        let routes = self.gate.routes.load();
        let route = routes.find(client.host(), readings).ok()??;
        let tickets = cookies::values(headers, &route.cookie_name);
        let (visitor, is_inside) = route.room.visitor_of(&tickets)?;
        Some(KnownVisitor {
            id: visitor.0,
            is_inside,
        })
    }
}

impl<S> tower::Layer<S> for WaitingRoomLayer {
    type Service = WaitingRoom<S>;

    fn layer(&self, inner: S) -> WaitingRoom<S> {
        self.gate.stands.store(true, Ordering::Relaxed);
        WaitingRoom {
            gate: Arc::clone(&self.gate),
            inner,
        }
    }
}

/// A service with rooms in front.
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
    R: AnswerBody,
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
        R: AnswerBody,
    {
        // The body may be one that only one thread at a time may look at.
        let (head, body) = request.into_parts();
        let request = Request::from_parts(head, ());
        let mut access = AccessEntry::of(&request, &self.queued_lines);
        let response = self.decide(request, body, inner, &mut access).await;
        access.answered(response.status());
        response
    }

    async fn decide<S, B, R>(
        &self,
        request: Request<()>,
        body: B,
        inner: S,
        access: &mut AccessEntry<'_>,
    ) -> Response<R>
    where
        S: tower::Service<Request<B>, Response = Response<R>, Error = Infallible>,
        R: AnswerBody,
    {
        let routes = self.routes.load_full();
        let client = RequestContext::of(&request).map(|context| context.client.clone());
        let Some(client) = client else {
            return own(refuse(Refusal::BadRequest, request.headers()));
        };
        if let Some(answer) = self
            .own_paths
            .respond(&routes, &request, &client, access)
            .await
        {
            return own(answer);
        }
        let Ok(readings) = Readings::under(routes.decoding, request.uri().path()) else {
            return own(refuse(Refusal::BadRequest, request.headers()));
        };
        let Ok(found) = routes.find(client.host(), &readings) else {
            return own(refuse(Refusal::BadRequest, request.headers()));
        };
        let Some(route) = found else {
            return match routes.origin_of(client.host()) {
                Some(upstream) => {
                    let request = request.map(|()| body);
                    pass_by(request, inner, upstream, access, Verdict::NoRoom).await
                }
                None => own(refuse(Refusal::NotFound, request.headers())),
            };
        };
        access.enter(route);
        if route.room.is_suspended().await {
            let upstream = route.upstream.clone();
            let request = request.map(|()| body);
            return pass_by(request, inner, upstream, access, Verdict::Suspended).await;
        }
        let question = BypassRequest {
            method: request.method(),
            host: client.host(),
            address: client.address,
            query: request.uri().query().unwrap_or_default(),
            headers: request.headers(),
        };
        if route.bypass.allow(&readings, &question) {
            let upstream = route.upstream.clone();
            let request = request.map(|()| body);
            return pass_by(request, inner, upstream, access, Verdict::Bypass).await;
        }
        if expect::is_unknown(request.headers()) {
            // Before an admission is spent on it: it does not reach the origin.
            return own(refuse(Refusal::ExpectationFailed, request.headers()));
        }
        let json_enabled = route.room.config().json_response_enabled;
        let kind = RequestKind::of(request.method(), request.headers(), json_enabled);
        let outcome = self
            .shared_tickets
            .decide(route, &request, client.address, kind.is_page());
        match outcome.await {
            // Only looks are answered so; nobody asked for one here.
            Outcome::MayCome => own(refuse(Refusal::Unavailable, request.headers())),
            Outcome::Pass(pass) => {
                access.pass(&pass);
                note_ticket(&request, true);
                let answer = let_in(route, &pass, request.map(|()| body), inner).await;
                headers::finish(route, &pass, client.scheme, answer).await
            }
            Outcome::Queue { ticket, place } => {
                note_ticket(&request, false);
                let scheme = client.scheme;
                own(self.queued(route, &request, kind, (ticket, place), scheme, access))
            }
        }
    }

    /// The response to somebody who waits.
    fn queued(
        &self,
        route: &RoomRoute,
        request: &Request<()>,
        kind: RequestKind,
        (ticket, place): (Option<String>, QueuePosition),
        scheme: Scheme,
        access: &mut AccessEntry<'_>,
    ) -> Response<Body> {
        let holds = route.holds();
        let view = holds.view(place, route.language(request.headers()));
        access.queue(&view);
        let answer = Answer {
            kind,
            is_head: request.method() == Method::HEAD,
            queueing_status: status_of(holds.config.queueing_status_code),
            non_navigation_status: status_of(holds.config.non_navigation_status_code),
        };
        let response = respond(&view, answer, look_of(route, request)).map(Body::full);
        headers::hand_out(route, response, ticket, scheme, &view)
    }
}

/// On to the origin, with what it is told about the visitor.
async fn let_in<S, B, R>(
    route: &RoomRoute,
    pass: &Pass,
    mut request: Request<B>,
    inner: S,
) -> Response<R>
where
    S: tower::Service<Request<B>, Response = Response<R>, Error = Infallible>,
    R: AnswerBody,
{
    // What is added here and on the way, without growing twice.
    request.headers_mut().reserve(HEADERS_ADDED);
    headers::introduce(route, pass, request.headers_mut());
    forward(request, inner, route.upstream.clone()).await
}

/// On to the origin, untouched but for our own cookies.
async fn pass_by<S, B, R>(
    request: Request<B>,
    inner: S,
    upstream: Upstream,
    access: &mut AccessEntry<'_>,
    verdict: Verdict,
) -> Response<R>
where
    S: tower::Service<Request<B>, Response = Response<R>, Error = Infallible>,
    R: AnswerBody,
{
    let context = RequestContext::of(&request);
    let connection = context.and_then(|context| context.connection.as_ref());
    if connection.is_some_and(Claim::needs_ticket) {
        return own(refuse(Refusal::Unavailable, request.headers()));
    }
    access.say(verdict);
    let mut response = forward(request, inner, upstream).await;
    // They are meant for us, also where there is no session to end.
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
    R: AnswerBody,
{
    if intent_of(&request) == Intent::Wait {
        return cannot_wait();
    }
    upstream.speech.chosen = language::chosen(request.headers());
    cookies::without(request.headers_mut(), cookies::PREFIX);
    if let Some(context) = RequestContext::of_mut(&mut request) {
        context.upstream = Some(upstream);
    }
    let Ok(response) = inner.call(request).await;
    response
}

/// What the page looks like that is the answer to `request`.
fn look_of<'a>(route: &'a RoomRoute, request: &'a Request<()>) -> Look<'a> {
    let target = request.uri().path_and_query();
    Look {
        template: route.template.as_ref(),
        target: target.map_or("/", |target| target.as_str()),
    }
}

/// The answer instead of passing on whoever was to wait.
fn cannot_wait<R: AnswerBody>() -> Response<R> {
    let mut response = Response::new(R::from_own(Body::empty()));
    *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    response.extensions_mut().insert(CannotWait);
    response
}

fn refuse(refusal: Refusal, headers: &HeaderMap) -> Response<Body> {
    error_page::answer_to(headers, refusal)
}

/// An answer of the rooms themselves.
fn own<R: AnswerBody>(response: Response<Body>) -> Response<R> {
    response.map(R::from_own)
}

/// The status of waiting answers, checked when the config was read.
fn status_of(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::OK)
}
