//! Who wants in? Visitors with cookie jars, each sent to nodes as the run wants it.
//!
//! They know what a browser knows, and until when their seat lasts, which the origin tells them: so
//! they can say when a valid ticket was not honoured. They send what browsers send (parallel
//! requests with one ticket) and what attackers send (old tickets, tickets after a logout). The
//! demo's crowd does none of that: it asks when the waiting page would, and loses patience.

mod browser;
mod counters;
mod doors;
mod insider;
mod visitor;

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rand_core::SeedableRng as _;
use rand_pcg::Pcg64Mcg;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use self::browser::Asks;
use self::browser::Browser;
pub use self::counters::Tally;
pub use self::doors::{Doors, Wander};
pub use self::insider::{Insider, Times};
use self::visitor::Visitor;

/// What visitors do.
#[derive(Clone, Debug)]
pub struct Habits {
    /// To which node each request goes.
    pub wander: Wander,
    /// How many of a hundred live near the first data center; the others near another one.
    pub first_data_center_percent: u32,
    /// How many pages a visitor opens before it leaves.
    pub pages: RangeInclusive<u32>,
    /// Between two pages.
    pub think: RangeInclusive<Duration>,
    /// Between two asks of somebody who waits; sooner than they are told to, so that nobody is
    /// overdue on a busy machine.
    pub refresh_interval: RangeInclusive<Duration>,
    /// Whether a waiting visitor polls when the page says so, whatever `refresh_interval` is.
    pub is_patient: bool,
    /// Requests at once by somebody who has a ticket; at least 1.
    pub at_once: u32,
    /// After how many of a hundred pages somebody sends an old ticket of the same visitor.
    pub replay_percent: u32,
    /// How often somebody sends the ticket at once, one after the other, when its session was
    /// ended.
    pub replays_after_logout: u32,
    /// How many of a hundred log out when they leave; the others just stay away.
    pub log_out_percent: u32,
    /// Whether somebody else comes for each one who leaves.
    pub are_followed: bool,
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            wander: Wander::Sticky,
            first_data_center_percent: 65,
            pages: 2..=6,
            think: Duration::from_millis(400)..=Duration::from_millis(1_600),
            refresh_interval: Duration::from_millis(600)..=Duration::from_millis(1_200),
            is_patient: false,
            at_once: 1,
            replay_percent: 0,
            replays_after_logout: 0,
            log_out_percent: 30,
            are_followed: true,
        }
    }
}

/// A time in which visitors come, evenly spread.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    /// How long it lasts.
    pub lasts: Duration,
    /// How many come in it.
    pub visitors: u32,
}

/// When each visitor comes, after the start: the rate of arrivals as a function of time.
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

/// A crowd on its way; goes home when dropped.
#[derive(Debug)]
pub struct Crowd {
    counters: Arc<Mutex<Tally>>,
    visitors: JoinSet<()>,
    leave: watch::Sender<bool>,
}

impl Crowd {
    /// Sends a crowd off. The same seed makes the same choices; how long things take differs.
    #[must_use]
    pub fn send(doors: &Doors, phases: &[Phase], habits: &Habits, seed: u64) -> Self {
        let counters = Arc::new(Mutex::new(Tally::default()));
        let (leave, leaving) = watch::channel(false);
        let browser = Browser::new();
        let mut visitors = JoinSet::new();
        for (number, arrives_after) in arrivals(phases).into_iter().enumerate() {
            let visitor = Visitor::new(
                doors.clone(),
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
    pub fn at_once(doors: &Doors, visitors: u32, habits: &Habits, seed: u64) -> Self {
        let phase = Phase {
            lasts: Duration::from_secs(1),
            visitors,
        };
        Self::send(doors, &[phase], habits, seed)
    }

    /// What they met so far.
    #[must_use]
    pub fn counters(&self) -> Tally {
        self.counters.lock().clone()
    }

    /// Sends all home, whatever they do, and tells what they met.
    pub async fn go_home(self) -> Tally {
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
