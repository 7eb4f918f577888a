//! Real store with the clock and the identity of a simulated one.
//!
//! A real store's clock and identity cannot be set, but a ledger depends on both. Records, versions
//! and rejections are the real store's. Of its own clock the stage checks only that it never runs
//! backwards, and of its identity that it stays.

use std::sync::Arc;

use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_store::{
    BoxFuture, CounterName, Expected, Identity, Loaded, RecordKey, Store, StoreError, StoreFacts,
    Swap,
};
use parking_lot::Mutex;

/// Store as the ledger sees it.
pub(crate) struct Stage(Mutex<Setting>);

struct Setting {
    store: Arc<dyn Store>,
    now: Timestamp,
    /// Identity and promise that it shows.
    shown: StoreFacts,
    /// Last time and identity of the real store.
    real_state: Option<(Timestamp, Identity)>,
}

impl Stage {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self(Mutex::new(Setting {
            store,
            now: Timestamp::ZERO,
            shown: StoreFacts::default(),
            real_state: None,
        }))
    }

    /// Sets its clock.
    pub(crate) fn set_now(&self, now: Timestamp) {
        self.0.lock().now = now;
    }

    /// Sets its identity and its promise about writes.
    pub(crate) fn set_store(&self, shown: StoreFacts) {
        self.0.lock().shown = shown;
    }

    /// Gives it the data of `store`.
    pub(crate) fn replace(&self, store: Arc<dyn Store>) {
        let mut setting = self.0.lock();
        setting.store = store;
        setting.real_state = None;
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.0.lock().store)
    }

    /// Translates the real store's load.
    ///
    /// # Panics
    ///
    /// If the real store's clock runs backwards or its identity changes.
    fn to_simulated(&self, loaded: Loaded) -> Loaded {
        let mut setting = self.0.lock();
        if let Some((now, identity)) = setting.real_state {
            assert!(loaded.now >= now, "its clock fell from {now:?}: {loaded:?}");
            assert_eq!(loaded.identity, identity, "it has become another one");
        }
        setting.real_state = Some((loaded.now, loaded.identity));
        Loaded {
            now: setting.now,
            identity: setting.shown.identity,
            durability: setting.shown.durability,
            ..loaded
        }
    }

    /// Translates the version and identity that the real store must have.
    fn to_real(&self, expected: Expected) -> Expected {
        let setting = self.0.lock();
        let Some((_, identity)) = setting.real_state else {
            return expected;
        };
        let is_shown = expected.identity == setting.shown.identity;
        Expected {
            // Another one than shown is another one than the real store's.
            identity: Identity(identity.0 ^ u64::from(!is_shown)),
            ..expected
        }
    }
}

impl Store for Stage {
    fn load<'a>(&'a self, key: &'a RecordKey) -> BoxFuture<'a, Result<Loaded, StoreError>> {
        let store = self.store();
        Box::pin(async move { Ok(self.to_simulated(store.load(key).await?)) })
    }

    fn compare_and_swap<'a>(
        &'a self,
        key: &'a RecordKey,
        expected: Expected,
        value: Vec<u8>,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        let store = self.store();
        let expected = self.to_real(expected);
        Box::pin(async move {
            let swap = store.compare_and_swap(key, expected, value).await?;
            Ok(match swap {
                Swap::Conflict(loaded) => Swap::Conflict(self.to_simulated(loaded)),
                swap => swap,
            })
        })
    }

    fn keep_for<'a>(
        &'a self,
        key: &'a RecordKey,
        value: Option<&'a [u8]>,
        lifetime: DurationMs,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let store = self.store();
        Box::pin(async move { store.keep_for(key, value, lifetime).await })
    }

    fn take_number<'a>(&'a self, name: &'a CounterName) -> BoxFuture<'a, Result<u64, StoreError>> {
        let store = self.store();
        Box::pin(async move { store.take_number(name).await })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        let store = self.store();
        Box::pin(async move { store.close().await })
    }
}
