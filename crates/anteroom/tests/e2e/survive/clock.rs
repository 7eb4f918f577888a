//! The machine's wall clock is set an hour forward, then back, while a gateway runs and while it
//! does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use anteroom::gateway::Gateway;
use anteroom_embedded::DataDir;
use anteroom_node::{RoomClock, WallClock};
use anteroom_room::time::{DurationMs, Timestamp};

use crate::limits::limits;
use crate::support::operator::Operator;
use crate::support::stage::Stage;
use crate::support::visitors::{self, short_visits};
use crate::support::{eventually, now};
use anteroom_testkit::load::VisitorLoad;

/// An hour, in milliseconds.
const HOUR: i64 = 3_600_000;

/// A wall clock that is wrong by this number of milliseconds.
struct WrongBy(Arc<AtomicI64>);

impl WallClock for WrongBy {
    fn read(&self) -> Timestamp {
        Timestamp(now().0.saturating_add_signed(self.0.load(Ordering::SeqCst)))
    }
}

/// A room in this process, with a wall clock that can be set.
struct Room {
    stage: Stage,
    wrong_by: Arc<AtomicI64>,
    gateway: Option<Gateway>,
}

impl Room {
    async fn open() -> Self {
        let mut room = Self {
            stage: Stage::prepare(limits(10, 300), "10s").await,
            wrong_by: Arc::default(),
            gateway: None,
        };
        room.restart().await;
        room
    }

    async fn restart(&mut self) {
        if let Some(gateway) = self.gateway.take() {
            gateway.stop().await;
        }
        let dir = DataDir::open(&self.stage.data()).unwrap();
        let wall = WrongBy(Arc::clone(&self.wrong_by));
        let clock = Arc::new(RoomClock::with_wall_clock(dir.clock(), wall));
        let gateway = Gateway::start_with(&self.stage.config(), dir, clock).await;
        let gateway = gateway.unwrap();
        self.stage.address.set(Some(gateway.address()));
        self.gateway = Some(gateway);
    }

    fn set_wall_clock(&self, wrong_by: i64) {
        self.wrong_by.store(wrong_by, Ordering::SeqCst);
    }

    /// Waits until the endless visitors have opened more pages and others have entered, and fails
    /// unless the clock offset in the metrics is `offset`.
    async fn assert_serving(&self, endless: &VisitorLoad, load: &VisitorLoad, offset: i64) {
        let (pages, entered) = (endless.counters().pages, load.counters().entered);
        eventually("active visitors pass, and others enter", async || {
            endless.counters().pages >= pages + 20 && load.counters().entered >= entered + 3
        })
        .await;
        let operator = Operator::at(self.gateway.as_ref().unwrap().admin());
        let seen = operator.metric("anteroom_clock_offset_seconds").await;
        let seen = seen.expect("it is always shown");
        assert!(
            (seen - offset as f64 / 1_000.0).abs() < 30.0,
            "{seen} of {offset} ms"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wall_clock_set_by_an_hour_moves_neither_seats_nor_minutes() {
    let started_at = now();
    let mut room = Room::open().await;
    let endless = room.stage.fill(4).await;
    let load = visitors::send(&room.stage.address, 30, &short_visits());
    room.assert_serving(&endless, &load, 0).await;
    for wrong_by in [HOUR, -HOUR] {
        room.set_wall_clock(wrong_by);
        room.assert_serving(&endless, &load, -wrong_by).await;
        room.restart().await;
        room.assert_serving(&endless, &load, -wrong_by).await;
    }
    visitors::stop_endless(endless, 4).await;
    visitors::stop(load).await;
    room.stage.assert_within_limits();
    let tolerance = DurationMs(1_000);
    for (accepted_at, path) in room.stage.origin.first_paths() {
        let is_ours = accepted_at + tolerance >= started_at && accepted_at <= now() + tolerance;
        assert!(
            is_ours,
            "{path} at {accepted_at:?}, in a test that began at {started_at:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_reboot_with_a_slow_clock_room_time_follows_the_journal() {
    let mut room = Room::open().await;
    let endless = room.stage.fill(4).await;
    let load = visitors::send(&room.stage.address, 30, &short_visits());
    room.assert_serving(&endless, &load, 0).await;
    room.gateway.take().unwrap().stop().await;
    let file = room.stage.data().join("clock");
    std::fs::write(&file, "another-boot 0\n").unwrap();
    room.set_wall_clock(-HOUR);
    room.restart().await;
    room.assert_serving(&endless, &load, HOUR).await;
    visitors::stop_endless(endless, 4).await;
    visitors::stop(load).await;
    // Room time stood still while nothing ran, so seats may end a little late. Only that is
    // tolerated.
    let verdict = room.stage.origin.verdict();
    assert!(!verdict.is_over_total_active_users(), "{verdict:?}");
    assert!(!verdict.is_over_new_users_per_minute(), "{verdict:?}");
}
