//! Limits hold under all faults. Two data centers with three nodes each run as processes of the
//! real program, on real stores; the origin and the visitors check them.
//!
//! Each run checks four rules. Active visitors never exceed `total_active_users`, and admissions of
//! a minute never exceed `new_users_per_minute`. No visitor passes after the end of its seat, and
//! no visitor with a valid ticket is queued. A few visitors come first and keep coming: they stay
//! active, whatever happens. Runs print how full the room is, and how quickly, and do not check it:
//! it depends on the machine.

mod active_visitors;
mod allocations;
mod changes;
mod counts;
#[cfg(debug_assertions)]
mod cut_off;
mod loads;
mod logouts;
mod newcomers;
mod nodes;
mod stores;
mod visitors;

use std::time::Duration;

use anteroom_e2e::cluster::{Cluster, Setup};
use anteroom_e2e::eventually;
use anteroom_room::rules::Limits;
use anteroom_testkit::load::{Habits, NodeAt, VisitorCounts, VisitorLoad};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::sleep;

/// Most runs at the same time, where all tests are one process (`cargo test`). nextest has a
/// process for each test, and its configuration limits those.
pub(crate) static TURNS: Semaphore = Semaphore::const_new(4);

/// Nodes of the first data center.
const FIRST: [NodeAt; 3] = [NodeAt(0, 0), NodeAt(0, 1), NodeAt(0, 2)];
/// Visitors who come first and stay.
const STAYERS: u32 = 12;
/// Visitors who come after them, and return.
const CROWD: u32 = 200;

/// Cluster whose turn it is.
struct Run {
    cluster: Cluster,
    _turn: SemaphorePermit<'static>,
}

impl Run {
    async fn start(setup: Setup) -> Self {
        let turn = TURNS.acquire().await.expect("the semaphore stays open");
        Self {
            cluster: Cluster::start(setup).await,
            _turn: turn,
        }
    }

    /// Starts a cluster with forty seats, more admissions than they need, and sessions of 12 s.
    async fn small() -> Self {
        Self::start(limits(40, 600, 12)).await
    }

    /// Sends the staying visitors, waits until they are active, sends all others, and waits until
    /// the room is full.
    async fn load(&self, habits: &Habits, seed: u64) -> Load {
        let stay = Habits {
            pages: u32::MAX..=u32::MAX,
            ..habits.clone()
        };
        let routes = self.cluster.routes();
        let stayers = VisitorLoad::at_once(&routes, STAYERS, &stay, seed);
        self.cluster.has_inside(STAYERS).await;
        let load = VisitorLoad::at_once(&routes, CROWD, habits, seed + 1);
        room_is_full(&load).await;
        Load {
            stayers,
            others: vec![load],
        }
    }

    /// Stops all visitors and checks the limits and the staying visitors.
    async fn check(&self, load: Load) -> VisitorCounts {
        let (stayers, counters) = self.check_limits(load).await;
        let entered = u64::from(STAYERS);
        assert_eq!(
            (stayers.entered, stayers.ran_out),
            (entered, 0),
            "{stayers}"
        );
        counters
    }

    /// Checks only the limits, where staying visitors had to change their data center while the
    /// room was full: it may have had no seat for them. Returns their counts, and those of all.
    async fn check_limits(&self, load: Load) -> (VisitorCounts, VisitorCounts) {
        let (stayers, counters) = Self::stop(load).await;
        self.cluster.assert_kept(&counters);
        (stayers, counters)
    }

    /// Checks only the visitors, where an allocation promises no limit.
    async fn check_visitors(&self, load: Load) -> (VisitorCounts, VisitorCounts) {
        let (stayers, counters) = Self::stop(load).await;
        self.cluster.assert_no_valid_ticket_queued(&counters);
        (stayers, counters)
    }

    async fn stop(load: Load) -> (VisitorCounts, VisitorCounts) {
        let stayers = load.stayers.stop().await;
        eprintln!("staying visitors: {stayers}");
        let mut counters = stayers.clone();
        for load in load.others {
            counters = counters.and(load.stop().await);
        }
        (stayers, counters)
    }
}

/// Visitors of a cluster.
struct Load {
    stayers: VisitorLoad,
    others: Vec<VisitorLoad>,
}

fn limits(total_active_users: u32, new_users_per_minute: u32, session_secs: u64) -> Setup {
    let limits = Limits {
        total_active_users,
        new_users_per_minute,
    };
    Setup::new(limits, session_secs)
}

/// Waits until a visitor is queued because the room is full. Not all seats may be taken then: with
/// sessions this short, one seat in eight is on its way between nodes.
async fn room_is_full(load: &VisitorLoad) {
    let is_full = async || load.counters().queued.contains_key("full");
    eventually("a visitor is queued because the room is full", is_full).await;
}

/// Lets the visitors continue.
async fn meanwhile(secs: u64) {
    sleep(Duration::from_secs(secs)).await; // tidy: time passes
}
