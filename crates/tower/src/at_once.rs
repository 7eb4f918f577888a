//! Decisions of all layers that need no future, for the fast path of the proxy.

use anteroom_limit_http::{AllowedRequest, RateLimitLayer};
use anteroom_proxy::body::Body;
use anteroom_proxy::fast_path::{PassAtOnce, PassedRequest, RequestView};
use anteroom_proxy::request_context::Upstream;
use anteroom_room_http::layer::{Passed, WaitingRoomLayer};
use http::{Response, StatusCode};

/// Decisions of rate limits and rooms about requests on the fast path.
#[derive(Clone)]
pub struct AtOnce {
    limits: RateLimitLayer,
    rooms: WaitingRoomLayer,
}

impl AtOnce {
    pub(crate) const fn new(limits: RateLimitLayer, rooms: WaitingRoomLayer) -> Self {
        Self { limits, rooms }
    }
}

/// Request that passes its limits and its room.
pub struct PassedAll {
    limits: AllowedRequest,
    room: Passed,
}

impl PassAtOnce for AtOnce {
    type Passed = PassedAll;

    /// A limit counts a request before its room is asked. Here the room comes first, because its
    /// decision can be withdrawn.
    fn pass_at_once(&self, request: &RequestView<'_>) -> Option<PassedAll> {
        let room = self.rooms.pass_at_once(request)?;
        match self.limits.allow_at_once(request) {
            Some(limits) => Some(PassedAll { limits, room }),
            None => {
                room.withdraw();
                None
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
