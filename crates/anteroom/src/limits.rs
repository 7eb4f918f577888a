//! What limits of calls ask the rest of the program: the time, and who shows a ticket.

use std::sync::Arc;

use anteroom_control::LimitFigures;
use anteroom_gateway::forwarded::Client;
use anteroom_gateway::layer::{KnownVisitor, WaitingRoomLayer, is_own_path};
use anteroom_gateway::path::Readings;
use anteroom_limits::time::Micros;
use anteroom_meter::{Figures, Surroundings};
use anteroom_node::NodeClock;
use http::HeaderMap;

/// A gateway around its limits.
pub(crate) struct Around {
    pub(crate) clock: Arc<dyn NodeClock>,
    pub(crate) rooms: WaitingRoomLayer,
}

impl Surroundings for Around {
    /// Room time: no step of the wall clock gives anybody calls back.
    fn now(&self) -> Micros {
        Micros(self.clock.now().0.saturating_mul(1_000))
    }

    fn wall_seconds(&self) -> u64 {
        self.clock.wall().0 / 1_000
    }

    fn is_polling(&self, path: &str) -> bool {
        is_own_path(path)
    }

    fn visitor(
        &self,
        client: &Client,
        readings: &Readings<'_>,
        headers: &HeaderMap,
    ) -> Option<KnownVisitor> {
        self.rooms.visitor_of(client, readings, headers)
    }
}

/// The figures of one limit, by its name, as operators are shown them.
pub(crate) fn shown(figures: Figures) -> (String, LimitFigures) {
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let calls = figures.events.iter();
    let shown = LimitFigures {
        calls: calls.map(|(event, count)| (event.name(), *count)).collect(),
        keys: count(figures.keys),
        keys_max: count(figures.keys_max),
        crowded: figures.crowded,
        store_failures: figures.store_failures,
    };
    (figures.name, shown)
}
