//! A store in memory that several nodes of one process share. It survives nothing, counts its
//! calls, and is as far away and as unwell as it is told to be: for tests of what stands above
//! stores.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::store::{
    BoxFuture, Clock, CounterName, Expected, Identity, Loaded, Record, RecordKey, RecordVersion,
    Store, StoreError, Swap,
};

/// The store. Clones are the same store.
#[derive(Clone)]
pub struct Memory {
    inner: Arc<Inner>,
}

struct Inner {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// One way, in microseconds.
    delay_micros: AtomicU64,
    is_away: AtomicBool,
    calls: AtomicU64,
}

#[derive(Default)]
struct State {
    identity: u64,
    records: BTreeMap<RecordKey, Record>,
    numbers: BTreeMap<CounterName, u64>,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Memory({} calls)", self.calls())
    }
}

impl Memory {
    /// An empty store, next door.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            inner: Arc::new(Inner {
                clock,
                state: Mutex::default(),
                delay_micros: AtomicU64::new(0),
                is_away: AtomicBool::new(false),
                calls: AtomicU64::new(0),
            }),
        }
    }

    /// Every call takes so long to get here, and its answer as long to get back.
    pub fn set_delay(&self, one_way: Duration) {
        let micros = u64::try_from(one_way.as_micros()).unwrap_or(u64::MAX);
        self.inner.delay_micros.store(micros, Ordering::Relaxed);
    }

    /// Whether calls fail.
    pub fn set_away(&self, is_away: bool) {
        self.inner.is_away.store(is_away, Ordering::Relaxed);
    }

    /// It comes back empty, as another server.
    pub fn wipe(&self) {
        let mut state = self.inner.state.lock();
        *state = State {
            identity: state.identity + 1,
            ..State::default()
        };
    }

    /// It comes back with all that it had, as another server.
    pub fn restart(&self) {
        self.inner.state.lock().identity += 1;
    }

    /// Calls so far, those that failed included.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.inner.calls.load(Ordering::Relaxed)
    }

    async fn call<T>(&self, work: impl FnOnce(&mut State) -> T) -> Result<T, StoreError> {
        self.inner.calls.fetch_add(1, Ordering::Relaxed);
        self.travel().await;
        if self.inner.is_away.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable {
                doing: "reach",
                place: "the store in memory".to_owned(),
                source: "it is away".into(),
            });
        }
        let done = work(&mut self.inner.state.lock());
        self.travel().await;
        Ok(done)
    }

    fn loaded(&self, state: &State, key: &RecordKey) -> Loaded {
        Loaded {
            record: state.records.get(key).cloned(),
            now: self.inner.clock.now(),
            identity: Identity(state.identity),
        }
    }

    async fn travel(&self) {
        let micros = self.inner.delay_micros.load(Ordering::Relaxed);
        if micros > 0 {
            tokio::time::sleep(Duration::from_micros(micros)).await;
        }
    }
}

impl Store for Memory {
    fn load<'a>(&'a self, key: &'a RecordKey) -> BoxFuture<'a, Result<Loaded, StoreError>> {
        Box::pin(self.call(move |state| self.loaded(state, key)))
    }

    fn compare_and_swap<'a>(
        &'a self,
        key: &'a RecordKey,
        expected: Expected,
        value: Vec<u8>,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(self.call(move |state| {
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
            Swap::Swapped
        }))
    }

    fn take_number<'a>(&'a self, name: &'a CounterName) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(self.call(move |state| {
            let next = state.numbers.entry(name.clone()).or_insert(0);
            *next += 1;
            *next - 1
        }))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}
