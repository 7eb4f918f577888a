//! Do the limits hold while everything goes wrong that can? Two data centers with three nodes each,
//! as processes of the real program, on real stores; judged at the origin and by the visitors.
//!
//! In each run: never more inside than `total_active_users`, never more admissions in a minute than
//! `new_users_per_minute`, nobody passes whose seat has ended, and nobody with a valid ticket is
//! queued. A few visitors come before all others and keep coming: they stay inside, whatever
//! happens. How full the room is, and how quickly, is printed and not judged: it depends on the
//! machine.

mod allocations;
mod changes;
mod crowds;
#[cfg(debug_assertions)]
mod cut_off;
mod insiders;
mod logouts;
mod nodes;
mod stores;
mod visitors;

use std::time::Duration;

use anteroom_e2e::cluster::{Cluster, NodeAt, Setup};
use anteroom_e2e::crowd::{Crowd, Habits, Tally};
use anteroom_e2e::eventually;
use anteroom_room::rules::Limits;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::sleep;

/// So many runs beside each other share the processors of one machine, where all tests are one
/// process (`cargo test`). nextest has a process for each test, and its configuration limits those.
pub(crate) static TURNS: Semaphore = Semaphore::const_new(4);

/// The nodes of the first data center.
const FIRST: [NodeAt; 3] = [NodeAt(0, 0), NodeAt(0, 1), NodeAt(0, 2)];
/// How many come first and stay.
const STAYERS: u32 = 12;
/// How many come after them, and come again.
const CROWD: u32 = 200;

/// A cluster whose turn it is.
struct Run {
    cluster: Cluster,
    _turn: SemaphorePermit<'static>,
}

impl Run {
    async fn start(setup: Setup) -> Self {
        let turn = TURNS.acquire().await.expect("nobody closes it");
        Self {
            cluster: Cluster::start(setup).await,
            _turn: turn,
        }
    }

    /// Forty seats, more admissions than they need, sessions of 12 s.
    async fn small() -> Self {
        Self::start(limits(40, 600, 12)).await
    }

    /// Sends those who stay, waits until they are inside, sends all others, and waits until the
    /// room is full.
    async fn load(&self, habits: &Habits, seed: u64) -> Load {
        let stay = Habits {
            pages: u32::MAX..=u32::MAX,
            ..habits.clone()
        };
        let doors = self.cluster.doors();
        let stayers = Crowd::at_once(&doors, STAYERS, &stay, seed);
        self.cluster.has_inside(STAYERS).await;
        let crowd = Crowd::at_once(&doors, CROWD, habits, seed + 1);
        is_told_full(&crowd).await;
        Load {
            stayers,
            others: vec![crowd],
        }
    }

    /// Sends all home and judges: the limits, and those who stayed.
    async fn judge(&self, load: Load) -> Tally {
        let (stayers, counters) = self.judge_limits(load).await;
        let entered = u64::from(STAYERS);
        assert_eq!(
            (stayers.entered, stayers.ran_out),
            (entered, 0),
            "{stayers}"
        );
        counters
    }

    /// The same where those who stay had to change their data center while the room was full: they
    /// may have found no seat there. Returns what they met, and what all met.
    async fn judge_limits(&self, load: Load) -> (Tally, Tally) {
        let (stayers, counters) = Self::go_home(load).await;
        self.cluster.assert_kept(&counters);
        (stayers, counters)
    }

    /// The same where an allocation had its way that promises no limit.
    async fn judge_visitors(&self, load: Load) -> (Tally, Tally) {
        let (stayers, counters) = Self::go_home(load).await;
        self.cluster.assert_nobody_thrown_out(&counters);
        (stayers, counters)
    }

    async fn go_home(load: Load) -> (Tally, Tally) {
        let stayers = load.stayers.go_home().await;
        eprintln!("those who stay: {stayers}");
        let mut counters = stayers.clone();
        for crowd in load.others {
            counters = counters.and(crowd.go_home().await);
        }
        (stayers, counters)
    }
}

/// Who is on the way to a cluster.
struct Load {
    stayers: Crowd,
    others: Vec<Crowd>,
}

fn limits(total_active_users: u32, new_users_per_minute: u32, session_secs: u64) -> Setup {
    let limits = Limits {
        total_active_users,
        new_users_per_minute,
    };
    Setup::new(limits, session_secs)
}

/// Waits until somebody is told that the room is full. Not until all seats are taken: of sessions
/// that are as short as here one seat in eight is on its way from one node to another.
async fn is_told_full(crowd: &Crowd) {
    let is_full = async || crowd.counters().queued.contains_key("full");
    eventually("somebody is told that the room is full", is_full).await;
}

/// Lets the crowd do what it does.
async fn meanwhile(secs: u64) {
    sleep(Duration::from_secs(secs)).await; // tidy: time passes
}
