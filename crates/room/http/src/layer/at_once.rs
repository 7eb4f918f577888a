//! Verdicts without a wait, for requests on the fast path.
//!
//! A request passes here if its visitor is active, a bypass rule allows it, or no room covers it.
//! Other visitors are admitted here or get their page or position, unless that takes a wait. What
//! else there is takes the layers: what was begun here goes on there.

use std::sync::Arc;

use anteroom_node::{BegunDecision, Intent, Look, Outcome, Pass};
use anteroom_proxy::body::Body;
use anteroom_proxy::cookies;
use anteroom_proxy::downstream::connection_table::Claim;
use anteroom_proxy::fast_path::{AtOnce, PassedRequest, write_line};
use anteroom_proxy::forwarded::Scheme;
use anteroom_proxy::path::Readings;
use anteroom_proxy::request_context::Upstream;
use anteroom_proxy::request_view::RequestView;
use anteroom_proxy::reverse_proxy::OriginOutcome;
use http::{Extensions, Response, StatusCode};

use super::access_log::AccessEntry;
use super::decision::{BegunHere, arrival_of, note_ticket};
use super::own_paths::{self, is_own_path};
use super::route_table::{RoomRoute, RouteTable};
use super::verdict::Verdict;
use super::{WaitingRoomLayer, headers, kind_of};
use crate::bypass::BypassRequest;
use crate::waiting::position_endpoint;

/// Request that passes.
pub struct Passed {
    routes: Arc<RouteTable>,
    /// Room, by its number, and the visitor; `None` for a request without a verdict about one.
    visitor: Option<(usize, Pass)>,
    upstream: Upstream,
    scheme: Scheme,
    access: AccessEntry,
}

impl WaitingRoomLayer {
    /// Decides about a request.
    #[must_use]
    pub fn decide_at_once(&self, request: &RequestView<'_>) -> AtOnce<Passed> {
        let routes = self.gate.routes.load_full();
        if self.gate.may_be_of_unknown_room(&routes, request.host) {
            return AtOnce::layers();
        }
        let decision = if is_own_path(request.path) {
            self.poll_at_once(&routes, request)
        } else {
            self.visit_at_once(routes, request)
        };
        decision.unwrap_or_else(AtOnce::layers)
    }

    /// Decides about a request to the site; `None` if nothing has happened.
    fn visit_at_once(
        &self,
        routes: Arc<RouteTable>,
        request: &RequestView<'_>,
    ) -> Option<AtOnce<Passed>> {
        let readings = Readings::under(routes.decoding, request.path).ok()?;
        let found = routes.find_number(request.host, &readings).ok()?;
        let Some(number) = found else {
            let upstream = routes.origin_of(request.host)?;
            let passed = Passed::without_visitor(routes, upstream, Verdict::NoRoom, request);
            return passed.map(AtOnce::Pass);
        };
        let route = routes.room(number);
        let config = route.room.config();
        let needs_more = config.suspended || config.max_addresses_per_ticket.is_some();
        if needs_more || !route.upstream.group.takes_plain_http1() {
            return None;
        }
        if route.bypass.allow(&readings, &BypassRequest::of(request)) {
            let upstream = route.upstream.clone();
            let same = Arc::clone(&routes);
            let mut passed = Passed::without_visitor(same, upstream, Verdict::Bypass, request)?;
            passed.access.set_room(route);
            return Some(AtOnce::Pass(passed));
        }
        let tickets = cookies::values(request.headers, &route.cookie_name);
        let is_navigation = || kind_of(route, request).is_page();
        let opened = match route.room.pass_at_once(&tickets, is_navigation) {
            Look::Pass(pass) => {
                return Some(AtOnce::Pass(Passed::new(&routes, number, pass, request)));
            }
            Look::Other(opened) => opened,
            Look::NotJoined => return None,
        };
        // A body would have to be read before a response.
        if !request.is_read() || request.is_over_limit {
            return None;
        }
        let kind = kind_of(route, request);
        let arrival = arrival_of(request, &tickets, Some(kind), Intent::Enter);
        Some(match route.room.begin(opened, &arrival) {
            Err(decision) => layers_with(route, decision),
            Ok(Outcome::Pass(pass)) => {
                self.gate.shared_tickets.note(route, request, &pass);
                AtOnce::Pass(Passed::new(&routes, number, pass, request))
            }
            Ok(Outcome::Queue {
                ticket,
                visitor,
                position,
            }) => {
                let mut access = AccessEntry::of(request);
                access.set_room(route);
                let waiting = (ticket, visitor, position);
                let response = self.gate.queued(route, request, kind, waiting, &mut access);
                access.set_status(response.status());
                AtOnce::Respond(Box::new(response))
            }
            // Only a poll without a ticket gets this outcome, and this request is none.
            Ok(Outcome::MayCome) => AtOnce::layers(),
        })
    }

    /// Decides about a poll that does not ask for a wait; `None` if nothing has happened.
    fn poll_at_once(
        &self,
        routes: &RouteTable,
        request: &RequestView<'_>,
    ) -> Option<AtOnce<Passed>> {
        let is_poll = request.path == position_endpoint::PATH && request.is_read();
        if !is_poll || position_endpoint::intent_of(request.query) != Intent::Poll {
            return None;
        }
        let route = own_paths::named(routes, request)?;
        if route.room.config().suspended {
            return None;
        }
        let tickets = cookies::values(request.headers, &route.cookie_name);
        let arrival = arrival_of(request, &tickets, None, Intent::Poll);
        let begun = route.room.open_and_begin(&arrival)?;
        Some(match begun {
            Err(decision) => layers_with(route, decision),
            Ok(outcome) => {
                let gate = &self.gate;
                let mut access = AccessEntry::of(request);
                access.set_room(route);
                let noting = (&mut access, &gate.queued_lines);
                let response = gate.own_paths.position_of(route, request, outcome, noting);
                access.set_status(response.status());
                AtOnce::Respond(Box::new(response))
            }
        })
    }
}

/// Leaves a decision that waits to the layers.
fn layers_with<P>(route: &RoomRoute, decision: Box<BegunDecision>) -> AtOnce<P> {
    let room = Arc::clone(&route.room);
    let mut extensions = Extensions::new();
    extensions.insert(BegunHere { room, decision });
    AtOnce::Layers(extensions)
}

impl Passed {
    /// Returns the request of an active visitor.
    fn new(routes: &Arc<RouteTable>, number: usize, pass: Pass, request: &RequestView<'_>) -> Self {
        note_ticket(request, true);
        let route = routes.room(number);
        let mut access = AccessEntry::of(request);
        access.set_room(route);
        access.set_pass(&pass);
        Self {
            upstream: route.upstream.clone(),
            visitor: Some((number, pass)),
            scheme: request.client.scheme,
            access,
            routes: Arc::clone(routes),
        }
    }

    /// Returns a request that passes for any sender; `None` if its connection needs a ticket.
    fn without_visitor(
        routes: Arc<RouteTable>,
        upstream: Upstream,
        verdict: Verdict,
        request: &RequestView<'_>,
    ) -> Option<Self> {
        let needs_ticket = request.connection.is_some_and(Claim::needs_ticket);
        if needs_ticket || !upstream.group.takes_plain_http1() {
            return None;
        }
        let mut access = AccessEntry::of(request);
        access.set_verdict(verdict);
        Some(Self {
            visitor: None,
            upstream,
            scheme: request.client.scheme,
            access,
            routes,
        })
    }

    fn visitor(&self) -> Option<(&RoomRoute, &Pass)> {
        let (number, pass) = self.visitor.as_ref()?;
        Some((self.routes.room(*number), pass))
    }
}

impl PassedRequest for Passed {
    fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    fn write_headers(&self, lines: &mut Vec<u8>) {
        let Some((route, pass)) = self.visitor() else {
            return;
        };
        headers::visitor_headers(route, pass, |name, value| {
            write_line(lines, name.as_str(), value);
        });
    }

    fn changes_response(&self) -> bool {
        let visitor = self.visitor.as_ref();
        visitor.is_some_and(|(_, pass)| pass.new_ticket.is_some())
    }

    fn handle_response(&mut self, status: StatusCode, _: &mut Vec<u8>) {
        if let Some((route, _)) = self.visitor() {
            headers::note_outcome(route, OriginOutcome::Answered(status));
        }
        self.access.set_status(status);
    }

    async fn finish(&mut self, response: Response<Body>) -> Response<Body> {
        let response = match self.visitor() {
            Some((route, pass)) => headers::finish(route, pass, self.scheme, response).await,
            None => {
                let mut response = response;
                headers::take_commands(response.headers_mut());
                response
            }
        };
        self.access.set_status(response.status());
        response
    }
}
