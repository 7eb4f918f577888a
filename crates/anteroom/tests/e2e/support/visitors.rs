//! Simulated visitors of one gateway: their habits and their number.

use std::time::Duration;

use anteroom_testkit::load::{Habits, NodeAddress, NodeRoutes, Phase, VisitorCounts, VisitorLoad};

/// Seed of all loads; these visitors choose nothing but their pauses.
const SEED: u64 = 1;

/// Returns habits of visitors who open three pages and log out; others follow them.
pub(crate) fn short_visits() -> Habits {
    Habits {
        pages: 3..=3,
        think: Duration::from_millis(200)..=Duration::from_millis(200),
        refresh_interval: Duration::from_millis(500)..=Duration::from_millis(500),
        log_out_percent: 100,
        ..Habits::default()
    }
}

/// Returns habits of visitors who enter and never leave.
pub(crate) fn endless_visits() -> Habits {
    Habits {
        path: "/stays",
        pages: u32::MAX..=u32::MAX,
        ..short_visits()
    }
}

/// Sends `count` visitors at the same time to the gateway at this address.
pub(crate) fn send(address: &NodeAddress, count: u32, habits: &Habits) -> VisitorLoad {
    let phase = Phase {
        lasts: Duration::ZERO,
        visitors: count,
    };
    VisitorLoad::send(
        &NodeRoutes::to_one("gateway", address),
        &[phase],
        habits,
        SEED,
    )
}

/// Stops endless visitors, and fails unless `entered` of them entered, each once, and none was
/// queued with a valid ticket.
pub(crate) async fn stop_endless(endless: VisitorLoad, entered: u64) -> VisitorCounts {
    let counters = stop(endless).await;
    assert_eq!(counters.entered, entered, "{counters}");
    counters
}

/// Stops visitors, and fails if one was queued with a valid ticket.
pub(crate) async fn stop(load: VisitorLoad) -> VisitorCounts {
    let counters = load.stop().await;
    assert_eq!(counters.queued_with_ticket, 0, "{counters}");
    counters
}
