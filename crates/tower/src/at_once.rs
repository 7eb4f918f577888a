//! Decisions of all layers that need no future, for the fast path of the proxy.

use std::cell::Cell;

use anteroom_limit_http::{AllowedRequest, RateLimitLayer};
use anteroom_proxy::body::Body;
use anteroom_proxy::fast_path::{AtOnce, DecideAtOnce, PassedRequest};
use anteroom_proxy::request_context::Upstream;
use anteroom_proxy::request_view::RequestView;
use anteroom_room_http::layer::{Passed, WaitingRoomLayer};
use http::{Response, StatusCode};

/// Decisions of rate limits and rooms about requests on the fast path.
#[derive(Clone)]
pub struct Decider {
    limits: RateLimitLayer,
    rooms: WaitingRoomLayer,
}

impl Decider {
    pub(crate) const fn new(limits: RateLimitLayer, rooms: WaitingRoomLayer) -> Self {
        Self { limits, rooms }
    }
}

/// Request that passes its limits and its room.
pub struct PassedAll {
    limits: AllowedRequest,
    room: Passed,
}

impl DecideAtOnce for Decider {
    type Passed = PassedAll;

    /// A limit counts a request before its room is asked. Here the room comes first: that a visitor
    /// is active can be withdrawn. Other visitors are decided about only where no limit is.
    fn decide_at_once(&self, request: &RequestView<'_>) -> AtOnce<PassedAll> {
        let is_free = Cell::new(false);
        let begins = || {
            is_free.set(self.limits.covers_none(request));
            is_free.get()
        };
        let room = match self.rooms.decide_at_once(request, begins) {
            AtOnce::Pass(room) => room,
            AtOnce::Respond(response) => return AtOnce::Respond(response),
            AtOnce::Layers(begun) => return AtOnce::Layers(begun),
        };
        let allowed = if is_free.get() {
            Some(AllowedRequest::default())
        } else {
            self.limits.allow_at_once(request)
        };
        match allowed {
            Some(limits) => AtOnce::Pass(PassedAll { limits, room }),
            None => {
                room.withdraw();
                AtOnce::layers()
            }
        }
    }
}

impl PassedRequest for PassedAll {
    fn upstream(&self) -> &Upstream {
        self.room.upstream()
    }

    fn write_headers(&self, lines: &mut Vec<u8>) {
        self.room.write_headers(lines);
    }

    fn changes_response(&self) -> bool {
        self.room.changes_response()
    }

    fn handle_response(&mut self, status: StatusCode, lines: &mut Vec<u8>) {
        self.room.handle_response(status, lines);
        self.limits.write_headers(lines);
    }

    async fn finish(&mut self, response: Response<Body>) -> Response<Body> {
        let mut response = self.room.finish(response).await;
        self.limits.add_headers(response.headers_mut());
        response
    }
}
