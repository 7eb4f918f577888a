//! New visitors at a fixed rate, independent of how fast they are served.
//!
//! Each sends one request and never comes back. Only the decision is measured, from the start of
//! its task until the response; the delay until a busy machine starts the task is excluded. There
//! is no HTTP and there are no cookie jars, so the other load generators of the workspace do not
//! fit.

use std::sync::Arc;
use std::time::Duration;

use anteroom_node::{Arrival, Intent, Outcome, RoomHandle};
use anteroom_testkit::arrivals::{ArrivalPlan, Arrivals};
use parking_lot::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::latency::Durations;

/// Period in which due visitors are sent: the finest resolution of timers.
const TICK: Duration = Duration::from_millis(1);
/// Timeout of the last visitors; a decision takes at most a second.
const LAST_TIMEOUT: Duration = Duration::from_secs(5);

/// Plan of arrivals. The same plan yields the same visitors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// New visitors per second, over all nodes.
    pub(crate) per_second: u32,
    /// Length of the run.
    pub(crate) lasts: Duration,
    /// Time at the start whose visitors are counted separately.
    pub(crate) lead_in: Duration,
    pub(crate) seed: u64,
}

/// Outcomes of visitors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcomes {
    pub(crate) took: Durations,
    pub(crate) admitted: u64,
    pub(crate) queued: u64,
}

/// Outcomes of all visitors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sheet {
    /// Outcomes of the lead-in.
    pub(crate) early: Outcomes,
    pub(crate) steady: Outcomes,
}

impl Outcomes {
    fn note(&mut self, took: Duration, is_admitted: bool) {
        self.took.record(took);
        if is_admitted {
            self.admitted += 1;
        } else {
            self.queued += 1;
        }
    }
}

impl Sheet {
    pub(crate) fn total(&self) -> u64 {
        let both = [&self.early, &self.steady];
        both.iter()
            .map(|outcomes| outcomes.admitted + outcomes.queued)
            .sum()
    }
}

/// Sends visitors to the same room at several nodes and waits until all have a response. Their
/// outcomes are added to `sheet`.
///
/// # Errors
///
/// If a visitor has no response after a while: the results would be too good.
pub(crate) async fn send(
    rooms: &[Arc<RoomHandle>],
    plan: Plan,
    sheet: &Arc<Mutex<Sheet>>,
) -> anyhow::Result<()> {
    let before = sheet.lock().total();
    let arrivals = ArrivalPlan {
        per_second: plan.per_second,
        lasts: plan.lasts,
        nodes: rooms.len(),
        seed: plan.seed,
    };
    let mut arrivals = Arrivals::new(arrivals).peekable();
    let mut ticks = interval(TICK);
    // After a stall all late visitors are sent at once.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let began = Instant::now();
    let mut sent = 0u64;
    while arrivals.peek().is_some() {
        ticks.tick().await;
        let now = began.elapsed();
        while let Some((at, node)) = arrivals.next_if(|(at, _)| *at <= now) {
            sent += 1;
            let room = Arc::clone(&rooms[node]);
            let sheet = Arc::clone(sheet);
            tokio::spawn(visit(room, sheet, at < plan.lead_in));
        }
    }
    let all_served = timeout(LAST_TIMEOUT, async {
        while sheet.lock().total() < before + sent {
            ticks.tick().await;
        }
    });
    all_served
        .await
        .map_err(|_| anyhow::anyhow!("visitors without a response after {LAST_TIMEOUT:?}"))
}

async fn visit(room: Arc<RoomHandle>, sheet: Arc<Mutex<Sheet>>, is_early: bool) {
    let arrival = Arrival {
        tickets: &[],
        is_navigation: true,
        gets_page: true,
        intent: Intent::Enter,
    };
    let began = Instant::now();
    let outcome = room.decide(arrival).await;
    let took = began.elapsed();
    let mut sheet = sheet.lock();
    let outcomes = if is_early {
        &mut sheet.early
    } else {
        &mut sheet.steady
    };
    outcomes.note(took, matches!(outcome, Outcome::Pass(_)));
}
