//! Surroundings of the rate limits: the clock and the visitors of the rooms.

use std::sync::Arc;

use anteroom_limit::time::TimestampUs;
use anteroom_limit_http::LimiterContext;
use anteroom_node::NodeClock;
use anteroom_proxy::forwarded::Client;
use anteroom_proxy::header_view::HeaderView;
use anteroom_proxy::path::{Decoding, Readings};
use anteroom_proxy::request_context::KnownVisitor;
use anteroom_room_http::layer::{WaitingRoomLayer, is_own_path};

/// Gives rate limits the clock, routes and visitors of the waiting rooms.
pub(crate) struct Around {
    pub(crate) clock: Arc<dyn NodeClock>,
    pub(crate) rooms: WaitingRoomLayer,
}

impl LimiterContext for Around {
    /// Returns room time: a step of the wall clock refunds no requests.
    fn now(&self) -> TimestampUs {
        TimestampUs(self.clock.now().0.saturating_mul(1_000))
    }

    fn wall_seconds(&self) -> u64 {
        self.clock.wall().0 / 1_000
    }

    fn has_rooms(&self) -> bool {
        self.rooms.has_rooms()
    }

    fn is_polling(&self, path: &str) -> bool {
        self.rooms.has_rooms() && is_own_path(path)
    }

    fn decoding(&self) -> Decoding {
        self.rooms.decoding()
    }

    fn visitor(
        &self,
        client: &Client,
        readings: &Readings<'_>,
        headers: HeaderView<'_>,
    ) -> Option<KnownVisitor> {
        self.rooms.visitor_of(client, readings, headers)
    }
}
