//! A full minute under overload, on a clock that runs four times as fast. In real time, this test
//! would take up to two minutes.

use std::sync::Arc;
use std::time::Duration;

use anteroom::demo::checking_origin::CheckerClock;
use anteroom::gateway::Gateway;
use anteroom_embedded::DataDir;
use anteroom_node::NodeClock;
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_store::Clock;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{PLENTY, limits};
use crate::support::stage::Stage;
use crate::support::visitors::{self, short_visits};
use crate::support::{eventually, now};
use anteroom_testkit::load::{Habits, NodeAddress};

/// Speed of the clock. A faster one makes a sync period long compared with a minute.
const SPEED: u64 = 4;

struct FastClock {
    started: Instant,
    offset: Mutex<u64>,
}

impl FastClock {
    /// Starts a clock ten seconds before the end of a minute.
    fn start() -> Self {
        let minute = now().minute().next();
        Self {
            started: Instant::now(),
            offset: Mutex::new(minute.starts_at().0 - 10_000),
        }
    }
}

impl Clock for FastClock {
    fn now(&self) -> Timestamp {
        let elapsed = self.started.elapsed().as_millis();
        let elapsed = u64::try_from(elapsed).expect("a test is over before that overflows");
        Timestamp(*self.offset.lock() + elapsed * SPEED)
    }

    fn never_before(&self, at: Timestamp) {
        let behind = at.since(self.now());
        *self.offset.lock() += behind.0;
    }
}

impl NodeClock for FastClock {
    fn wall(&self) -> Timestamp {
        self.now()
    }

    fn slew(&self) {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_minute_under_overload_admits_exactly_its_limit() {
    let clock = Arc::new(FastClock::start());
    let clock_of_checker = Arc::clone(&clock);
    let checker_clock = CheckerClock::new(move || clock_of_checker.now());
    let stage = Stage::prepare_by(limits(PLENTY, 60), "5m", checker_clock).await;
    let dir = DataDir::open(&stage.data()).unwrap();
    let gateway = Gateway::start_with(&stage.config(), dir, Arc::clone(&clock)).await;
    let gateway = gateway.unwrap();
    let habits = Habits {
        pages: 1..=1,
        refresh_interval: Duration::from_millis(200)..=Duration::from_millis(200),
        ..short_visits()
    };
    let load = visitors::send(&NodeAddress::new(gateway.address()), 150, &habits);
    let first = clock.now().minute();
    let full = first.next();
    eventually("the minute after this one is over", async || {
        clock.now() >= full.next().starts_at() + DurationMs(1_000)
    })
    .await;
    let counters = load.stop().await;
    let minutes = stage.origin.minutes();
    eprintln!("admissions by minute, limit 60: {minutes:?}; {counters:?}");
    assert_eq!(minutes.get(&full), Some(&60), "{minutes:?}");
    stage.assert_within_limits();
    gateway.stop_soon().await;
}
