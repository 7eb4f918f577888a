//! Load generator: visitors with cookie jars, sent to nodes as the run requires.
//!
//! Visitors know what a browser knows, and the end of their seat, which the origin sends. So they
//! notice when a valid ticket is not honoured. They send what browsers send (parallel requests with
//! one ticket) and what attackers send (old tickets, tickets after a logout). The demo's visitors
//! do neither: they poll when the waiting page would, and give up waiting.

mod active_visitor;
mod browser;
mod counters;
mod habits;
mod newcomers;
mod routes;
mod visitor;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rand_core::SeedableRng as _;
use rand_pcg::Pcg64Mcg;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use self::active_visitor::{ActiveVisitor, Latencies};
use self::browser::Browser;
pub use self::browser::{NoticedWait, PageRequest, WaitNotice};
pub use self::counters::VisitorCounts;
pub use self::habits::Habits;
pub use self::newcomers::{Exchange, NewcomerLog, NewcomerPlan, RequestOutcome, Visit};
pub use self::routes::{NodeAddress, NodeAt, NodeChoice, NodeRoutes};
use self::visitor::Visitor;

/// Time in which visitors come, evenly spread.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    /// Length of the phase.
    pub lasts: Duration,
    /// Visitors in the phase.
    pub visitors: u32,
}

/// Returns the arrival time of each visitor, after the start: the rate of arrivals as a function of
/// time.
fn arrivals(phases: &[Phase]) -> Vec<Duration> {
    let mut began = Duration::ZERO;
    let mut times = Vec::new();
    for phase in phases {
        let each = phase.lasts / phase.visitors.max(1);
        times.extend((0..phase.visitors).map(|number| began + each * number));
        began += phase.lasts;
    }
    times
}

/// Running load; its visitors stop when it is dropped.
#[derive(Debug)]
pub struct VisitorLoad {
    counters: Arc<Mutex<VisitorCounts>>,
    visitors: JoinSet<()>,
    leave: watch::Sender<bool>,
}

impl VisitorLoad {
    /// Starts a load. The same seed makes the same choices; the timing differs.
    #[must_use]
    pub fn send(routes: &NodeRoutes, phases: &[Phase], habits: &Habits, seed: u64) -> Self {
        let counters = Arc::new(Mutex::new(VisitorCounts::default()));
        let (leave, leaving) = watch::channel(false);
        let browser = Browser::new();
        let mut visitors = JoinSet::new();
        for (number, arrives_after) in arrivals(phases).into_iter().enumerate() {
            let visitor = Visitor::new(
                routes.clone(),
                browser.clone(),
                habits.clone(),
                Arc::clone(&counters),
                Pcg64Mcg::seed_from_u64(seed.wrapping_mul(1_000_003) ^ number as u64),
            );
            let mut leaving = leaving.clone();
            visitors.spawn(async move {
                tokio::select! {
                    () = visitor.live(arrives_after) => {}
                    _ = leaving.wait_for(|is_leaving| *is_leaving) => {}
                }
            });
        }
        Self {
            counters,
            visitors,
            leave,
        }
    }

    /// Sends visitors who all come within a second.
    #[must_use]
    pub fn at_once(routes: &NodeRoutes, visitors: u32, habits: &Habits, seed: u64) -> Self {
        let phase = Phase {
            lasts: Duration::from_secs(1),
            visitors,
        };
        Self::send(routes, &[phase], habits, seed)
    }

    /// Returns the counts until now.
    #[must_use]
    pub fn counters(&self) -> VisitorCounts {
        self.counters.lock().clone()
    }

    /// Stops all visitors and returns the counts.
    pub async fn stop(self) -> VisitorCounts {
        self.leave.send_replace(true);
        self.visitors.join_all().await;
        let counters = self.counters.lock();
        counters.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visitors_come_evenly_within_each_phase() {
        let phases = [(10, 2), (1, 4)].map(|(secs, visitors)| Phase {
            lasts: Duration::from_secs(secs),
            visitors,
        });
        let millis: Vec<u128> = arrivals(&phases).iter().map(Duration::as_millis).collect();
        assert_eq!(millis, [0, 5_000, 10_000, 10_250, 10_500, 10_750]);
    }
}
