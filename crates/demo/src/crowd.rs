//! Who wants in? Visitors who come in ever greater numbers, each with its own cookies.
//!
//! Not a simulation: every visitor sends HTTP requests through TCP and knows only what a browser
//! would know. They share a pool of connections, as browsers behind one proxy do, because the
//! crowd, the gateway and the origin of a demo live on one machine's file descriptors.
//!
//! The visitors of `anteroom-e2e` are others, because they are there to find faults: they hammer,
//! change the node, replay old tickets, and note each valid ticket that is not honoured. These do
//! what people and the script of the waiting page do.

mod browser;
mod counters;
mod route;
mod visitor;

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use url::Url;

use self::browser::Network;
use self::counters::LoadCounters;
pub use self::counters::{LoadReport, RequestErrorKind, Stage};
use self::visitor::Visitor;
use super::clock::Clock;
use super::stop::{Stop, Stopper};

/// Requests in flight at once, unless the plan says otherwise.
///
/// Each takes a descriptor here, one where the gateway accepts, and, once admitted, two more
/// between gateway and origin: 600 at most, below the usual limit of 1024 for a process.
/// More runs out of descriptors; fewer makes the crowd slower than it plans to be.
pub const REQUESTS_AT_ONCE: usize = 150;

/// The same where there are several nodes. As many connections again may be idle there, each to a
/// node that the next request does not go to.
pub const REQUESTS_AT_ONCE_TO_SEVERAL: usize = REQUESTS_AT_ONCE / 2;

/// Where the crowd goes.
#[derive(Clone, Debug)]
pub struct Target {
    /// The gateways, as in `http://127.0.0.1:8080/`; at least one. They differ in nothing but their
    /// ports, so that cookies of one go to all.
    pub urls: Vec<Url>,
    /// The room, for asking for one's place.
    pub room: String,
}

/// What the crowd will do. Every choice follows from the seed; how long things take does not.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// How many come.
    pub visitors: u32,
    /// When the last one comes. They come ever more quickly.
    pub arrive_over: Duration,
    /// How many pages a visitor opens, the first one included; at least 1.
    pub pages: RangeInclusive<u32>,
    /// How long a visitor looks at a page.
    pub think: RangeInclusive<Duration>,
    /// How many of a hundred will not wait for ever.
    pub impatient_percent: u32,
    /// How long those wait.
    pub patience: RangeInclusive<Duration>,
    /// How many of a hundred place an order at the end.
    pub buy_percent: u32,
    /// How many of a hundred log out at the end; the others just stay away.
    pub log_out_percent: u32,
    /// How many of a hundred go to another node with each request; the others keep to theirs.
    pub wander_percent: u32,
    /// When somebody who queues first asks for its place. Soon, as the waiting page's script
    /// does: a place counts once the ticket has been brought back.
    pub first_ask_after: Duration,
    /// How long an answer may take.
    pub answer_within: Duration,
    /// How long a visitor waits after an error before it asks again; twice that after two errors.
    pub try_again_after: Duration,
    /// Requests in flight at once; at least 1.
    pub requests_at_once: usize,
    /// Another seed is another crowd.
    pub seed: u64,
}

impl LoadPlan {
    /// When visitor `number` (from 0) comes: the crowd grows with time to the power of 1.5, so
    /// that a shop fills early and the line goes on growing.
    fn arrives_after(&self, number: u32) -> Duration {
        let part = (f64::from(number) + 0.5) / f64::from(self.visitors.max(1));
        self.arrive_over.mul_f64(part.min(1.0).powf(2.0 / 3.0))
    }
}

/// A crowd on its way.
#[derive(Debug)]
pub struct LoadGenerator {
    counters: Arc<LoadCounters>,
    stopper: Stopper,
    visitors: JoinSet<()>,
}

impl LoadGenerator {
    /// Sends the crowd off.
    ///
    /// # Panics
    ///
    /// If the target has no gateway.
    #[must_use]
    pub fn start(target: Target, plan: LoadPlan) -> Self {
        let counters = Arc::new(LoadCounters::new(plan.visitors));
        let clock = Clock::start();
        let plan = Arc::new(plan);
        let network = Arc::new(Network::new(target, &plan, clock, Arc::clone(&counters)));
        let (stopper, stop) = Stopper::new();
        let mut visitors = JoinSet::new();
        for number in 0..plan.visitors {
            let arrives_after = plan.arrives_after(number);
            let visitor = Visitor::new(Arc::clone(&network), Arc::clone(&plan), number);
            visitors.spawn(live_until(visitor.live(arrives_after), stop.clone()));
        }
        Self {
            counters,
            stopper,
            visitors,
        }
    }

    /// What has happened until now.
    #[must_use]
    pub fn record(&self) -> LoadReport {
        self.counters.record()
    }

    /// How long the last visitor who came in had waited.
    #[must_use]
    pub fn last_wait(&self) -> Option<Duration> {
        self.counters.last_wait()
    }

    /// Returns once every visitor has left. Safe to cancel.
    ///
    /// # Panics
    ///
    /// If a visitor panicked.
    pub async fn everybody_gone(&mut self) {
        while let Some(ended) = self.visitors.join_next().await {
            ended.expect("a visitor does not panic and nobody aborts it");
        }
    }

    /// Sends everybody home, whatever they are doing, and tells where each was.
    ///
    /// # Panics
    ///
    /// If a visitor panicked.
    pub async fn stop(mut self) -> LoadReport {
        self.stopper.stop();
        self.everybody_gone().await;
        self.counters.record()
    }
}

async fn live_until(incarnation: impl Future<Output = ()>, mut stop: Stop) {
    tokio::select! {
        () = stop.requested() => {}
        () = incarnation => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::quick_plan;

    #[test]
    fn visitors_come_ever_more_quickly_and_all_in_time() {
        let plan = LoadPlan {
            visitors: 100,
            arrive_over: Duration::from_secs(10),
            ..quick_plan()
        };
        let arrivals: Vec<_> = (0..100).map(|number| plan.arrives_after(number)).collect();
        assert!(arrivals.is_sorted());
        assert!(arrivals[99] <= plan.arrive_over);
        assert!(arrivals[10] - arrivals[0] > arrivals[99] - arrivals[89]);
    }
}
