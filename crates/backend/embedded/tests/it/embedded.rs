//! Embedded store: conformance, crashes, losses and damaged files.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anteroom_config::overrides::{Record as _, RoomOverrides};
use anteroom_embedded::{DataDir, Embedded, faults::Faults};
use anteroom_room::allocation::{CounterKey, CounterScope};
use anteroom_room::id::{DataCenterId, NodeId};
use anteroom_room::rules::{Limits, NewUsersWindow};
use anteroom_room::seats::SeatRow;
use anteroom_room::sync::{
    LeaseBalance, LeaseDemand, LeaseReply, LeaseUsage, RecordStamp, Reply, RoomFacts, SyncRequest,
};
use anteroom_room::time::{DurationMs, Minute, Timestamp};
use anteroom_room::waiting::WaitingForecast;
use anteroom_store::{
    Clock, CounterName, HistoryBound, HistoryGrain, HistoryName, HistoryRow, HistoryRows,
    HistorySpan, Identity, LedgerRole, RecordKey, RoomOverrideStore, Store, StoreError,
    StoredLedger, SyncError, conformance,
};

/// First millisecond of a minute.
const START: Timestamp = Timestamp(1_694_432_700_000);

struct ManualClock(AtomicU64);

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }

    fn never_before(&self, at: Timestamp) {
        self.0.fetch_max(at.0, Ordering::SeqCst);
    }
}

struct Bench {
    _temp: tempfile::TempDir,
    dir: DataDir,
    clock: Arc<ManualClock>,
    faults: Faults,
}

impl Bench {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        Self {
            dir: DataDir::open(&temp.path().join("data")).unwrap(),
            _temp: temp,
            clock: Arc::new(ManualClock(AtomicU64::new(1_694_432_700_000))),
            faults: Faults::default(),
        }
    }

    fn store(&self) -> Arc<Embedded> {
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        let dir = self.dir.clone();
        Arc::new(Embedded::with_faults(dir, Identity(1), clock, &self.faults))
    }
}

async fn sync(store: &Arc<Embedded>, request: &SyncRequest) -> Result<Reply, SyncError> {
    let store = Arc::clone(store) as Arc<dyn Store>;
    let ledger = StoredLedger::new(store, shop(), "shop", LedgerRole::Alone);
    ledger.sync(request).await
}

fn shop() -> RecordKey {
    RecordKey("shop".to_owned())
}

fn request(child: u64, number: u64, generation: u32, now: Timestamp) -> SyncRequest {
    SyncRequest {
        process: NodeId(child),
        replaces: Vec::new(),
        child: NodeId(child),
        data_center: DataCenterId(1),
        sent_at: now,
        stamp: RecordStamp::default(),
        is_of_ledger: false,
        is_join: false,
        known_closed: Timestamp::ZERO,
        is_read_under_parent: true,
        parent: None,
        voided_by: None,
        witnessed_epoch: None,
        number,
        applied_reply: (number > 1).then_some(number - 1),
        generation: (generation != 0).then_some(generation),
        is_final: generation == 0,
        balance: LeaseBalance::default(),
        demand: LeaseDemand {
            slots: 5,
            credits: 2,
            ..LeaseDemand::default()
        },
        used: LeaseUsage::default(),
        admitted: vec![],
        row: SeatRow::default(),
        closed_through: now,
        longest_seat: DurationMs(310_000),
        longest_known: DurationMs(310_000),
        nodes: 1,
        waiting: WaitingForecast::default(),
        revocations: vec![],
        revoked_version: 0,
        rejects_through: 0,
        settings: RoomFacts {
            limits: Limits {
                total_active_users: 10,
                new_users_per_minute: 600,
            },
            window: NewUsersWindow::Minute,
            longest_seat: DurationMs(310_000),
            pacing: false,
            needs_traffic: false,
        },
        is_leaving: false,
    }
}

async fn grant(store: &Arc<Embedded>, request: &SyncRequest) -> LeaseReply {
    match sync(store, request).await {
        Ok(Reply::Granted(reply)) => reply,
        other => panic!("expected a lease, got {other:?}"),
    }
}

#[tokio::test]
async fn the_embedded_store_keeps_histories() {
    let bench = Bench::new();
    let store = bench.store();
    store.load(&shop()).await.unwrap();
    conformance::check_history(&*store).await.unwrap();
}

fn history_of(value: &[u8]) -> [HistoryRows; 1] {
    let row = HistoryRow {
        grain: HistoryGrain::Minute,
        begins: START.minute(),
        node: NodeId(1),
        value: value.to_vec(),
    };
    [HistoryRows {
        name: HistoryName("shop".to_owned()),
        rows: vec![row],
    }]
}

const AMPLE: HistoryBound = HistoryBound {
    bytes: 1 << 20,
    rooms: 1,
};

async fn read_history(store: &Embedded) -> Result<Vec<Vec<u8>>, StoreError> {
    let span = HistorySpan {
        grain: HistoryGrain::Minute,
        from: START.minute(),
        until: START.minute().next(),
    };
    let rows = store.history(&HistoryName("shop".to_owned()), span).await?;
    Ok(rows.into_iter().map(|row| row.value).collect())
}

#[tokio::test]
async fn a_history_survives_a_restart_and_belongs_to_the_process_with_the_lock() {
    let bench = Bench::new();
    let first = bench.store();
    first.load(&shop()).await.unwrap();
    first.put_history(&history_of(b"one"), AMPLE).await.unwrap();
    let second = bench.store();
    let held = read_history(&second).await;
    assert!(matches!(held, Err(StoreError::Held { .. })), "{held:?}");
    first.close().await;
    second.load(&shop()).await.unwrap();
    assert_eq!(read_history(&second).await.unwrap(), [b"one"]);
}

#[tokio::test]
async fn a_damaged_or_deleted_history_begins_anew_and_costs_no_ledger() {
    let bench = Bench::new();
    let store = bench.store();
    let reply = grant(&store, &request(1, 1, 0, START)).await;
    store.put_history(&history_of(b"one"), AMPLE).await.unwrap();
    store.close().await;
    let file = bench.dir.path().join("history.redb");
    fs::write(
        &file,
        b"this is no database, and long enough to be read as one",
    )
    .unwrap();
    let store = bench.store();
    let again = grant(&store, &request(2, 1, 0, START)).await;
    assert_eq!(again.snapshot.epoch, reply.snapshot.epoch);
    assert!(read_history(&store).await.unwrap().is_empty());
    assert!(bench.dir.path().join("history.redb.damaged").exists());
    fs::remove_file(&file).unwrap();
    store.put_history(&history_of(b"two"), AMPLE).await.unwrap();
    assert_eq!(read_history(&store).await.unwrap(), [b"two"]);
    assert!(file.exists());
}

#[tokio::test]
async fn a_full_disk_fails_the_history_and_loses_nothing_of_it() {
    let bench = Bench::new();
    let store = bench.store();
    store.load(&shop()).await.unwrap();
    store.put_history(&history_of(b"one"), AMPLE).await.unwrap();
    bench.faults.set_full(true);
    let failed = store.put_history(&history_of(b"two"), AMPLE).await;
    assert!(matches!(failed, Err(StoreError::Unavailable { .. })));
    bench.faults.set_full(false);
    assert_eq!(read_history(&store).await.unwrap(), [b"one"]);
    store.put_history(&history_of(b"two"), AMPLE).await.unwrap();
    assert_eq!(read_history(&store).await.unwrap(), [b"two"]);
}

#[tokio::test]
async fn the_embedded_store_conforms() {
    let bench = Bench::new();
    conformance::check(&*bench.store()).await.unwrap();
    let real = DataDir::open(&bench.dir.path().join("real")).unwrap();
    let store = Embedded::new(
        real,
        Identity(1),
        Arc::clone(&bench.clock) as Arc<dyn Clock>,
    );
    conformance::check(&store).await.unwrap();
}

#[tokio::test]
async fn records_end_by_the_clock_of_the_store_even_over_a_restart() {
    let bench = Bench::new();
    let pass = async |by: DurationMs| {
        bench.clock.0.fetch_add(by.0, Ordering::Relaxed);
    };
    let store = bench.store();
    conformance::check_ends(&*store, pass).await.unwrap();
    store.close().await;
    let (first, key) = (bench.store(), RecordKey("(rooms)/page/1".to_owned()));
    let lifetime = DurationMs::from_secs(60);
    assert!(first.keep_for(&key, Some(b"page"), lifetime).await.unwrap());
    first.close().await;
    let next = bench.store();
    assert_ne!(next.load(&key).await.unwrap().record, None);
    pass(lifetime).await;
    assert_eq!(next.load(&key).await.unwrap().record, None);
    next.close().await;
    assert_eq!(bench.store().load(&key).await.unwrap().record, None);
}

#[tokio::test]
async fn the_lease_of_a_crashed_predecessor_counts_as_used() {
    let bench = Bench::new();
    let first = bench.store();
    let reply = grant(&first, &request(1, 1, 0, bench.clock.now())).await;
    assert_eq!(reply.granted.seats, 5);
    drop(first);
    let second = bench.store();
    let reply = grant(&second, &request(2, 1, 0, bench.clock.now())).await;
    assert_eq!(
        reply.snapshot.phantoms, 5,
        "five seats; its credits had no sessions to extend"
    );
    assert_eq!(reply.granted.seats, 5);
}

#[tokio::test]
async fn room_time_never_falls_behind_the_journal() {
    let bench = Bench::new();
    let before = bench.clock.now();
    grant(&bench.store(), &request(1, 1, 0, before)).await;
    bench.clock.0.fetch_sub(3_600_000, Ordering::SeqCst);
    let loaded = bench.store().load(&shop()).await.unwrap();
    assert_eq!(loaded.now, before);
}

#[tokio::test]
async fn a_successor_gets_nothing_before_its_predecessor_closes() {
    let bench = Bench::new();
    let old = bench.store();
    grant(&old, &request(1, 1, 0, bench.clock.now())).await;
    let new = bench.store();
    let error = new.load(&shop()).await.unwrap_err();
    assert!(matches!(error, StoreError::Held { .. }), "{error}");
    let mut goodbye = request(1, 2, 1, bench.clock.now());
    goodbye.is_leaving = true;
    grant(&old, &goodbye).await;
    old.close().await;
    assert!(matches!(old.load(&shop()).await, Err(StoreError::Closed)));
    let reply = grant(&new, &request(2, 1, 0, bench.clock.now())).await;
    assert_eq!(
        reply.snapshot.phantoms, 0,
        "the predecessor returned everything"
    );
}

#[tokio::test]
async fn a_full_disk_fails_writes_until_it_works_again() {
    let bench = Bench::new();
    let store = bench.store();
    grant(&store, &request(1, 1, 0, bench.clock.now())).await;
    bench.faults.set_full(true);
    for number in 2..4 {
        let request = request(1, number, 1, bench.clock.now());
        let failed = sync(&store, &request).await;
        assert!(failed.is_err());
    }
    bench.faults.set_full(false);
    let reply = grant(&store, &request(1, 4, 1, bench.clock.now())).await;
    assert_eq!(reply.generation, Some(1), "the lease continues");
    assert_eq!(reply.snapshot.phantoms, 0);
    assert_eq!(store.rewritten_total(), 0);
}

#[tokio::test]
async fn a_deleted_folder_is_rewritten_from_memory() {
    let bench = Bench::new();
    let store = bench.store();
    grant(&store, &request(1, 1, 0, bench.clock.now())).await;
    fs::remove_dir_all(bench.dir.path()).unwrap();
    let reply = grant(&store, &request(1, 2, 1, bench.clock.now())).await;
    assert_eq!(reply.generation, Some(1));
    assert_eq!(store.rewritten_total(), 1);
    drop(store);
    let reply = grant(&bench.store(), &request(2, 1, 0, bench.clock.now())).await;
    assert_eq!(reply.snapshot.phantoms, 5, "nothing was lost");
}

#[tokio::test]
async fn a_deleted_journal_is_rewritten_from_memory() {
    let bench = Bench::new();
    let store = bench.store();
    grant(&store, &request(1, 1, 0, bench.clock.now())).await;
    fs::remove_file(bench.dir.journal()).unwrap();
    let reply = grant(&store, &request(1, 2, 1, bench.clock.now())).await;
    assert_eq!((reply.generation, store.rewritten_total()), (Some(1), 1));
    assert!(bench.dir.journal().exists());
}

#[tokio::test]
async fn leases_of_another_process_in_a_deleted_folder_are_kept() {
    let bench = Bench::new();
    let old = bench.store();
    grant(&old, &request(1, 1, 0, bench.clock.now())).await;
    fs::remove_dir_all(bench.dir.path()).unwrap();
    DataDir::open(bench.dir.path()).unwrap();
    let new = bench.store();
    grant(&new, &request(2, 1, 0, bench.clock.now())).await;
    drop(new);
    let reply = grant(&old, &request(3, 1, 0, bench.clock.now())).await;
    assert_eq!(reply.snapshot.phantoms, 5, "those of the other process");
}

#[tokio::test]
async fn a_new_process_in_a_deleted_folder_keeps_the_lock() {
    let bench = Bench::new();
    let old = bench.store();
    grant(&old, &request(1, 1, 0, bench.clock.now())).await;
    fs::remove_dir_all(bench.dir.path()).unwrap();
    DataDir::open(bench.dir.path()).unwrap();
    let new = bench.store();
    grant(&new, &request(2, 1, 0, bench.clock.now())).await;
    assert!(matches!(
        old.load(&shop()).await,
        Err(StoreError::Held { .. })
    ));
}

#[tokio::test]
async fn no_number_is_taken_twice_over_a_crash() {
    let bench = Bench::new();
    let name = CounterName {
        room: "shop".to_owned(),
        key: CounterKey {
            scope: CounterScope::Anywhere,
            minute: bench.clock.now().minute(),
        },
    };
    let first = bench.store();
    for expected in 0..70 {
        assert_eq!(first.take_number(&name).await.unwrap(), expected);
    }
    drop(first);
    let next = bench.store().take_number(&name).await.unwrap();
    assert!(next >= 70, "{next} was taken before");
}

#[tokio::test]
async fn counters_of_old_minutes_are_removed() {
    let bench = Bench::new();
    let store = bench.store();
    let name = |minute: Minute| CounterName {
        room: "shop".to_owned(),
        key: CounterKey {
            scope: CounterScope::Anywhere,
            minute,
        },
    };
    let old = bench.clock.now().minute();
    store.take_number(&name(old)).await.unwrap();
    bench.clock.0.fetch_add(180_000, Ordering::SeqCst);
    store
        .take_number(&name(bench.clock.now().minute()))
        .await
        .unwrap();
    assert_eq!(store.take_number(&name(old)).await.unwrap(), 0);
}

#[tokio::test]
async fn a_damaged_ledger_is_an_error() {
    let bench = Bench::new();
    let store = bench.store();
    let expected = store.load(&shop()).await.unwrap().expected();
    store
        .compare_and_swap(&shop(), expected, vec![1, 2, 3])
        .await
        .unwrap();
    let request = request(1, 1, 0, bench.clock.now());
    let failed = sync(&store, &request).await;
    assert!(
        failed
            .unwrap_err()
            .to_string()
            .contains("cannot read the ledger")
    );
}

#[tokio::test]
async fn overrides_survive_a_restart() {
    let bench = Bench::new();
    let store = bench.store();
    conformance::check_overrides(Arc::clone(&store) as _, Arc::clone(&store) as _)
        .await
        .unwrap();
    grant(&store, &request(7, 1, 0, bench.clock.now())).await;
    store.close().await;
    drop(store);

    let next = bench.store();
    let saved = RoomOverrideStore::new(Arc::clone(&next) as _, "shop/1");
    let read = saved.read().await.unwrap().unwrap();
    assert_eq!((read.version, read.message.as_deref()), (10, Some("ten")));
    assert_eq!(saved.log().await.unwrap().entries.len(), 4);
    // The predecessor's ledger was taken over as well.
    grant(&next, &request(8, 1, 0, bench.clock.now())).await;
}

#[tokio::test]
async fn a_change_reaches_the_log_even_if_its_process_crashed() {
    let bench = Bench::new();
    let store = bench.store();
    conformance::check_overrides(Arc::clone(&store) as _, Arc::clone(&store) as _)
        .await
        .unwrap();
    let saved = RoomOverrideStore::new(Arc::clone(&store) as _, "shop/1");
    let mut overrides = saved.read().await.unwrap().unwrap();
    overrides.version += 1;
    let newest = overrides.newest.as_mut().unwrap();
    newest.version += 1;
    newest.what = "killed".to_owned();
    let key = RecordKey("shop/1/settings".to_owned());
    let expected = store.load(&key).await.unwrap().expected();
    let swap = store.compare_and_swap(&key, expected, overrides.encode());
    assert_eq!(swap.await.unwrap(), anteroom_store::Swap::Swapped);

    let last = |log: &anteroom_config::overrides::Log| log.entries.last().unwrap().what.clone();
    assert_eq!(last(&saved.log().await.unwrap()), "killed");
    let after = |before: &RoomOverrides, _| {
        let mut next = before.clone();
        next.version += 1;
        next.newest = None;
        Ok::<_, std::convert::Infallible>(next)
    };
    saved.change(&overrides, after).await.unwrap();
    assert_eq!(
        last(&saved.log().await.unwrap()),
        "killed",
        "the next change has written it"
    );
}

#[tokio::test]
async fn damaged_overrides_are_an_error_until_a_change_replaces_them() {
    let bench = Bench::new();
    let store = bench.store();
    let key = RecordKey("shop/1/settings".to_owned());
    let absent = store.load(&key).await.unwrap().expected();
    let swap = store.compare_and_swap(&key, absent, b"\xffrubbish".to_vec());
    swap.await.unwrap();
    let saved = RoomOverrideStore::new(Arc::clone(&store) as _, "shop/1");
    let newer = RoomOverrides {
        version: 7,
        ..RoomOverrides::default()
    };
    for failed in [saved.read().await.map(drop), saved.restore(&newer).await] {
        let error = failed.unwrap_err();
        assert!(error.to_string().contains("cannot read"), "{error}");
    }
    let present = store.load(&key).await.unwrap().record.unwrap();
    assert_eq!(present.value, b"\xffrubbish", "a newer program may read it");
    let next = |before: &RoomOverrides, _| {
        let version = before.version + 1;
        let next = RoomOverrides {
            version,
            ..before.clone()
        };
        Ok::<_, std::convert::Infallible>(next)
    };
    saved.change(&RoomOverrides::default(), next).await.unwrap();
    assert_eq!(saved.read().await.unwrap().unwrap().version, 1);

    // What a newer program has written is not replaced, even by a command.
    let later = b"{\"form\":2,\"version\":9}".to_vec();
    let present = store.load(&key).await.unwrap().expected();
    let swap = store.compare_and_swap(&key, present, later.clone());
    swap.await.unwrap();
    let refused = saved.change(&RoomOverrides::default(), next).await;
    let error = refused.unwrap_err();
    let cause = anteroom_store::chain(&error);
    assert!(
        cause.contains("has form 2, and this program reads form 1"),
        "{cause}"
    );
    let present = store.load(&key).await.unwrap().record.unwrap();
    assert_eq!(present.value, later);
}

/// Damages the journal of a process that granted a lease and crashed. Returns the seats that the
/// next process grants, and the loss that its store reports.
async fn granted_after(damage: impl FnOnce(&Bench)) -> (u32, Option<String>) {
    let bench = Bench::new();
    grant(&bench.store(), &request(1, 1, 0, bench.clock.now())).await;
    damage(&bench);
    let next = bench.store();
    let reply = grant(&next, &request(2, 1, 0, bench.clock.now())).await;
    let lost = next.loss().map(|loss| loss.to_string());
    assert_eq!(lost.is_some(), reply.snapshot.reopens_at.is_some());
    (reply.granted.seats, lost)
}

#[tokio::test]
async fn a_lost_journal_grants_nothing_and_reports_the_loss() {
    let progress = |bench: &Bench| bench.dir.path().join("journal.progress");
    let (seats, lost) = granted_after(|_| {}).await;
    assert_eq!((seats, lost), (5, None));
    let (seats, lost) = granted_after(|bench| fs::write(bench.dir.journal(), "").unwrap()).await;
    assert!(
        seats == 0 && lost.as_ref().unwrap().contains("empty"),
        "{lost:?}"
    );
    for rubbish in [&b"rubbish"[..], &[7; 100_000]] {
        let (seats, lost) =
            granted_after(|bench| fs::write(bench.dir.journal(), rubbish).unwrap()).await;
        assert!(
            seats == 0 && lost.as_ref().unwrap().contains("damaged"),
            "{lost:?}"
        );
    }
    let without_count = granted_after(|bench| fs::remove_file(progress(bench)).unwrap()).await;
    assert!(without_count.0 == 0 && without_count.1.unwrap().contains("journal.progress"));
    let damaged_count = granted_after(|bench| fs::write(progress(bench), "zz").unwrap()).await;
    assert!(damaged_count.0 == 0 && damaged_count.1.unwrap().contains("journal.progress"));
    let deleted = granted_after(|bench| fs::remove_file(bench.dir.journal()).unwrap()).await;
    assert!(deleted.0 == 0 && deleted.1.unwrap().contains("deleted"));
}

#[tokio::test]
async fn a_truncated_journal_grants_nothing() {
    for parts in [1, 3, 7, 15] {
        let (seats, lost) = granted_after(|bench| {
            let path = bench.dir.journal();
            let file = fs::OpenOptions::new().write(true).open(path).unwrap();
            let length = file.metadata().unwrap().len();
            file.set_len(length * parts / 16).unwrap();
        })
        .await;
        assert!(seats == 0 && lost.is_some(), "{parts}/16: {lost:?}");
    }
}

#[tokio::test]
async fn an_older_copy_is_noticed_even_one_write_behind() {
    let bench = Bench::new();
    let store = bench.store();
    grant(&store, &request(1, 1, 0, bench.clock.now())).await;
    let copy = fs::read(bench.dir.journal()).unwrap();
    grant(&store, &request(1, 2, 1, bench.clock.now())).await;
    drop(store);
    fs::write(bench.dir.journal(), copy).unwrap();
    let next = bench.store();
    let reply = grant(&next, &request(2, 1, 0, bench.clock.now())).await;
    assert_eq!(reply.granted.seats, 0);
    assert!(next.loss().unwrap().to_string().contains("older copy"));
}

#[tokio::test]
async fn a_reserve_survives_a_restart_and_ends_with_earlier_seats() {
    let bench = Bench::new();
    grant(&bench.store(), &request(1, 1, 0, bench.clock.now())).await;
    fs::write(bench.dir.journal(), "").unwrap();
    let lost_at = bench.clock.now();
    // The file may set shorter sessions now; the earlier ones count.
    let shorter = |child, number, generation| {
        let now = bench.clock.now();
        SyncRequest {
            longest_seat: DurationMs(10_000),
            longest_known: DurationMs(10_000),
            settings: RoomFacts {
                longest_seat: DurationMs(10_000),
                ..request(child, number, generation, now).settings
            },
            ..request(child, number, generation, now)
        }
    };
    let reply = grant(&bench.store(), &shorter(2, 1, 0)).await;
    let reopens_at = reply.snapshot.reopens_at.unwrap();
    assert!(
        reopens_at >= lost_at + DurationMs(310_000),
        "{reopens_at:?}"
    );
    bench.clock.0.store(reopens_at.0 - 1_000, Ordering::SeqCst);
    let next = bench.store();
    let reply = grant(&next, &shorter(3, 1, 0)).await;
    assert_eq!(reply.snapshot.reopens_at, Some(reopens_at));
    assert_eq!(reply.granted.seats, 0);
    bench.clock.0.store(reopens_at.0 + 2_000, Ordering::SeqCst);
    grant(&next, &shorter(3, 2, reply.generation.unwrap())).await;
    let reply = grant(&next, &shorter(3, 3, reply.generation.unwrap())).await;
    assert_eq!((reply.snapshot.reopens_at, reply.granted.seats), (None, 5));
}

#[tokio::test]
async fn overrides_are_kept_from_an_older_copy() {
    let bench = Bench::new();
    let store = bench.store();
    conformance::check_overrides(Arc::clone(&store) as _, Arc::clone(&store) as _)
        .await
        .unwrap();
    let copy = fs::read(bench.dir.journal()).unwrap();
    grant(&store, &request(7, 1, 0, bench.clock.now())).await;
    drop(store);
    fs::write(bench.dir.journal(), copy).unwrap();
    let next = bench.store();
    let saved = RoomOverrideStore::new(Arc::clone(&next) as _, "shop/1");
    assert_eq!(saved.read().await.unwrap().unwrap().version, 10);
    assert!(next.loss().is_some());
}

#[tokio::test]
async fn a_full_disk_is_no_loss() {
    let bench = Bench::new();
    grant(&bench.store(), &request(1, 1, 0, bench.clock.now())).await;
    bench.faults.set_full(true);
    let next = bench.store();
    let pending = request(2, 1, 0, bench.clock.now());
    assert!(sync(&next, &pending).await.is_err());
    bench.faults.set_full(false);
    assert_eq!(grant(&next, &pending).await.granted.seats, 5);
    assert_eq!(next.loss(), None);
}
