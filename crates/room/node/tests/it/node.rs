//! Node on an embedded store: concurrent requests, a failing store, reload, replacement.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;

use anteroom_config::overrides::{Actor, OperatorCommand};
use anteroom_config::{Config, RoomConfig};
use anteroom_embedded::faults::Faults;
use anteroom_embedded::{DataDir, Embedded};
use anteroom_history::{Point, Query, points};
use anteroom_node::{
    Arrival, HandClock, Intent, Node, NodeSettings, Outcome, Pass, RoomHandle, Stores,
};
use anteroom_room::origin::OriginOutcome;
use anteroom_room::queue_position::QueueReason;
use anteroom_room::time::{DurationMs, Minute, Timestamp};
use anteroom_store::{Clock, Identity, RecordKey, Store};

/// 2023-09-11T11:45:00Z: the first millisecond of a minute.
const START: Timestamp = Timestamp(1_694_432_700_000);

struct Bench {
    _temp: tempfile::TempDir,
    dir: DataDir,
    clock: Arc<HandClock>,
    faults: Faults,
}

impl Bench {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        Self {
            dir: DataDir::open(temp.path()).unwrap(),
            _temp: temp,
            clock: Arc::new(HandClock::new(START)),
            faults: Faults::default(),
        }
    }

    fn start(&self, rooms: &str) -> Arc<Node> {
        let deployment = self.dir.deployment().unwrap();
        let settings = NodeSettings {
            folder: None,
            ticket_keys: self.dir.ticket_keys().unwrap(),
            deployment_id: deployment.deployment_id,
            lottery_key: deployment.lottery_key,
            data_center: "sjc".to_owned(),
            history_bytes: 1 << 20,
            rooms: configs(rooms),
        };
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        let store = Embedded::with_faults(self.dir.clone(), Identity(1), clock, &self.faults);
        let store: Arc<dyn Store> = Arc::new(store);
        Node::start(
            settings,
            Stores::Alone(store),
            Arc::clone(&self.clock) as Arc<_>,
        )
        .unwrap()
    }
}

fn configs(rooms: &str) -> Vec<RoomConfig> {
    Config::parse("test.toml", rooms).unwrap().config.rooms
}

fn room_of(total: u32, rate: u32, more: &str) -> String {
    format!(
        "[[room]]\nname = \"shop\"\norigin = \"http://127.0.0.1:9\"\nbypass = []\n\
         total_active_users = {total}\nnew_users_per_minute = {rate}\n{more}\n"
    )
}

fn shop(node: &Node) -> Arc<RoomHandle> {
    node.rooms().into_iter().next().unwrap()
}

async fn request(room: &RoomHandle, ticket: Option<&str>) -> Outcome {
    let tickets: Vec<&str> = ticket.into_iter().collect();
    let arrival = Arrival {
        tickets: &tickets,
        is_navigation: true,
        gets_page: true,
        intent: Intent::Enter,
    };
    room.decide(arrival).await
}

async fn admit(room: &RoomHandle) -> Pass {
    match request(room, None).await {
        Outcome::Pass(pass) => pass,
        other => panic!("expected an admission, got {other:?}"),
    }
}

async fn reason(room: &RoomHandle) -> QueueReason {
    match request(room, None).await {
        Outcome::Queue { position, .. } => position.reason,
        other => panic!("expected to be queued, got {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_ten_thousand_concurrent_visitors_exactly_as_many_as_seats_are_admitted() {
    let bench = Bench::new();
    let node = bench.start(&room_of(50, 100_000, ""));
    let room = shop(&node);
    let tasks: Vec<_> = (0..256)
        .map(|_| {
            let room = Arc::clone(&room);
            tokio::spawn(async move {
                let mut admitted = 0;
                for _ in 0..40 {
                    if let Outcome::Pass(_) = request(&room, None).await {
                        admitted += 1;
                    }
                }
                admitted
            })
        })
        .collect();
    let mut admitted = 0;
    for task in tasks {
        admitted += task.await.unwrap();
    }
    assert_eq!(admitted, 50);
    node.stop().await;
}

#[tokio::test]
async fn a_valid_ticket_passes_and_an_invalid_one_is_a_new_visitor() {
    let bench = Bench::new();
    let node = bench.start(&room_of(1, 10, ""));
    let room = shop(&node);
    let pass = admit(&room).await;
    let ticket = pass.new_ticket.unwrap();
    let Outcome::Pass(again) = request(&room, Some(&ticket)).await else {
        panic!("it is active")
    };
    assert_eq!((again.new_ticket, again.is_admission), (None, false));
    assert_eq!(again.ticket.visitor, pass.ticket.visitor);
    for garbage in ["", "x", &ticket[1..], &"A".repeat(5_000)] {
        let outcome = request(&room, Some(garbage)).await;
        assert!(matches!(outcome, Outcome::Queue { .. }), "{garbage}");
    }
    assert_eq!(room.stats().strange_tickets_total, 4);
    node.stop().await;
}

#[tokio::test]
async fn of_several_cookies_the_best_counts() {
    let bench = Bench::new();
    let node = bench.start(&room_of(1, 10, ""));
    let room = shop(&node);
    let ticket = admit(&room).await.new_ticket.unwrap();
    let Outcome::Queue {
        ticket: Some(waiting),
        ..
    } = request(&room, None).await
    else {
        panic!("the room is full")
    };
    let arrival = Arrival {
        tickets: &[&waiting, &ticket],
        is_navigation: true,
        gets_page: true,
        intent: Intent::Enter,
    };
    assert!(matches!(room.decide(arrival).await, Outcome::Pass(_)));
    let arrival = Arrival {
        tickets: &["invalid", &ticket],
        is_navigation: true,
        gets_page: true,
        intent: Intent::Enter,
    };
    assert!(matches!(room.decide(arrival).await, Outcome::Pass(_)));
    node.stop().await;
}

#[tokio::test]
async fn on_a_full_disk_nobody_is_admitted_after_the_lease() {
    let bench = Bench::new();
    let node = bench.start(&room_of(10, 100, ""));
    let room = shop(&node);
    let ticket = admit(&room).await.new_ticket.unwrap();
    bench.faults.set_full(true);
    bench.clock.advance(DurationMs(10_000));
    assert_eq!(reason(&room).await, QueueReason::StoreUnavailable);
    assert!(!node.is_healthy());
    assert_eq!(room.stats().degraded, Some(QueueReason::StoreUnavailable));
    assert!(matches!(
        request(&room, Some(&ticket)).await,
        Outcome::Pass(_)
    ));
    bench.faults.set_full(false);
    while !node.is_healthy() {
        tokio::task::yield_now().await;
    }
    admit(&room).await;
    assert!(room.stats().failed_syncs_total > 0);
    node.stop().await;
}

#[tokio::test]
async fn on_store_failure_admit_ignores_the_limits() {
    let bench = Bench::new();
    bench.faults.set_full(true);
    let node = bench.start(&room_of(1, 1, "on_store_failure = \"admit\""));
    let room = shop(&node);
    for _ in 0..3 {
        admit(&room).await;
    }
    assert_eq!(room.stats().counters.admitted_outside_limits, 3);
    node.stop().await;
}

#[tokio::test]
async fn a_restart_after_a_goodbye_keeps_sessions_and_seats() {
    let bench = Bench::new();
    let node = bench.start(&room_of(2, 10, ""));
    let ticket = admit(&shop(&node)).await.new_ticket.unwrap();
    node.stop().await;
    let node = bench.start(&room_of(2, 10, ""));
    let room = shop(&node);
    assert!(matches!(
        request(&room, Some(&ticket)).await,
        Outcome::Pass(_)
    ));
    admit(&room).await;
    assert_eq!(reason(&room).await, QueueReason::Full);
    assert_eq!(room.stats().snapshot.phantoms, 0);
    node.stop().await;
}

#[tokio::test]
async fn a_successor_admits_only_after_its_predecessor_has_left() {
    let bench = Bench::new();
    let old = bench.start(&room_of(2, 10, ""));
    let ticket = admit(&shop(&old)).await.new_ticket.unwrap();
    let new = bench.start(&room_of(2, 10, ""));
    let room = shop(&new);
    assert!(matches!(
        request(&room, Some(&ticket)).await,
        Outcome::Pass(_)
    ));
    assert_eq!(reason(&room).await, QueueReason::StoreUnavailable);
    old.stop().await;
    while !new.is_healthy() {
        tokio::task::yield_now().await;
    }
    admit(&room).await;
    assert_eq!(reason(&room).await, QueueReason::Full);
    new.stop().await;
}

#[tokio::test]
async fn changed_limits_take_effect_at_once_and_positions_are_kept() {
    let bench = Bench::new();
    let node = bench.start(&room_of(1, 10, ""));
    let room = shop(&node);
    let inside = admit(&room).await.new_ticket.unwrap();
    let Outcome::Queue {
        ticket: Some(waiting),
        position,
        ..
    } = request(&room, None).await
    else {
        panic!("the room is full")
    };
    node.reload(configs(&room_of(2, 10, "")));
    let Outcome::Pass(pass) = request(&room, Some(&waiting)).await else {
        panic!("there is a seat for it now")
    };
    assert_eq!(pass.ticket.bucket, position.arrived_at);
    node.reload(configs(&room_of(1, 10, "")));
    assert!(matches!(
        reason(&room).await,
        QueueReason::Full | QueueReason::NotYourTurn
    ));
    assert!(matches!(
        request(&room, Some(&inside)).await,
        Outcome::Pass(_)
    ));
    node.stop().await;
}

#[tokio::test]
async fn a_room_that_is_removed_and_added_again_admits() {
    let bench = Bench::new();
    let node = bench.start(&room_of(3, 10, ""));
    admit(&shop(&node)).await;
    node.reload(vec![]);
    assert!(node.rooms().is_empty());
    node.reload(configs(&room_of(3, 10, "")));
    admit(&shop(&node)).await;
    node.stop().await;
}

#[tokio::test]
async fn the_ledger_of_a_deleted_room_ends_one_session_after_its_last_sync() {
    let bench = Bench::new();
    let node = bench.start(&room_of(3, 10, "session_duration = \"10m\""));
    admit(&shop(&node)).await;
    node.end_ledgers(&[shop(&node).id().clone()]);
    node.reload(vec![]);
    node.stop().await;
    let clock = Arc::clone(&bench.clock) as Arc<dyn Clock>;
    let store = Embedded::new(bench.dir.clone(), Identity(1), clock);
    let key = RecordKey("shop".to_owned());
    bench.clock.advance(DurationMs::from_secs(600));
    assert_ne!(store.load(&key).await.unwrap().record, None);
    // A seat may be two intervals longer than a session.
    bench.clock.advance(DurationMs::from_secs(60));
    assert_eq!(store.load(&key).await.unwrap().record, None);
}

#[tokio::test]
async fn the_ledger_of_a_room_that_was_only_removed_stays() {
    let bench = Bench::new();
    let node = bench.start(&room_of(3, 10, ""));
    admit(&shop(&node)).await;
    node.reload(vec![]);
    node.stop().await;
    let clock = Arc::clone(&bench.clock) as Arc<dyn Clock>;
    let store = Embedded::new(bench.dir.clone(), Identity(1), clock);
    bench.clock.advance(DurationMs::from_secs(7 * 86_400));
    let loaded = store.load(&RecordKey("shop".to_owned())).await.unwrap();
    assert_ne!(loaded.record, None);
}

#[tokio::test]
async fn a_revoked_session_stays_rejected_after_a_restart() {
    let bench = Bench::new();
    let node = bench.start(&room_of(1, 10, ""));
    let room = shop(&node);
    let pass = admit(&room).await;
    let ticket = pass.new_ticket.unwrap();
    assert!(room.revoke(pass.ticket).await);
    assert!(
        !room.revoke(pass.ticket).await,
        "a logout that is sent again"
    );
    let Outcome::Pass(newcomer) = request(&room, Some(&ticket)).await else {
        panic!("its seat is free for a new visitor")
    };
    assert_ne!(newcomer.ticket.visitor, pass.ticket.visitor);
    assert_eq!(reason(&room).await, QueueReason::Full);
    node.stop().await;
    let node = bench.start(&room_of(1, 10, ""));
    let outcome = request(&shop(&node), Some(&ticket)).await;
    assert!(matches!(outcome, Outcome::Queue { .. }), "{outcome:?}");
    node.stop().await;
}

/// Returns the points of the first minutes, one for each minute.
async fn history(room: &RoomHandle, minutes: u64) -> Vec<Point> {
    let until = Minute(START.minute().0 + minutes);
    let query = Query::new(START.minute(), until, Some(1), until).unwrap();
    points(&room.history_rows(&query).await.unwrap(), &query)
}

#[tokio::test]
async fn a_minute_is_written_once_it_is_over_and_survives_a_restart() {
    let bench = Bench::new();
    let node = bench.start(&room_of(3, 100, ""));
    let room = shop(&node);
    for _ in 0..3 {
        admit(&room).await;
    }
    assert_eq!(reason(&room).await, QueueReason::Full);
    node.write_history().await;
    assert_eq!(history(&room, 5).await, [], "the minute still runs");
    bench.clock.advance(DurationMs::from_secs(61));
    node.write_history().await;
    let found = history(&room, 5).await;
    assert_eq!(found.len(), 1);
    let (figures, seen) = (&found[0].figures, &found[0].room);
    assert_eq!((figures.admitted, figures.arrivals), (3, 4));
    assert_eq!(seen.new_users_per_minute.max, 100);
    assert_eq!(seen.total_active_users.last, 3);
    node.stop().await;

    let node = bench.start(&room_of(3, 100, ""));
    let room = shop(&node);
    // Its first sync takes the folder.
    assert_eq!(reason(&room).await, QueueReason::Full);
    let again = history(&room, 5).await;
    assert_eq!(again[0].figures, found[0].figures);
    assert_eq!(again.len(), 2, "a process that ends writes its last minute");
    node.stop().await;
}

#[tokio::test]
async fn rows_wait_for_a_disk_that_is_full() {
    let bench = Bench::new();
    let node = bench.start(&room_of(3, 100, ""));
    let room = shop(&node);
    admit(&room).await;
    bench.faults.set_full(true);
    bench.clock.advance(DurationMs::from_secs(60));
    node.write_history().await;
    let stats = node.history_stats();
    assert!(stats.failed_writes > 0, "{stats:?}");
    assert_eq!((stats.written, stats.dropped, stats.waiting), (0, 0, 2));
    bench.faults.set_full(false);
    node.write_history().await;
    let stats = node.history_stats();
    assert_eq!((stats.written, stats.waiting), (2, 0));
    assert_eq!(history(&room, 5).await[0].figures.admitted, 1);
    node.stop().await;
}

#[tokio::test]
async fn while_the_origin_is_down_nobody_is_admitted() {
    let bench = Bench::new();
    let node = bench.start(&room_of(10, 100, ""));
    let room = shop(&node);
    admit(&room).await;
    for _ in 0..3 {
        room.handle_origin_outcome(OriginOutcome::Unreachable);
    }
    assert_eq!(reason(&room).await, QueueReason::OriginDown);
    room.handle_origin_outcome(OriginOutcome::Good);
    admit(&room).await;
    node.stop().await;
}

#[tokio::test]
async fn the_counters_allocation_takes_numbers_from_the_store() {
    let bench = Bench::new();
    let node = bench.start(&room_of(5, 100, "allocation = \"counters\""));
    let room = shop(&node);
    for _ in 0..5 {
        admit(&room).await;
    }
    assert_eq!(reason(&room).await, QueueReason::Full);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_stream_learns_of_a_free_seat_and_takes_none() {
    let bench = Bench::new();
    let node = bench.start(&room_of(1, 100, ""));
    let room = shop(&node);
    let inside = admit(&room).await;
    let Outcome::Queue {
        ticket: Some(cookie),
        ..
    } = request(&room, None).await
    else {
        panic!("the room is full");
    };
    let cookie_inside = inside.new_ticket.clone().unwrap();
    assert_eq!(room.waiting_ticket(&[&cookie_inside]), None);
    assert_eq!(room.waiting_ticket(&["no ticket"]), None);
    let waiting = [room.waiting_ticket(&[&cookie]).unwrap()];
    for _ in 0..8 {
        bench.clock.advance(DurationMs(300));
        assert!(matches!(
            request(&room, Some(&cookie)).await,
            Outcome::Queue { .. }
        ));
        assert_eq!(room.who_may_come(&waiting), [false], "the seat is taken");
    }
    room.revoke(inside.ticket).await;
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(30);
    while room.who_may_come(&waiting) != [true] {
        assert!(
            tokio::time::Instant::now() < deadline,
            "the free seat is not seen"
        );
        // No request comes; the room's own loop learns of the seat.
        tokio::task::yield_now().await;
    }
    assert_eq!(room.stats().counters.admitted, 1, "it takes no seat");
    node.reload(configs(&room_of(1, 100, "queue_all = true")));
    assert_eq!(
        room.who_may_come(&waiting),
        [false],
        "the operator queues all visitors"
    );
    node.reload(configs(&room_of(1, 100, "")));
    let obey = async |command| room.execute(&command, &Actor::default()).await.unwrap();
    obey(OperatorCommand::Pause { message: None }).await;
    for _ in 0..8 {
        bench.clock.advance(DurationMs(300));
        assert_eq!(room.who_may_come(&waiting), [false], "a pause");
    }
    obey(OperatorCommand::Resume).await;
    assert_eq!(room.who_may_come(&waiting), [true], "it is over");
    assert!(matches!(
        request(&room, Some(&cookie)).await,
        Outcome::Pass(_)
    ));
    node.stop().await;
}
