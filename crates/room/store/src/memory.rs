//! Store in memory that several nodes of one process share, for tests of the code above stores. It
//! counts its requests, and a test sets its delay and makes it unavailable or lose its records.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anteroom_room::time::{DurationMs, Timestamp};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::history::{
    HistoryBound, HistoryName, HistoryRow, HistoryRows, HistorySpan, HistoryTable,
};
use crate::store::{
    BoxFuture, Clock, CounterName, Durability, Expected, Identity, LEFT_FOR, LEFT_MAX, LeftChanges,
    LeftId, LeftRequest, Loaded, NOTE_FOR, NOTES_MAX, Note, Record, RecordKey, RecordVersion,
    Store, StoreError, Swap,
};

/// Handle to a store in memory. Clones share the store.
#[derive(Clone)]
pub struct Memory {
    inner: Arc<Inner>,
}

struct Inner {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// Delay in one direction, in microseconds.
    delay_micros: AtomicU64,
    is_unavailable: AtomicBool,
    requests: AtomicU64,
}

#[derive(Default)]
struct State {
    identity: u64,
    records: BTreeMap<RecordKey, Record>,
    numbers: BTreeMap<CounterName, u64>,
    left: BTreeMap<RecordKey, Inbox>,
    /// Notes beside records, and when they were left.
    notes: BTreeMap<RecordKey, BTreeMap<String, (Timestamp, Vec<u8>)>>,
    /// Ends of records that expire.
    ends: BTreeMap<RecordKey, Timestamp>,
    history: HistoryTable,
}

impl State {
    /// Removes what has expired.
    fn expire(&mut self, now: Timestamp) {
        let records = &mut self.records;
        self.ends.retain(|key, ends_at| {
            let lasts = now < *ends_at;
            if !lasts {
                records.remove(key);
            }
            lasts
        });
        for notes in self.notes.values_mut() {
            notes.retain(|_, (left_at, _)| now.since(*left_at) < NOTE_FOR);
        }
    }

    fn leave_note(&mut self, key: &RecordKey, note: &Note, now: Timestamp) {
        let notes = self.notes.entry(key.clone()).or_default();
        if note.value.is_empty() {
            notes.remove(&note.name);
        } else if notes.len() < NOTES_MAX || notes.contains_key(&note.name) {
            notes.insert(note.name.clone(), (now, note.value.clone()));
        }
    }
}

/// Requests that are left beside one record.
#[derive(Default)]
struct Inbox {
    requests: BTreeMap<LeftId, Vec<u8>>,
    /// Time of the newest one.
    newest_at: Option<Instant>,
}

impl Inbox {
    fn leave(&mut self, request: LeftRequest, now: Instant) {
        if self.requests.len() < LEFT_MAX {
            self.requests.insert(request.id, request.value);
            self.newest_at = Some(now);
        }
    }

    fn expire(&mut self, now: Instant) {
        let lasts = Duration::from_millis(LEFT_FOR.0);
        let is_over = |at: Instant| now.saturating_duration_since(at) >= lasts;
        if self.newest_at.is_some_and(is_over) {
            *self = Self::default();
        }
    }

    fn to_vec(&self) -> Vec<LeftRequest> {
        let requests = self.requests.iter();
        let requests = requests.map(|(id, value)| LeftRequest {
            id: id.clone(),
            value: value.clone(),
        });
        requests.collect()
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Memory({} requests)", self.requests())
    }
}

impl Memory {
    /// Returns an empty store without delay.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            inner: Arc::new(Inner {
                clock,
                state: Mutex::default(),
                delay_micros: AtomicU64::new(0),
                is_unavailable: AtomicBool::new(false),
                requests: AtomicU64::new(0),
            }),
        }
    }

    /// Delays every request by this time, and every reply as well.
    pub fn set_delay(&self, one_way: Duration) {
        let micros = u64::try_from(one_way.as_micros()).unwrap_or(u64::MAX);
        self.inner.delay_micros.store(micros, Ordering::Relaxed);
    }

    /// Makes all requests fail, or succeed again.
    pub fn set_unavailable(&self, is_unavailable: bool) {
        self.inner
            .is_unavailable
            .store(is_unavailable, Ordering::Relaxed);
    }

    /// Replaces the store by an empty one with another identity.
    pub fn wipe(&self) {
        let mut state = self.inner.state.lock();
        *state = State {
            identity: state.identity + 1,
            ..State::default()
        };
    }

    /// Returns all records, for [`Memory::lose_since`].
    #[must_use]
    pub fn records(&self) -> BTreeMap<RecordKey, Record> {
        self.inner.state.lock().records.clone()
    }

    /// Loses everything that was written since these records were returned, as a server does that
    /// restarts from an older file.
    pub fn lose_since(&self, records: BTreeMap<RecordKey, Record>) {
        let mut state = self.inner.state.lock();
        *state = State {
            identity: state.identity + 1,
            records,
            ..State::default()
        };
    }

    /// Loses the records whose keys begin with `prefix`, as by a command of an operator. The
    /// identity and the notes stay.
    pub fn forget(&self, prefix: &str) {
        let mut state = self.inner.state.lock();
        state.records.retain(|key, _| !key.0.starts_with(prefix));
    }

    /// Removes a record alone, and returns it.
    #[must_use]
    pub fn take(&self, key: &RecordKey) -> Option<Record> {
        self.inner.state.lock().records.remove(key)
    }

    /// Puts a record into the store, whatever is there.
    pub fn put(&self, key: RecordKey, record: Record) {
        self.inner.state.lock().records.insert(key, record);
    }

    /// Changes the identity and keeps the records, as a restart does.
    pub fn restart(&self) {
        self.inner.state.lock().identity += 1;
    }

    /// Counts all requests, failed ones included.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.inner.requests.load(Ordering::Relaxed)
    }

    async fn request<T>(&self, work: impl FnOnce(&mut State) -> T) -> Result<T, StoreError> {
        self.inner.requests.fetch_add(1, Ordering::Relaxed);
        self.delay().await;
        if self.inner.is_unavailable.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable {
                doing: "reach",
                store_name: "the store in memory".to_owned(),
                source: "unavailable by request of a test".into(),
            });
        }
        let done = {
            let mut state = self.inner.state.lock();
            state.expire(self.inner.clock.now());
            work(&mut state)
        };
        self.delay().await;
        Ok(done)
    }

    fn loaded(&self, state: &State, key: &RecordKey) -> Loaded {
        Loaded {
            record: state.records.get(key).cloned(),
            now: self.inner.clock.now(),
            identity: Identity(state.identity),
            durability: Durability::KeepsAll,
            left: Vec::new(),
        }
    }

    /// Returns a record with the requests beside it, after one more was left.
    fn loaded_with_left(
        &self,
        state: &mut State,
        key: &RecordKey,
        leave: Option<LeftRequest>,
    ) -> Loaded {
        let now = Instant::now();
        let inbox = state.left.entry(key.clone()).or_default();
        inbox.expire(now);
        if let Some(request) = leave {
            inbox.leave(request, now);
        }
        let left = inbox.to_vec();
        Loaded {
            left,
            ..self.loaded(state, key)
        }
    }

    fn swap(&self, state: &mut State, key: &RecordKey, expected: Expected, value: Vec<u8>) -> Swap {
        if Identity(state.identity) != expected.identity {
            return Swap::OtherStore;
        }
        let present = state.records.get(key);
        let version = present.map_or(RecordVersion::ABSENT, |record| record.version);
        if version != expected.version {
            return Swap::Conflict(self.loaded(state, key));
        }
        let version = RecordVersion(version.0 + 1);
        state.records.insert(key.clone(), Record { version, value });
        state.ends.remove(key);
        Swap::Swapped
    }

    async fn delay(&self) {
        let micros = self.inner.delay_micros.load(Ordering::Relaxed);
        if micros > 0 {
            tokio::time::sleep(Duration::from_micros(micros)).await;
        }
    }
}

impl Store for Memory {
    fn load<'a>(&'a self, key: &'a RecordKey) -> BoxFuture<'a, Result<Loaded, StoreError>> {
        Box::pin(self.request(move |state| self.loaded(state, key)))
    }

    fn compare_and_swap<'a>(
        &'a self,
        key: &'a RecordKey,
        expected: Expected,
        value: Vec<u8>,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(self.request(move |state| self.swap(state, key, expected, value)))
    }

    fn load_changed<'a>(
        &'a self,
        key: &'a RecordKey,
        known: Expected,
        note: Option<&'a Note>,
    ) -> BoxFuture<'a, Result<Option<Loaded>, StoreError>> {
        Box::pin(self.request(move |state| {
            if let Some(note) = note {
                state.leave_note(key, note, self.inner.clock.now());
            }
            let loaded = self.loaded(state, key);
            (loaded.expected() != known).then_some(loaded)
        }))
    }

    fn notes<'a>(&'a self, key: &'a RecordKey) -> BoxFuture<'a, Result<Vec<Note>, StoreError>> {
        Box::pin(self.request(move |state| {
            let notes = state.notes.get(key).into_iter().flatten();
            let note = |(name, (_, value)): (&String, &(Timestamp, Vec<u8>))| Note {
                name: name.clone(),
                value: value.clone(),
            };
            notes.map(note).collect()
        }))
    }

    fn keep_for<'a>(
        &'a self,
        key: &'a RecordKey,
        value: Option<&'a [u8]>,
        lifetime: DurationMs,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.request(move |state| {
            if !state.records.contains_key(key) {
                let Some(value) = value else { return false };
                let record = Record {
                    version: RecordVersion(1),
                    value: value.to_vec(),
                };
                state.records.insert(key.clone(), record);
            }
            let ends_at = self.inner.clock.now() + lifetime;
            state.ends.insert(key.clone(), ends_at);
            true
        }))
    }

    fn load_and_leave<'a>(
        &'a self,
        key: &'a RecordKey,
        leave: Option<LeftRequest>,
    ) -> BoxFuture<'a, Result<Loaded, StoreError>> {
        Box::pin(self.request(move |state| self.loaded_with_left(state, key, leave)))
    }

    fn swap_and_remove<'a>(
        &'a self,
        key: &'a RecordKey,
        expected: Expected,
        value: Vec<u8>,
        left: LeftChanges,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(self.request(move |state| {
            let swap = self.swap(state, key, expected, value);
            match swap {
                Swap::Swapped => {
                    let inbox = state.left.entry(key.clone()).or_default();
                    inbox.requests.retain(|id, _| !left.applied.contains(id));
                    Swap::Swapped
                }
                Swap::Conflict(_) => Swap::Conflict(self.loaded_with_left(state, key, left.leave)),
                Swap::OtherStore => Swap::OtherStore,
            }
        }))
    }

    fn take_number<'a>(&'a self, name: &'a CounterName) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(self.request(move |state| {
            let next = state.numbers.entry(name.clone()).or_insert(0);
            *next += 1;
            *next - 1
        }))
    }

    fn put_history<'a>(
        &'a self,
        rows: &'a [HistoryRows],
        bound: HistoryBound,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.request(move |state| state.history.put(rows, bound)))
    }

    fn history<'a>(
        &'a self,
        name: &'a HistoryName,
        span: HistorySpan,
    ) -> BoxFuture<'a, Result<Vec<HistoryRow>, StoreError>> {
        Box::pin(self.request(move |state| state.history.read(name, span)))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}
