//! New visitors at a fixed rate, independent of how fast they are served.
//!
//! Each sends one request and never comes back. Only the decision is measured, from the start of
//! its task until the response; the delay until a busy machine starts the task is excluded. There
//! is no HTTP and there are no cookie jars, so the other load generators of the workspace do not
//! fit.

use std::sync::Arc;
use std::time::Duration;

use anteroom_node::{Arrival, Intent, Outcome, RoomHandle};
use parking_lot::Mutex;
use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
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
    let mut arrivals = Arrivals::new(plan, rooms.len()).peekable();
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

/// Times and nodes of arrivals: a Poisson process, as of many independent visitors.
struct Arrivals {
    rng: Pcg64Mcg,
    at: f64,
    plan: Plan,
    nodes: u64,
}

impl Arrivals {
    fn new(plan: Plan, nodes: usize) -> Self {
        Self {
            rng: Pcg64Mcg::seed_from_u64(plan.seed),
            at: 0.0,
            plan,
            nodes: nodes as u64,
        }
    }
}

impl Iterator for Arrivals {
    type Item = (Duration, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let unit = (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        self.at -= libm::log(1.0 - unit) / f64::from(self.plan.per_second);
        if self.at >= self.plan.lasts.as_secs_f64() {
            return None;
        }
        let node = usize::try_from(self.rng.next_u64() % self.nodes).unwrap_or_default();
        Some((Duration::from_secs_f64(self.at), node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_plan_yields_the_same_visitors_at_every_node() {
        let plan = Plan {
            per_second: 1_000,
            lasts: Duration::from_secs(10),
            lead_in: Duration::ZERO,
            seed: 7,
        };
        let all: Vec<_> = Arrivals::new(plan, 4).collect();
        assert_eq!(all, Arrivals::new(plan, 4).collect::<Vec<_>>());
        assert!((9_700..10_300).contains(&all.len()), "{}", all.len());
        assert!(all.is_sorted_by_key(|(at, _)| *at));
        for node in 0..4 {
            let arrived = all.iter().filter(|(_, to)| *to == node).count();
            assert!((2_300..2_700).contains(&arrived), "{arrived}");
        }
        let other = Plan { seed: 8, ..plan };
        assert_ne!(all, Arrivals::new(other, 4).collect::<Vec<_>>());
    }
}
