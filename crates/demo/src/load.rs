//! Load generator of the demo: simulated visitors who arrive ever faster, each with its own
//! cookies.
//!
//! Every visitor sends HTTP requests over TCP and knows only what a browser would know. They share
//! a pool of connections, as browsers behind one proxy do, because load, gateway and origin of a
//! demo share the file descriptors of one machine.
//!
//! The load generator of the tests (`anteroom_testkit::load`) is another one, because it looks for
//! faults: its visitors send bursts, change the node and replay old tickets. These visitors behave
//! like people and like the script of the waiting page.

mod browser;
mod counters;
mod plan;
mod route;
mod visitor;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use self::browser::Network;
use self::counters::LoadCounters;
pub use self::counters::{LoadReport, RequestErrorKind, Stage};
pub use self::plan::{LoadPlan, Target};
use self::visitor::Visitor;
use super::clock::Clock;
use super::stop::{Stop, Stopper};

/// Most requests in flight at once with one node.
///
/// Each takes a descriptor here, one where the gateway accepts, and, once admitted, two more
/// between gateway and origin: 600 at most, below the usual limit of 1024 for a process. With more,
/// descriptors run out; with fewer, visitors are slower than planned.
pub const REQUESTS_AT_ONCE: usize = 150;

/// Most requests in flight at once with several nodes. As many idle connections may be open there,
/// each to a node that the next request does not use.
pub const REQUESTS_AT_ONCE_TO_SEVERAL: usize = REQUESTS_AT_ONCE / 2;

/// Running simulated visitors.
#[derive(Debug)]
pub struct LoadGenerator {
    counters: Arc<LoadCounters>,
    stopper: Stopper,
    visitors: JoinSet<()>,
}

impl LoadGenerator {
    /// Starts the visitors.
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
            visitors.spawn(run_until(visitor.run(arrives_after), stop.clone()));
        }
        Self {
            counters,
            stopper,
            visitors,
        }
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn record(&self) -> LoadReport {
        self.counters.record()
    }

    /// Returns the wait of the visitor who was admitted last.
    #[must_use]
    pub fn last_wait(&self) -> Option<Duration> {
        self.counters.last_wait()
    }

    /// Completes once every visitor has left. Safe to cancel.
    ///
    /// # Panics
    ///
    /// If a visitor panicked.
    pub async fn all_left(&mut self) {
        while let Some(ended) = self.visitors.join_next().await {
            ended.expect("a visitor does not panic and is not aborted");
        }
    }

    /// Stops every visitor, whatever it is doing, and returns the counts by stage.
    ///
    /// # Panics
    ///
    /// If a visitor panicked.
    pub async fn stop(mut self) -> LoadReport {
        self.stopper.stop();
        self.all_left().await;
        self.counters.record()
    }
}

async fn run_until(visit: impl Future<Output = ()>, mut stop: Stop) {
    tokio::select! {
        () = stop.requested() => {}
        () = visit => {}
    }
}
