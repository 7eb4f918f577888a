//! Decisions of all layers that need no future, for the fast path of the proxy.

use anteroom_limit_http::{AllowedRequest, LimitDecision, RateLimitLayer};
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

    /// Limits come first, as in the layers.
    fn decide_at_once(&self, request: &RequestView<'_>) -> AtOnce<PassedAll> {
        let mut limits = match self.limits.decide_at_once(request) {
            LimitDecision::Allowed(limits) => limits,
            LimitDecision::Rejected(response) => return AtOnce::Respond(response),
            LimitDecision::Later => return AtOnce::layers(),
        };
        match self.rooms.decide_at_once(request) {
            AtOnce::Pass(room) => AtOnce::Pass(PassedAll { limits, room }),
            AtOnce::Respond(mut response) => {
                limits.add_headers(response.headers_mut());
                AtOnce::Respond(response)
            }
            AtOnce::Layers(mut begun) => {
                limits.mark(&mut begun);
                AtOnce::Layers(begun)
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
