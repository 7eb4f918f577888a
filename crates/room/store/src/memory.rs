//! Store in memory that several nodes of one process share, for tests of the code above stores. It
//! counts its requests, and a test sets its delay and makes it unavailable or lose its records.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::store::{
    BoxFuture, Clock, CounterName, Durability, Expected, Identity, Loaded, Record, RecordKey,
    RecordVersion, Store, StoreError, Swap,
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
        let done = work(&mut self.inner.state.lock());
        self.delay().await;
        Ok(done)
    }

    fn loaded(&self, state: &State, key: &RecordKey) -> Loaded {
        Loaded {
            record: state.records.get(key).cloned(),
            now: self.inner.clock.now(),
            identity: Identity(state.identity),
            durability: Durability::KeepsAll,
        }
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
        Box::pin(self.request(move |state| {
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
        Box::pin(self.request(move |state| {
            let next = state.numbers.entry(name.clone()).or_insert(0);
            *next += 1;
            *next - 1
        }))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}
