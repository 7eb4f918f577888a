//! Decisions of all layers that need no future, for the fast path of the proxy.

use anteroom_limit_http::RateLimitLayer;
use anteroom_proxy::fast_path::{PassAtOnce, RequestView};
use anteroom_room_http::layer::{Passed, WaitingRoomLayer};

/// Decisions of rate limits and rooms about requests on the fast path.
///
/// While there are limits, the layers decide about every request: a limit counts a request before
/// its room is asked.
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

impl PassAtOnce for AtOnce {
    type Passed = Passed;

    fn pass_at_once(&self, request: &RequestView<'_>) -> Option<Passed> {
        if self.limits.is_empty() {
            self.rooms.pass_at_once(request)
        } else {
            None
        }
    }
}
