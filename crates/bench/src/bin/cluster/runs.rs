//! Measurements and their sizes.
//!
//! Each measurement has its own file. [`crate::verdict`] has the targets.

pub(crate) mod capacity;
pub(crate) mod cpu;
pub(crate) mod newcomers;
pub(crate) mod store_requests;
pub(crate) mod waiting;

use std::sync::Arc;
use std::time::Duration;

use anteroom_node::{SystemWallClock, WallClock as _};
use parking_lot::Mutex;

use crate::arrivals::{Plan, Sheet, send};
use crate::deployment::Deployment;

const MINUTE: Duration = Duration::from_mins(1);
/// New visitors per second while counters get a history.
const WARM_PER_SECOND: u32 = 5_000;
/// Time that is left of the minute after the history.
const LEFT_AFTER_HISTORY: Duration = Duration::from_secs(5);
/// Time until all nodes of a data center know the last minute: two periods of a second, and the
/// transfer.
const HISTORY_IS_KNOWN_AFTER: Duration = Duration::from_secs(3);

/// Size of the measurements.
#[derive(Clone, Debug)]
pub(crate) struct Effort {
    /// Nodes in each of the two data centers.
    pub(crate) nodes: usize,
    /// Whether counters get a history. Shares are what a data center admitted in the last full
    /// minute; without one every visitor of `counters` needs the global store.
    pub(crate) has_history: bool,
    /// New visitors per second, over all nodes.
    pub(crate) rates: Vec<u32>,
    /// Number of measurements of the idle link.
    pub(crate) link_tries: u32,
    /// Number of blocks of each rate and allocation, in turn.
    pub(crate) rounds: u32,
    /// Lead-in of each block, before the steady part.
    pub(crate) lead_in: Duration,
    /// Length of a block, including the lead-in.
    pub(crate) block: Duration,
    /// Seats of the full room.
    pub(crate) near_seats: u32,
    /// New visitors per second to the full room: more than seats become free.
    pub(crate) near_per_second: u32,
    /// Time until the room is full.
    pub(crate) near_fill: Duration,
    /// New visitors per second and node while CPU time is measured.
    pub(crate) cpu_per_node: u32,
    pub(crate) cpu_block: Duration,
    /// New visitors per second, over all nodes, while store requests are counted.
    pub(crate) request_rates: Vec<u32>,
    pub(crate) request_block: Duration,
    pub(crate) idle: Duration,
    /// Nodes of one data center and rooms at each, for the capacity of one server.
    pub(crate) capacity: Vec<(usize, [usize; 2])>,
    pub(crate) capacity_block: Duration,
}

impl Effort {
    /// Returns the size for published results.
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
            request_rates: vec![100, 1_000, 10_000, 100_000],
            request_block: Duration::from_secs(6),
            idle: Duration::from_secs(10),
            capacity: vec![(2, [60, 240]), (6, [20, 80])],
            capacity_block: Duration::from_secs(8),
        }
    }

    /// Returns a small size that only tests the program.
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
            request_rates: vec![50],
            request_block: moment,
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

    /// Sends as many visitors to the room `counters` as will come in the next minute at most.
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

/// Minute whose admissions counters use.
struct History {
    minute_ends_at: Duration,
}

impl History {
    /// Waits until its minute is the last one and all nodes know it.
    async fn wait_until_known(self) {
        let at = self.minute_ends_at + HISTORY_IS_KNOWN_AFTER;
        tokio::time::sleep(at.saturating_sub(now())).await;
    }
}

/// Returns the time since the Unix epoch, by the clock of rooms.
fn now() -> Duration {
    Duration::from_millis(SystemWallClock.read().0)
}

/// Returns the rest of the current minute.
fn left_of_minute() -> Duration {
    let into = now().as_secs_f64() % MINUTE.as_secs_f64();
    MINUTE.saturating_sub(Duration::from_secs_f64(into))
}

/// Waits until about `left` of a minute is left, and not more.
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
