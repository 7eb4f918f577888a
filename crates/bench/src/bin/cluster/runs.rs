//! What is measured, and at which size.
//!
//! One file for each question. What is good enough is said in [`crate::verdict`].

pub(crate) mod calls;
pub(crate) mod capacity;
pub(crate) mod cpu;
pub(crate) mod newcomers;
pub(crate) mod waiting;

use std::sync::Arc;
use std::time::Duration;

use anteroom_node::{SystemWallClock, WallClock as _};
use parking_lot::Mutex;

use crate::crowd::{Plan, Sheet, send};
use crate::deployment::Deployment;

const MINUTE: Duration = Duration::from_mins(1);
/// New visitors a second while a history is made for counters.
const WARM_PER_SECOND: u32 = 5_000;
/// Of the minute, when a history is made.
const LEFT_AFTER_HISTORY: Duration = Duration::from_secs(5);
/// After this everybody in a data center knows what the last minute was like: two periods of a
/// second, and on.
const HISTORY_IS_KNOWN_AFTER: Duration = Duration::from_secs(3);

/// How much is measured.
#[derive(Clone, Debug)]
pub(crate) struct Effort {
    /// Nodes in each of the two data centers.
    pub(crate) nodes: usize,
    /// Whether counters get a history. Shares are what a data center admitted in the last full
    /// minute; without one every visitor of `counters` crosses the world.
    pub(crate) has_history: bool,
    /// New visitors a second, all nodes together.
    pub(crate) rates: Vec<u32>,
    /// How often the idle link is tried.
    pub(crate) link_tries: u32,
    /// How often each rate is measured with each allocation, in turn.
    pub(crate) rounds: u32,
    /// Of each block, before what counts as steady.
    pub(crate) lead_in: Duration,
    /// A block, lead-in included.
    pub(crate) block: Duration,
    /// Seats of the room that is full.
    pub(crate) near_seats: u32,
    /// New visitors a second to it: more than seats become free.
    pub(crate) near_per_second: u32,
    /// Until it is full.
    pub(crate) near_fill: Duration,
    /// New visitors a second and node while CPU time is measured.
    pub(crate) cpu_per_node: u32,
    pub(crate) cpu_block: Duration,
    /// New visitors a second, all nodes together, while calls are counted.
    pub(crate) call_rates: Vec<u32>,
    pub(crate) call_block: Duration,
    pub(crate) idle: Duration,
    /// Nodes of one data center, and rooms at each, for what one server carries.
    pub(crate) capacity: Vec<(usize, [usize; 2])>,
    pub(crate) capacity_block: Duration,
}

impl Effort {
    /// For figures that are written down.
    pub(crate) fn full() -> Self {
        Self {
            nodes: 2,
            has_history: true,
            rates: vec![100, 1_000, 10_000],
            link_tries: 200,
            rounds: 2,
            lead_in: Duration::from_millis(1_500),
            block: Duration::from_secs(4),
            near_seats: 10_000,
            near_per_second: 1_000,
            near_fill: Duration::from_secs(14),
            cpu_per_node: 1_000,
            cpu_block: Duration::from_secs(8),
            call_rates: vec![100, 1_000, 10_000, 100_000],
            call_block: Duration::from_secs(6),
            idle: Duration::from_secs(10),
            capacity: vec![(2, [60, 240]), (6, [20, 80])],
            capacity_block: Duration::from_secs(8),
        }
    }

    /// Does the program work? The figures say nothing.
    #[cfg(test)]
    pub(crate) fn short() -> Self {
        let moment = Duration::from_millis(200);
        Self {
            nodes: 1,
            has_history: false,
            rates: vec![50],
            link_tries: 5,
            rounds: 1,
            lead_in: moment / 2,
            block: moment,
            near_seats: 10,
            near_per_second: 50,
            near_fill: moment,
            cpu_per_node: 50,
            cpu_block: moment,
            call_rates: vec![50],
            call_block: moment,
            idle: moment,
            capacity: vec![(1, [1, 2])],
            capacity_block: moment,
        }
    }

    fn plan(per_second: u32, lasts: Duration, seed: u64) -> Plan {
        Plan {
            per_second,
            lasts,
            lead_in: Duration::ZERO,
            seed,
        }
    }

    /// Lets as many come to the room `counters` as will come in the next minute at most.
    async fn make_history(
        &self,
        deployment: &Deployment,
        visitors: u32,
    ) -> anyhow::Result<Option<History>> {
        if !self.has_history {
            return Ok(None);
        }
        let lasts = Duration::from_secs_f64(f64::from(visitors) / f64::from(WARM_PER_SECOND));
        until_left_of_minute(lasts + LEFT_AFTER_HISTORY).await;
        let minute_ends_at = now() + left_of_minute();
        let plan = Self::plan(WARM_PER_SECOND, lasts, 0);
        let sheet = Arc::new(Mutex::new(Sheet::default()));
        send(&deployment.rooms("counters"), plan, &sheet).await?;
        Ok(Some(History { minute_ends_at }))
    }
}

/// What counters need to know of a minute.
struct History {
    minute_ends_at: Duration,
}

impl History {
    /// Waits until its minute is the last one, and everybody knows.
    async fn wait_until_known(self) {
        let at = self.minute_ends_at + HISTORY_IS_KNOWN_AFTER;
        tokio::time::sleep(at.saturating_sub(now())).await;
    }
}

/// Since the Unix epoch, by the clock that rooms follow.
fn now() -> Duration {
    Duration::from_millis(SystemWallClock.read().0)
}

/// How long the minute under way still lasts.
fn left_of_minute() -> Duration {
    let into = now().as_secs_f64() % MINUTE.as_secs_f64();
    MINUTE.saturating_sub(Duration::from_secs_f64(into))
}

/// Waits until no more than `left` of a minute is left, and not much less.
async fn until_left_of_minute(left: Duration) {
    let now = left_of_minute();
    let slack = Duration::from_secs(1);
    let wait = if now + slack >= left {
        now.saturating_sub(left)
    } else {
        now + MINUTE - left
    };
    tokio::time::sleep(wait).await;
}
