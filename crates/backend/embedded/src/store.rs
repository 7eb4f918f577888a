//! The store that needs no other process: records in memory, every write journalled before it
//! counts.
//!
//! One process lends; it holds the folder's lock. A newcomer that does not get it answers nothing
//! until it does, and then counts what its predecessor had lent as used. When the disk fails,
//! writes fail, and with them syncs: what is lent runs out and nothing more is lent. When the
//! folder is deleted under a running process the journal is written anew from memory, with the
//! birth and the keys of tickets that were in use. A journal that has lost its memory while nothing
//! ran is noticed ([`opening`]), and every room begins with a reserve.

pub mod faults;
mod journal;
mod loss;
mod opening;
mod progress;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anteroom_config::time_text::rfc3339_secs;
use anteroom_store::wire::ledger as record;
use parking_lot::Mutex;

use crate::data_dir::{DataDir, DataDirLock};
use anteroom_store::is_overrides;
use anteroom_store::{
    BoxFuture, Clock, CounterName, Expected, Identity, Loaded, Record, RecordKey, RecordVersion,
    Store, StoreError, Swap,
};
use journal::{About, Content, Journal, Opener, place_of};
pub use loss::JournalLoss;
use opening::Place;

/// Numbers of a counter are reserved in the journal in blocks of this size: one write for so many
/// numbers, and at most so many skipped after a crash.
const NUMBERS_RESERVED: u64 = 64;

/// The embedded store.
pub struct Embedded {
    inner: Arc<Inner>,
}

struct Inner {
    dir: DataDir,
    clock: Arc<dyn Clock>,
    identity: Identity,
    opener: Opener,
    /// One call at a time, waited for without a thread: a disk that hangs must hold one, not all.
    turn: Arc<tokio::sync::Mutex<()>>,
    state: Mutex<State>,
    rewritten: AtomicU64,
    /// What the journal has lost, for those who must not wait for the disk.
    loss: Mutex<Option<JournalLoss>>,
}

struct State {
    lock: Option<DataDirLock>,
    journal: Option<Journal>,
    /// What the journal said of itself when it was open last.
    about: Option<About>,
    records: BTreeMap<RecordKey, Record>,
    counters: BTreeMap<CounterName, Numbers>,
    /// This process has lent: what is in memory is ours, not a predecessor's.
    has_lent: bool,
    /// The folder's lock was lost, so that somebody else may have lent meanwhile.
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
    /// A store in `dir`. Nothing is opened before the first call.
    #[must_use]
    pub fn new(dir: DataDir, identity: Identity, clock: Arc<dyn Clock>) -> Self {
        Self::with_opener(dir, identity, clock, journal::open_file)
    }

    /// The same on files that fail on demand.
    #[doc(hidden)]
    #[must_use]
    pub fn with_faults(
        dir: DataDir,
        identity: Identity,
        clock: Arc<dyn Clock>,
        faults: &faults::Faults,
    ) -> Self {
        let faults = faults.clone();
        Self::with_opener(dir, identity, clock, move |path| faults.open(path))
    }

    fn with_opener(
        dir: DataDir,
        identity: Identity,
        clock: Arc<dyn Clock>,
        opener: impl Fn(&std::path::Path) -> Result<redb::Database, redb::DatabaseError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let state = State {
            lock: None,
            journal: None,
            about: None,
            records: BTreeMap::new(),
            counters: BTreeMap::new(),
            has_lent: false,
            has_lost_lock: false,
            is_closed: false,
        };
        Self {
            inner: Arc::new(Inner {
                dir,
                clock,
                identity,
                opener: Box::new(opener),
                turn: Arc::default(),
                state: Mutex::new(state),
                rewritten: AtomicU64::new(0),
                loss: Mutex::default(),
            }),
        }
    }

    /// How the journal lost its memory, if it ever did; for operators.
    #[must_use]
    pub fn loss(&self) -> Option<JournalLoss> {
        *self.inner.loss.lock()
    }

    /// How often the journal was deleted under this process and written anew from memory.
    #[must_use]
    pub fn rewritten_total(&self) -> u64 {
        self.inner.rewritten.load(Ordering::Relaxed)
    }

    /// Runs something that waits for the disk where waiting harms nobody.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner, &mut State) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let inner = Arc::clone(&self.inner);
        let turn = Arc::clone(&inner.turn).lock_owned().await;
        let done = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let mut state = inner.state.lock();
            work(&inner, &mut state)
        });
        done.await.unwrap_or(Err(StoreError::Closed))
    }
}

impl Inner {
    /// Makes sure that the lock is held and the journal open.
    fn open<'a>(&self, state: &'a mut State) -> Result<&'a mut Journal, StoreError> {
        if state.is_closed {
            return Err(StoreError::Closed);
        }
        self.take_lock(state)?;
        if state.journal.is_some() && !self.dir.journal().exists() {
            tracing::error!("the journal was deleted under the running process; writing it anew");
            Self::close_journal(state);
        }
        if state.journal.is_none() {
            let place = Place {
                dir: &self.dir,
                opener: &self.opener,
                clock: &self.clock,
                own: self.own(state),
            };
            let (mut journal, content) = place.open()?;
            self.read(state, content, &mut journal)?;
            *self.loss.lock() = journal.about().loss;
            state.about = Some(journal.about());
            state.journal = Some(journal);
        }
        state.journal.as_mut().ok_or(StoreError::Closed)
    }

    /// What the journal said of itself, where this process's memory counts more than the disk: it
    /// has lent, and nobody else can have lent since.
    fn own(&self, state: &State) -> Option<About> {
        let somebody_may_have = state.has_lost_lock && self.dir.journal().exists();
        state.about.filter(|_| state.has_lent && !somebody_may_have)
    }

    /// Lets go of the journal; it is opened anew before the next use.
    fn close_journal(state: &mut State) {
        let journal = state.journal.take();
        state.about = journal.map(|journal| journal.about()).or(state.about);
    }

    /// Brings memory and a journal that was just opened together.
    fn read(
        &self,
        state: &mut State,
        content: Content,
        journal: &mut Journal,
    ) -> Result<(), StoreError> {
        let lost_before = state.about.and_then(|about| about.loss);
        let is_used = !content.records.is_empty() || journal.about().loss != lost_before;
        let is_somebody_elses = state.has_lost_lock && is_used;
        if state.has_lent && !is_somebody_elses {
            self.recover(state, &content.records, journal)?;
        } else {
            state.counters = numbers(content.counters);
            state.records = content.records;
            self.take_over(state, journal)?;
        }
        state.has_lent = true;
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
                "the data folder was deleted under the running process; writing it anew from memory"
            );
            Self::close_journal(state);
            state.has_lost_lock = true;
        }
        let unavailable = |source| StoreError::Unavailable {
            doing: "lock",
            place: place_of(&self.dir.journal()),
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

    /// After a failure, or when the folder is new: the disk has what memory has, one write less, or
    /// nothing. In memory is what callers were told, so that memory counts; a write of which nobody
    /// was told the outcome is undone, and its writer loads and decides again.
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
            // Whoever holds the version of an undone write must not swap against it.
            let seen = on_disk.get(key).map_or(0, |record| record.version.0);
            found.version = RecordVersion(found.version.0.max(seen) + 1);
        }
        journal.write_all(&state.records, &reserved(&state.counters))
    }

    /// Whoever lent before is dead, for its lock is ours.
    fn take_over(&self, state: &mut State, journal: &mut Journal) -> Result<(), StoreError> {
        let ledgers = state.records.iter_mut();
        let mut ledgers: Vec<_> = ledgers.filter(|(key, _)| !is_overrides(key)).collect();
        let times = ledgers.iter();
        let times = times.filter_map(|(_, found)| record::decode(&found.value).ok());
        let newest = times.map(|ledger| ledger.as_of()).max().unwrap_or_default();
        self.clock.never_before(newest);
        let now = self.clock.now();
        for (key, found) in &mut ledgers {
            match record::decode(&found.value) {
                Ok(mut ledger) => {
                    let now = now.max(ledger.as_of());
                    ledger.presume_children_dead(now);
                    journal.note_longest_seat(ledger.longest_seat());
                    found.value = record::encode(&ledger);
                    found.version.0 += 1;
                }
                // Left as it is: a sync will say so and lend nothing.
                Err(error) => {
                    let room = &key.0;
                    tracing::error!(%room, %error, "the journal has an unreadable ledger");
                }
            }
        }
        journal.write_all(&state.records, &BTreeMap::new())
    }

    fn loaded(&self, state: &State, key: &RecordKey) -> Loaded {
        let found = state.records.get(key).cloned();
        Loaded {
            record: found.or_else(|| self.first_record(key)),
            now: self.clock.now(),
            identity: self.identity,
        }
    }

    /// The ledger with which a room begins that a journal says nothing of which lost its memory.
    /// `None` after no loss: the ledger is then a first one.
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
        let journal = self.open(state)?;
        if let Some(ledger) = &ledger {
            // Known outside of the journal before such a seat is given.
            journal.note_longest_seat(ledger.longest_seat());
        }
        if let Err(error) = journal.write(key, &record) {
            // Whether it was written is unknown; the journal is opened anew before the next use.
            Self::close_journal(state);
            return Err(error);
        }
        state.records.insert(key.clone(), record);
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
            Ok(inner.loaded(state, &key))
        }))
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

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let closed = self.run(|_, state| {
                state.is_closed = true;
                if let Some(journal) = &mut state.journal {
                    journal.sync_progress();
                }
                state.journal = None;
                state.lock = None;
                Ok(())
            });
            // Closing what is closed already is no failure.
            let _ = closed.await;
        })
    }
}
