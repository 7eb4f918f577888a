//! New visitors, at a rate: when they come does not depend on how fast they are served.
//!
//! Each asks once and never comes back. What is measured is the decision alone, from the moment a
//! task takes it up until the answer is there; how long a busy machine takes to start that task is
//! not part of it. No HTTP is spoken, and no visitor has a jar, so that no other load generator of
//! the workspace would do.

use std::sync::Arc;
use std::time::Duration;

use anteroom_node::{Arrival, Intent, Outcome, RoomHandle};
use parking_lot::Mutex;
use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::latency::Durations;

/// Whoever is due is sent so often: the finest that timers do.
const TICK: Duration = Duration::from_millis(1);
/// How long the last visitors may take; a decision takes at most 250 ms.
const PATIENCE: Duration = Duration::from_secs(5);

/// Who comes. The same plan is the same visitors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// New visitors a second, over all doors.
    pub(crate) per_second: u32,
    /// For how long.
    pub(crate) lasts: Duration,
    /// Those who come before this are counted apart: traffic has just begun.
    pub(crate) lead_in: Duration,
    pub(crate) seed: u64,
}

/// What became of visitors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Met {
    pub(crate) took: Durations,
    pub(crate) admitted: u64,
    pub(crate) queued: u64,
}

/// What became of all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sheet {
    /// Those of the lead-in.
    pub(crate) early: Met,
    pub(crate) steady: Met,
}

impl Met {
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
        both.iter().map(|met| met.admitted + met.queued).sum()
    }
}

/// Sends a crowd to the same room at several nodes, and waits until all have their answers. What
/// became of them is added to `sheet`.
///
/// # Errors
///
/// If somebody has no answer after a while: the figures would be too good.
pub(crate) async fn send(
    rooms: &[Arc<RoomHandle>],
    plan: Plan,
    sheet: &Arc<Mutex<Sheet>>,
) -> anyhow::Result<()> {
    let before = sheet.lock().total();
    let mut arrivals = Arrivals::new(plan, rooms.len()).peekable();
    let mut ticks = interval(TICK);
    // A machine that was busy sends whoever is late at once, and in one go.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let began = Instant::now();
    let mut sent = 0u64;
    while arrivals.peek().is_some() {
        ticks.tick().await;
        let now = began.elapsed();
        while let Some((at, door)) = arrivals.next_if(|(at, _)| *at <= now) {
            sent += 1;
            let room = Arc::clone(&rooms[door]);
            let sheet = Arc::clone(sheet);
            tokio::spawn(visit(room, sheet, at < plan.lead_in));
        }
    }
    let all_answered = timeout(PATIENCE, async {
        while sheet.lock().total() < before + sent {
            ticks.tick().await;
        }
    });
    all_answered
        .await
        .map_err(|_| anyhow::anyhow!("visitors without an answer after {PATIENCE:?}"))
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
    let met = if is_early {
        &mut sheet.early
    } else {
        &mut sheet.steady
    };
    met.note(took, matches!(outcome, Outcome::Pass(_)));
}

/// When each comes, and to which door: a Poisson stream, as of many who do not know each other.
struct Arrivals {
    rng: Pcg64Mcg,
    at: f64,
    plan: Plan,
    doors: u64,
}

impl Arrivals {
    fn new(plan: Plan, doors: usize) -> Self {
        Self {
            rng: Pcg64Mcg::seed_from_u64(plan.seed),
            at: 0.0,
            plan,
            doors: doors as u64,
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
        let door = usize::try_from(self.rng.next_u64() % self.doors).unwrap_or_default();
        Some((Duration::from_secs_f64(self.at), door))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_plan_gives_the_same_visitors_at_every_door() {
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
        for door in 0..4 {
            let there = all.iter().filter(|(_, to)| *to == door).count();
            assert!((2_300..2_700).contains(&there), "{there}");
        }
        let other = Plan { seed: 8, ..plan };
        assert_ne!(all, Arrivals::new(other, 4).collect::<Vec<_>>());
    }
}
