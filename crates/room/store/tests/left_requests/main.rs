//! Distant writers of one root's record, who leave their requests beside it.

mod children;
mod fuzz;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anteroom_room::sync::Reply;
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_store::memory::Memory;
use anteroom_store::{
    Clock, LEFT_FOR, LeftId, LeftRequest, NOTE_FOR, Note, RecordKey, Store, StoredLedger,
    conformance,
};
use children::{Child, StoppedClock, begin, key, root};
use tokio::time::{Instant, sleep};

/// Delay of a message in one direction.
const ONE_WAY: Duration = Duration::from_millis(100);
/// Time of a round trip, with what timers add.
const TRIP: Duration = Duration::from_millis(204);

fn memory() -> Memory {
    Memory::new(StoppedClock::shared())
}

/// Returns a store in which a deployment has begun.
async fn deployed() -> Memory {
    let store = memory();
    begin(&store).await;
    store
}

#[tokio::test]
async fn a_store_in_memory_keeps_left_requests() {
    conformance::check(&memory()).await.unwrap();
    conformance::check_left_requests(&memory()).await.unwrap();
}

#[tokio::test]
async fn a_store_in_memory_keeps_histories() {
    conformance::check_history(&memory()).await.unwrap();
}

#[tokio::test]
async fn records_and_notes_end_by_the_clock_of_the_store() {
    let clock = Arc::new(SteppedClock(AtomicU64::new(1_700_000_000_000)));
    let store = Memory::new(Arc::clone(&clock) as Arc<dyn Clock>);
    let pass = async |by: DurationMs| {
        clock.0.fetch_add(by.0, Ordering::Relaxed);
    };
    conformance::check_ends(&store, pass).await.unwrap();
    let key = key();
    let known = store.load(&key).await.unwrap().expected();
    let note = Note {
        name: "node".to_owned(),
        value: b"note".to_vec(),
    };
    store.load_changed(&key, known, Some(&note)).await.unwrap();
    pass(DurationMs(NOTE_FOR.0 - 1)).await;
    assert_eq!(store.notes(&key).await.unwrap(), [note]);
    pass(DurationMs(1)).await;
    assert_eq!(store.notes(&key).await.unwrap(), []);
}

/// Clock that a test moves on.
struct SteppedClock(AtomicU64);

impl Clock for SteppedClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Relaxed))
    }

    fn never_before(&self, _: Timestamp) {}
}

#[tokio::test(start_paused = true)]
async fn left_requests_expire() {
    let (store, key) = (memory(), key());
    let leave = |id: u8| {
        let id = LeftId(vec![id]);
        let value = Vec::new();
        store.load_and_leave(&key, Some(LeftRequest { id, value }))
    };
    leave(1).await.unwrap();
    let lasts = Duration::from_millis(LEFT_FOR.0);
    sleep(lasts.saturating_sub(Duration::from_millis(1))).await; // tidy: paused time
    assert_eq!(leave(2).await.unwrap().left.len(), 2);
    sleep(lasts).await; // tidy: paused time
    assert_eq!(leave(3).await.unwrap().left.len(), 1);
}

/// Syncs all children `rounds` times; returns how long each sync took.
async fn sync_all(children: Vec<Child>, rounds: u32) -> (Vec<Child>, Vec<Duration>) {
    let tasks = children.into_iter().map(|mut child| {
        tokio::spawn(async move {
            let mut took = Vec::new();
            for _ in 0..rounds {
                let began = Instant::now();
                child.sync().await;
                took.push(began.elapsed());
                // Not in step, as in reality.
                sleep(child.period()).await; // tidy: paused time
            }
            (child, took)
        })
    });
    let (mut children, mut all) = (Vec::new(), Vec::new());
    for task in tasks.collect::<Vec<_>>() {
        let (child, took) = task.await.expect("no child panics");
        children.push(child);
        all.extend(took);
    }
    (children, all)
}

#[tokio::test(start_paused = true)]
async fn fifty_distant_writers_all_get_a_reply_within_three_round_trips() {
    const WRITERS: u32 = 50;
    const ROUNDS: u32 = 20;
    let store = deployed().await;
    store.set_delay(ONE_WAY);
    let ledgers = (0..WRITERS).map(|_| root(&store));
    let children = ledgers.zip(1..).map(|(ledger, id)| Child::new(ledger, id));
    let (children, first) = sync_all(children.collect(), 1).await;
    // One trip to know that the record is the first, one to lose, and three to be applied.
    assert!(first.iter().all(|took| *took <= TRIP * 5), "{first:?}");
    let before = store.requests();
    let (children, took) = sync_all(children, ROUNDS).await;
    let (requests, syncs) = (store.requests() - before, u64::from(WRITERS * ROUNDS));
    assert!(
        requests <= syncs * 3,
        "{requests} requests for {syncs} syncs"
    );
    // One more where the sync before met nobody, so that this one leaves its request late.
    assert!(took.iter().all(|took| *took <= TRIP * 4), "{took:?}");
    let late = took.iter().filter(|took| **took > TRIP * 3).count();
    assert!(late * 50 <= took.len(), "{late} of {syncs} syncs");
    // All that is left was applied, and every child has what it was granted.
    let left = store.load_and_leave(&key(), None).await.unwrap().left;
    assert!(left.len() <= 1, "{left:?}");
    let ledger = root(&store).read().await.unwrap();
    assert_eq!(ledger.children().len(), WRITERS as usize);
    for child in &children {
        let recorded = &ledger.children()[&child.id()];
        assert_eq!(recorded.number, child.number());
        assert_eq!(recorded.balance.seats, child.seats());
        assert!(child.seats() > 0, "there are enough for all");
    }
}

#[tokio::test(start_paused = true)]
async fn writers_who_meet_nobody_leave_nothing() {
    let store = deployed().await;
    store.set_delay(ONE_WAY);
    let (mut one, mut other) = (Child::new(root(&store), 1), Child::new(root(&store), 2));
    one.sync().await;
    other.sync().await;
    for _ in 0..5 {
        let before = store.requests();
        let began = Instant::now();
        one.sync().await;
        other.sync().await;
        assert_eq!(store.requests() - before, 4, "a load and a write each");
        assert!(began.elapsed() <= TRIP * 4);
        let left = store.load_and_leave(&key(), None).await.unwrap().left;
        assert_eq!(left, []);
    }
}

#[tokio::test]
async fn the_request_of_a_sender_that_has_ended_is_applied() {
    let store = deployed().await;
    let (mut one, mut other) = (Child::new(root(&store), 1), Child::new(root(&store), 2));
    one.sync().await;
    other.sync().await;
    let request = other.left_request();
    store.load_and_leave(&key(), Some(request)).await.unwrap();
    one.sync().await;
    let ledger = root(&store).read().await.unwrap();
    assert_eq!(ledger.children()[&other.id()].number, other.number());
    let left = store.load_and_leave(&key(), None).await.unwrap().left;
    assert_eq!(left, [], "it is removed");
    // The sender lives on after all, and does not know of that request.
    assert!(matches!(other.sync().await, Reply::Granted(_)));
}

#[tokio::test]
async fn unreadable_requests_are_removed_and_do_no_harm() {
    let store = deployed().await;
    let mut one = Child::new(root(&store), 1);
    one.sync().await;
    let mut foreign = one.left_request();
    foreign.id = LeftId(b"of another name".to_vec());
    let damaged = LeftRequest {
        id: LeftId(vec![0; 16]),
        value: vec![1, 2, 3],
    };
    for request in [foreign, damaged] {
        store.load_and_leave(&key(), Some(request)).await.unwrap();
    }
    one.sync().await;
    let ledger = root(&store).read().await.unwrap();
    assert_eq!(ledger.children().len(), 1);
    assert_eq!(ledger.children()[&one.id()].number, one.number());
    let left = store.load_and_leave(&key(), None).await.unwrap().left;
    assert_eq!(left, []);
}

#[tokio::test]
async fn ledgers_of_data_centers_look_at_no_left_requests() {
    let store = deployed().await;
    let mut of_root = Child::new(root(&store), 1);
    of_root.sync().await;
    let here = RecordKey("shop/here".to_owned());
    let ledger = StoredLedger::new(
        Arc::new(store.clone()),
        here.clone(),
        "shop",
        anteroom_store::LedgerRole::DataCenter(anteroom_room::id::DataCenterId(1)),
    );
    let request = of_root.left_request();
    store.load_and_leave(&here, Some(request)).await.unwrap();
    Child::new(ledger, 2).sync().await;
    let left = store.load_and_leave(&here, None).await.unwrap().left;
    assert_eq!(left.len(), 1);
}
