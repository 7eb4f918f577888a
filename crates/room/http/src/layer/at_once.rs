//! Verdicts without a wait, for requests on the fast path.
//!
//! A request passes here only if nothing else has to be decided or done: its visitor is active and
//! no check-in is due, a bypass rule allows it, or no room covers it. All others take the layers,
//! and nothing has been counted for them.

use std::sync::Arc;

use anteroom_node::Pass;
use anteroom_proxy::body::Body;
use anteroom_proxy::cookies;
use anteroom_proxy::fast_path::{PassAtOnce, PassedRequest, RequestView, write_line};
use anteroom_proxy::forwarded::Scheme;
use anteroom_proxy::path::Readings;
use anteroom_proxy::request_context::Upstream;
use anteroom_proxy::reverse_proxy::OriginOutcome;
use http::{Response, StatusCode};

use super::access_log::AccessEntry;
use super::own_paths::is_own_path;
use super::route_table::{RoomRoute, RouteTable};
use super::verdict::Verdict;
use super::{WaitingRoomLayer, headers};
use crate::bypass::BypassRequest;
use crate::waiting::RequestKind;

/// Request that passes.
pub struct Passed {
    routes: Arc<RouteTable>,
    /// Room, by its number, and the visitor; `None` for a request without a verdict about one.
    visitor: Option<(usize, Pass)>,
    upstream: Upstream,
    scheme: Scheme,
    access: AccessEntry<'static>,
}

impl PassAtOnce for WaitingRoomLayer {
    type Passed = Passed;

    fn pass_at_once(&self, request: &RequestView<'_>) -> Option<Passed> {
        if is_own_path(request.path) {
            return None;
        }
        let routes = self.gate.routes.load_full();
        let readings = Readings::under(routes.decoding, request.path).ok()?;
        let found = routes.find_number(request.host, &readings).ok()?;
        let Some(number) = found else {
            let upstream = routes.origin_of(request.host)?;
            return Passed::without_visitor(routes, upstream, Verdict::NoRoom, request);
        };
        let route = routes.room(number);
        let config = route.room.config();
        let needs_more = config.suspended || config.max_addresses_per_ticket.is_some();
        if needs_more || !route.upstream.group.takes_plain_http1() {
            return None;
        }
        let bypass = BypassRequest {
            method: request.method,
            host: request.host,
            address: request.client.address,
            query: request.query,
            headers: request.headers,
        };
        if route.bypass.allow(&readings, &bypass) {
            let upstream = route.upstream.clone();
            let mut passed =
                Passed::without_visitor(Arc::clone(&routes), upstream, Verdict::Bypass, request)?;
            passed.access.set_room(route);
            return Some(passed);
        }
        let tickets = cookies::values(request.headers, &route.cookie_name);
        if tickets.is_empty() {
            return None;
        }
        let json_enabled = config.json_response_enabled;
        let is_navigation =
            || RequestKind::of(request.method, request.headers, json_enabled).is_page();
        let pass = route.room.pass_at_once(&tickets, is_navigation)?;
        request.connection.set_ticket(true);
        let mut access = entry_of(request);
        access.set_room(route);
        access.set_pass(&pass);
        Some(Passed {
            upstream: route.upstream.clone(),
            visitor: Some((number, pass)),
            scheme: request.client.scheme,
            access,
            routes,
        })
    }
}

impl Passed {
    /// Ends the decision without counting it: the layers decide about the request.
    pub fn withdraw(mut self) {
        self.access.withdraw();
    }

    /// Returns a request that passes for any sender; `None` if its connection needs a ticket.
    fn without_visitor(
        routes: Arc<RouteTable>,
        upstream: Upstream,
        verdict: Verdict,
        request: &RequestView<'_>,
    ) -> Option<Self> {
        if request.connection.needs_ticket() || !upstream.group.takes_plain_http1() {
            return None;
        }
        let mut access = entry_of(request);
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

fn entry_of(request: &RequestView<'_>) -> AccessEntry<'static> {
    AccessEntry::of_parts(request.method, request.path, Some(request.client.address))
}
