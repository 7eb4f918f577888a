//! Store that counts requests and delegates them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anteroom_room::time::DurationMs;
use anteroom_store::{
    BoxFuture, CounterName, Expected, LeftChanges, LeftRequest, Loaded, RecordKey, Store,
    StoreError, Swap,
};

/// Store that counts requests.
#[derive(Clone)]
pub(crate) struct Counted {
    store: Arc<dyn Store>,
    requests: Arc<AtomicU64>,
}

impl Counted {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            requests: Arc::default(),
        }
    }

    /// Returns the number of requests.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    fn count(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }
}

impl Store for Counted {
    fn load<'a>(&'a self, key: &'a RecordKey) -> BoxFuture<'a, Result<Loaded, StoreError>> {
        self.count();
        self.store.load(key)
    }

    fn compare_and_swap<'a>(
        &'a self,
        key: &'a RecordKey,
        expected: Expected,
        value: Vec<u8>,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        self.count();
        self.store.compare_and_swap(key, expected, value)
    }

    fn load_and_leave<'a>(
        &'a self,
        key: &'a RecordKey,
        leave: Option<LeftRequest>,
    ) -> BoxFuture<'a, Result<Loaded, StoreError>> {
        self.count();
        self.store.load_and_leave(key, leave)
    }

    fn swap_and_remove<'a>(
        &'a self,
        key: &'a RecordKey,
        expected: Expected,
        value: Vec<u8>,
        left: LeftChanges,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        self.count();
        self.store.swap_and_remove(key, expected, value, left)
    }

    fn keep_for<'a>(
        &'a self,
        key: &'a RecordKey,
        value: Option<&'a [u8]>,
        lifetime: DurationMs,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.count();
        self.store.keep_for(key, value, lifetime)
    }

    fn take_number<'a>(&'a self, name: &'a CounterName) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.count();
        self.store.take_number(name)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.store.close()
    }
}
