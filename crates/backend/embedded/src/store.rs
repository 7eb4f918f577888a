//! Embedded store: records in memory, with a journal that has every write before it counts.
//!
//! Only the process with the folder's lock grants leases. A successor waits for the lock, and then
//! counts its predecessor's leases as used. If the disk fails, writes and syncs fail: leases end,
//! and no more are granted. If the folder is deleted under a running process, the journal is
//! rewritten from memory, with the deployment and the ticket keys in use. A journal that was lost
//! or replaced while no process ran is noticed ([`opening`]), and every room begins with a reserve.

pub mod faults;
mod history;
mod journal;
mod loss;
mod opening;
mod progress;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anteroom_config::time_text::rfc3339_secs;
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_store::wire::ledger as record;
use parking_lot::Mutex;

use crate::data_dir::{DataDir, DataDirLock};
use anteroom_store::is_overrides;
use anteroom_store::{
    BoxFuture, Clock, CounterName, Durability, Expected, HistoryBound, HistoryName, HistoryRow,
    HistoryRows, HistorySpan, Identity, Loaded, Record, RecordKey, RecordVersion, Store,
    StoreError, Swap,
};
use history::HistoryFile;
use journal::{About, Content, End, Journal, Opener, display_name};
pub use loss::JournalLoss;
use opening::Location;

/// Block of a counter's numbers that is reserved in the journal with one write. At most this many
/// are skipped after a crash.
const NUMBERS_RESERVED: u64 = 64;

/// Embedded store of a data folder.
pub struct Embedded {
    inner: Arc<Inner>,
}

struct Inner {
    dir: DataDir,
    clock: Arc<dyn Clock>,
    identity: Identity,
    opener: Opener,
    /// Lock for one operation at a time. Waiting for it blocks no thread, so a disk that hangs
    /// blocks only one.
    operation: Arc<tokio::sync::Mutex<()>>,
    state: Mutex<State>,
    /// History, which no operation on the journal waits for.
    history: Arc<tokio::sync::Mutex<HistoryFile>>,
    rewritten: AtomicU64,
    /// Loss of the journal, for readers who must not wait for the disk.
    loss: Mutex<Option<JournalLoss>>,
}

struct State {
    lock: Option<DataDirLock>,
    journal: Option<Journal>,
    /// Metadata of the journal when it was last open.
    about: Option<About>,
    records: BTreeMap<RecordKey, Record>,
    /// Ends of records that do not stay.
    ends: BTreeMap<RecordKey, Timestamp>,
    counters: BTreeMap<CounterName, Numbers>,
    /// Whether this process has granted leases, so that memory has its own state and not a
    /// predecessor's.
    has_granted: bool,
    /// Whether the folder's lock was lost, so that another process may have granted leases.
    has_lost_lock: bool,
    is_closed: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    next: u64,
    reserved: u64,
}

impl std::fmt::Debug for Embedded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Embedded({})", self.inner.dir.path().display())
    }
}

impl Embedded {
    /// Returns the store of `dir`, which is opened with the first operation.
    #[must_use]
    pub fn new(dir: DataDir, identity: Identity, clock: Arc<dyn Clock>) -> Self {
        let openers: [Opener; 2] = [Box::new(journal::open_file), Box::new(history::open_file)];
        Self::with_openers(dir, identity, clock, openers)
    }

    /// Variant of [`new`](Self::new) on files that fail on demand.
    #[doc(hidden)]
    #[must_use]
    pub fn with_faults(
        dir: DataDir,
        identity: Identity,
        clock: Arc<dyn Clock>,
        faults: &faults::Faults,
    ) -> Self {
        let openers = [faults.clone(), faults.clone()];
        let openers = openers.map(|faults| -> Opener { Box::new(move |path| faults.open(path)) });
        Self::with_openers(dir, identity, clock, openers)
    }

    fn with_openers(
        dir: DataDir,
        identity: Identity,
        clock: Arc<dyn Clock>,
        [opener, history]: [Opener; 2],
    ) -> Self {
        let state = State {
            lock: None,
            journal: None,
            about: None,
            records: BTreeMap::new(),
            ends: BTreeMap::new(),
            counters: BTreeMap::new(),
            has_granted: false,
            has_lost_lock: false,
            is_closed: false,
        };
        Self {
            inner: Arc::new(Inner {
                history: Arc::new(HistoryFile::new(dir.path(), history).into()),
                dir,
                clock,
                identity,
                opener,
                operation: Arc::default(),
                state: Mutex::new(state),
                rewritten: AtomicU64::new(0),
                loss: Mutex::default(),
            }),
        }
    }

    /// Returns the loss of the journal, if there was one, for operators.
    #[must_use]
    pub fn loss(&self) -> Option<JournalLoss> {
        *self.inner.loss.lock()
    }

    /// Counts how often the journal was deleted under this process and rewritten from memory.
    #[must_use]
    pub fn rewritten_total(&self) -> u64 {
        self.inner.rewritten.load(Ordering::Relaxed)
    }

    /// Runs an operation on the disk on a blocking thread.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner, &mut State) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let inner = Arc::clone(&self.inner);
        let guard = Arc::clone(&inner.operation).lock_owned().await;
        let done = tokio::task::spawn_blocking(move || {
            let _guard = guard;
            let mut state = inner.state.lock();
            work(&inner, &mut state)
        });
        done.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Runs an operation on the history on a blocking thread, if this process has the folder.
    async fn run_on_history<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut HistoryFile) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let inner = Arc::clone(&self.inner);
        let mut history = Arc::clone(&inner.history).lock_owned().await;
        let done = tokio::task::spawn_blocking(move || {
            inner.check_lock()?;
            work(&mut history)
        });
        done.await.unwrap_or(Err(StoreError::Closed))
    }
}

impl Inner {
    /// Takes the lock and opens the journal, unless that was done before.
    fn open<'a>(&self, state: &'a mut State) -> Result<&'a mut Journal, StoreError> {
        if state.is_closed {
            return Err(StoreError::Closed);
        }
        self.take_lock(state)?;
        if state.journal.is_some() && !self.dir.journal().exists() {
            tracing::error!(
                "the journal was deleted under the running process: rewriting it from memory"
            );
            Self::close_journal(state);
        }
        if state.journal.is_none() {
            let location = Location {
                dir: &self.dir,
                opener: &self.opener,
                clock: &self.clock,
                own: self.own(state),
            };
            let (mut journal, content) = location.open()?;
            self.reconcile(state, content, &mut journal)?;
            *self.loss.lock() = journal.about().loss;
            state.about = Some(journal.about());
            state.journal = Some(journal);
        }
        state.journal.as_mut().ok_or(StoreError::Closed)
    }

    /// Checks that this process has the folder. A room's first sync takes the lock.
    fn check_lock(&self) -> Result<(), StoreError> {
        let state = self.state.lock();
        if state.is_closed {
            return Err(StoreError::Closed);
        }
        let is_held = state.lock.as_ref().is_some_and(DataDirLock::is_in_place);
        is_held.then_some(()).ok_or_else(|| StoreError::Held {
            path: self.dir.journal().display().to_string(),
        })
    }

    /// Returns the journal's metadata if this process's memory is newer than the disk: it has
    /// granted leases, and no other process can have done so since.
    fn own(&self, state: &State) -> Option<About> {
        let other_may_have = state.has_lost_lock && self.dir.journal().exists();
        state.about.filter(|_| state.has_granted && !other_may_have)
    }

    /// Closes the journal. The next operation opens it again.
    fn close_journal(state: &mut State) {
        let journal = state.journal.take();
        state.about = journal.map(|journal| journal.about()).or(state.about);
    }

    /// Reconciles memory with a journal that was just opened.
    fn reconcile(
        &self,
        state: &mut State,
        content: Content,
        journal: &mut Journal,
    ) -> Result<(), StoreError> {
        let lost_before = state.about.and_then(|about| about.loss);
        let is_used = !content.records.is_empty() || journal.about().loss != lost_before;
        let is_of_other_process = state.has_lost_lock && is_used;
        if state.has_granted && !is_of_other_process {
            self.recover(state, &content.records, journal)?;
        } else {
            state.counters = numbers(content.counters);
            state.records = content.records;
            state.ends = content.ends;
            self.take_over(state, journal)?;
        }
        state.has_granted = true;
        state.has_lost_lock = false;
        Ok(())
    }

    fn take_lock(&self, state: &mut State) -> Result<(), StoreError> {
        if state.lock.as_ref().is_some_and(DataDirLock::is_in_place) {
            return Ok(());
        }
        if state.lock.take().is_some() {
            tracing::error!(
                folder = %self.dir.path().display(),
                "the data folder was deleted under the running process: rewriting it from memory"
            );
            Self::close_journal(state);
            state.has_lost_lock = true;
        }
        let unavailable = |source| StoreError::Unavailable {
            doing: "lock",
            store_name: display_name(&self.dir.journal()),
            source: Box::new(source),
        };
        self.dir.restore().map_err(unavailable)?;
        match self.dir.try_lock().map_err(unavailable)? {
            Some(lock) => {
                state.lock = Some(lock);
                Ok(())
            }
            None => Err(StoreError::Held {
                path: self.dir.journal().display().to_string(),
            }),
        }
    }

    /// Writes memory to the journal after a failure or a deletion. The disk has the same records,
    /// one write less or more, or none. Memory has all confirmed writes, so memory wins. An
    /// unconfirmed write is undone, and its writer loads and decides again.
    fn recover(
        &self,
        state: &mut State,
        on_disk: &BTreeMap<RecordKey, Record>,
        journal: &mut Journal,
    ) -> Result<(), StoreError> {
        if *on_disk == state.records {
            return Ok(());
        }
        if on_disk.len() < state.records.len() {
            self.rewritten.fetch_add(1, Ordering::Relaxed);
        }
        for (key, found) in &mut state.records {
            // A swap against the version of an undone write must fail.
            let seen = on_disk.get(key).map_or(0, |record| record.version.0);
            found.version = RecordVersion(found.version.0.max(seen) + 1);
        }
        journal.write_all(&state.records, &state.ends, &reserved(&state.counters))
    }

    /// Takes over the ledgers of a predecessor, which has ended because this process has its lock.
    fn take_over(&self, state: &mut State, journal: &mut Journal) -> Result<(), StoreError> {
        let ledgers = state.records.iter_mut();
        let mut ledgers: Vec<_> = ledgers.filter(|(key, _)| !is_overrides(key)).collect();
        let times = ledgers.iter();
        let times = times.filter_map(|(_, found)| record::decode(&found.value).ok());
        let newest = times
            .map(|ledger| ledger.clock_at())
            .max()
            .unwrap_or_default();
        self.clock.never_before(newest);
        let now = self.clock.now();
        for (key, found) in &mut ledgers {
            match record::decode(&found.value) {
                Ok(mut ledger) => {
                    ledger.give_up_all_leases(now);
                    journal.note_longest_seat(ledger.longest_seat());
                    found.value = record::encode(&ledger);
                    found.version.0 += 1;
                }
                // The record stays. Syncs fail because of it and grant nothing.
                Err(error) => {
                    let room = &key.0;
                    tracing::error!(%room, %error, "the journal has an unreadable ledger");
                }
            }
        }
        journal.write_all(&state.records, &state.ends, &BTreeMap::new())
    }

    fn loaded(&self, state: &State, key: &RecordKey) -> Loaded {
        let found = state.records.get(key).cloned();
        Loaded {
            record: found.or_else(|| self.first_record(key)),
            now: self.clock.now(),
            identity: self.identity,
            durability: Durability::KeepsAll,
            left: Vec::new(),
        }
    }

    /// Returns the first ledger of a room without a record if the journal has a loss. `None`
    /// without a loss: the room is then new.
    fn first_record(&self, key: &RecordKey) -> Option<Record> {
        let loss = self.loss.lock().filter(|_| !is_overrides(key))?;
        Some(Record {
            version: RecordVersion::ABSENT,
            value: record::encode(&loss.first_ledger()),
        })
    }

    fn swap(
        &self,
        state: &mut State,
        key: &RecordKey,
        expected: Expected,
        value: Vec<u8>,
    ) -> Result<Swap, StoreError> {
        self.open(state)?;
        self.remove_ended(state)?;
        if self.identity != expected.identity {
            return Ok(Swap::OtherStore);
        }
        let present = state
            .records
            .get(key)
            .map_or(RecordVersion::ABSENT, |r| r.version);
        if present != expected.version {
            return Ok(Swap::Conflict(self.loaded(state, key)));
        }
        let record = Record {
            version: RecordVersion(expected.version.0 + 1),
            value,
        };
        let ledger = (!is_overrides(key)).then(|| record::decode(&record.value).ok());
        let ledger = ledger.flatten();
        let had_end = state.ends.contains_key(key);
        let end = if had_end { End::Removed } else { End::None };
        let journal = self.open(state)?;
        if let Some(ledger) = &ledger {
            // Recorded outside of the journal before such a seat is granted.
            journal.note_longest_seat(ledger.longest_seat());
        }
        if let Err(error) = journal.write(key, &record, end) {
            // The write may have taken effect. The next operation opens the journal again.
            Self::close_journal(state);
            return Err(error);
        }
        state.records.insert(key.clone(), record);
        state.ends.remove(key);
        let reserve = ledger.and_then(|ledger| ledger.reserve());
        if let Some(reserve) = reserve.filter(|_| present == RecordVersion::ABSENT) {
            tracing::warn!(
                room = %key.0,
                until = %rfc3339_secs(reserve.ends_at),
                "recovering: all that the limits allow counts as used"
            );
        }
        Ok(Swap::Swapped)
    }

    /// Removes records whose ends have passed.
    fn remove_ended(&self, state: &mut State) -> Result<(), StoreError> {
        let now = self.clock.now();
        let ended = state.ends.iter().filter(|(_, ends_at)| **ends_at <= now);
        let ended: Vec<RecordKey> = ended.map(|(key, _)| key.clone()).collect();
        if ended.is_empty() {
            return Ok(());
        }
        let journal = self.open(state)?;
        if let Err(error) = journal.remove(&ended) {
            Self::close_journal(state);
            return Err(error);
        }
        for key in ended {
            state.records.remove(&key);
            state.ends.remove(&key);
        }
        Ok(())
    }

    fn keep_for(
        &self,
        state: &mut State,
        key: &RecordKey,
        value: Option<Vec<u8>>,
        lifetime: DurationMs,
    ) -> Result<bool, StoreError> {
        self.open(state)?;
        self.remove_ended(state)?;
        let known = state.records.get(key).cloned();
        let new = value.map(|value| Record {
            version: RecordVersion(1),
            value,
        });
        let Some(record) = known.or(new) else {
            return Ok(false);
        };
        let ends_at = self.clock.now() + lifetime;
        if let Err(error) = self.open(state)?.write(key, &record, End::At(ends_at)) {
            Self::close_journal(state);
            return Err(error);
        }
        state.records.insert(key.clone(), record);
        state.ends.insert(key.clone(), ends_at);
        Ok(true)
    }

    fn take_number(&self, state: &mut State, name: &CounterName) -> Result<u64, StoreError> {
        self.open(state)?;
        let mut numbers = state.counters.get(name).copied().unwrap_or_default();
        if numbers.next >= numbers.reserved {
            numbers.reserved = numbers.next + NUMBERS_RESERVED;
            let oldest = self.clock.now().minute().previous();
            state.counters.retain(|name, _| name.key.minute >= oldest);
            let journal = self.open(state)?;
            if let Err(error) = journal.reserve(name, numbers.reserved, oldest) {
                Self::close_journal(state);
                return Err(error);
            }
        }
        let number = numbers.next;
        numbers.next += 1;
        state.counters.insert(name.clone(), numbers);
        Ok(number)
    }
}

fn numbers(reserved: BTreeMap<CounterName, u64>) -> BTreeMap<CounterName, Numbers> {
    let numbers = reserved.into_iter().map(|(name, reserved)| {
        let next = reserved;
        (name, Numbers { next, reserved })
    });
    numbers.collect()
}

fn reserved(counters: &BTreeMap<CounterName, Numbers>) -> BTreeMap<CounterName, u64> {
    counters
        .iter()
        .map(|(name, numbers)| (name.clone(), numbers.reserved))
        .collect()
}

impl Store for Embedded {
    fn load<'a>(&'a self, key: &'a RecordKey) -> BoxFuture<'a, Result<Loaded, StoreError>> {
        let key = key.clone();
        Box::pin(self.run(move |inner, state| {
            inner.open(state)?;
            inner.remove_ended(state)?;
            Ok(inner.loaded(state, &key))
        }))
    }

    fn keep_for<'a>(
        &'a self,
        key: &'a RecordKey,
        value: Option<&'a [u8]>,
        lifetime: DurationMs,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let (key, value) = (key.clone(), value.map(<[u8]>::to_vec));
        Box::pin(self.run(move |inner, state| inner.keep_for(state, &key, value, lifetime)))
    }

    fn compare_and_swap<'a>(
        &'a self,
        key: &'a RecordKey,
        expected: Expected,
        value: Vec<u8>,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        let key = key.clone();
        Box::pin(self.run(move |inner, state| inner.swap(state, &key, expected, value)))
    }

    fn take_number<'a>(&'a self, name: &'a CounterName) -> BoxFuture<'a, Result<u64, StoreError>> {
        let name = name.clone();
        Box::pin(self.run(move |inner, state| inner.take_number(state, &name)))
    }

    fn put_history<'a>(
        &'a self,
        rows: &'a [HistoryRows],
        bound: HistoryBound,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let rows = rows.to_vec();
        Box::pin(self.run_on_history(move |history| history.put(&rows, bound)))
    }

    fn history<'a>(
        &'a self,
        name: &'a HistoryName,
        span: HistorySpan,
    ) -> BoxFuture<'a, Result<Vec<HistoryRow>, StoreError>> {
        let name = name.clone();
        Box::pin(self.run_on_history(move |history| history.read(&name, span)))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // Before the lock is released: the next process opens the same file.
            self.inner.history.lock().await.close();
            let closed = self.run(|_, state| {
                state.is_closed = true;
                if let Some(journal) = &mut state.journal {
                    journal.sync_progress();
                }
                state.journal = None;
                state.lock = None;
                Ok(())
            });
            // A store that is closed already is no failure.
            let _ = closed.await;
        })
    }
}
