//! A real store that tells the time and the name of one that was simulated.
//!
//! A real store's clock cannot be set and its identity not be chosen, but what a ledger says
//! depends on both. Records, versions and refusals are the real store's. Of its own clock only that
//! it never runs backwards is checked, of its own identity that it stays.

use std::sync::Arc;

use anteroom_room::time::Timestamp;
use anteroom_store::{
    BoxFuture, CounterName, Expected, Identity, Loaded, RecordKey, Store, StoreError, Swap,
};
use parking_lot::Mutex;

/// The store as the ledger sees it.
pub(crate) struct Stage(Mutex<Setting>);

struct Setting {
    store: Arc<dyn Store>,
    now: Timestamp,
    /// What its identity differs by from the real one's.
    mask: u64,
    /// What the real one said last of its time and of itself.
    seen: Option<(Timestamp, Identity)>,
}

impl Stage {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self(Mutex::new(Setting {
            store,
            now: Timestamp::ZERO,
            mask: 0,
            seen: None,
        }))
    }

    /// From now on it is so late.
    pub(crate) fn set_now(&self, now: Timestamp) {
        self.0.lock().now = now;
    }

    /// From now on it is another server, with what it has.
    pub(crate) fn become_another(&self) {
        self.0.lock().mask += 1;
    }

    /// From now on it is another server, in which this is.
    pub(crate) fn replace(&self, store: Arc<dyn Store>) {
        let mut setting = self.0.lock();
        setting.store = store;
        setting.mask += 1;
        setting.seen = None;
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.0.lock().store)
    }

    /// Turns what the real store says into what is seen.
    ///
    /// # Panics
    ///
    /// If the real store's clock runs backwards or it has become another one: this is a test.
    fn shown(&self, loaded: Loaded) -> Loaded {
        let mut setting = self.0.lock();
        if let Some((now, identity)) = setting.seen {
            assert!(loaded.now >= now, "its clock fell from {now:?}: {loaded:?}");
            assert_eq!(loaded.identity, identity, "it has become another one");
        }
        setting.seen = Some((loaded.now, loaded.identity));
        Loaded {
            now: setting.now,
            identity: Identity(loaded.identity.0 ^ setting.mask),
            ..loaded
        }
    }

    /// What the real store must find.
    fn meant(&self, expected: Expected) -> Expected {
        Expected {
            identity: Identity(expected.identity.0 ^ self.0.lock().mask),
            ..expected
        }
    }
}

impl Store for Stage {
    fn load<'a>(&'a self, key: &'a RecordKey) -> BoxFuture<'a, Result<Loaded, StoreError>> {
        let store = self.store();
        Box::pin(async move { Ok(self.shown(store.load(key).await?)) })
    }

    fn compare_and_swap<'a>(
        &'a self,
        key: &'a RecordKey,
        expected: Expected,
        value: Vec<u8>,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        let store = self.store();
        let expected = self.meant(expected);
        Box::pin(async move {
            let swap = store.compare_and_swap(key, expected, value).await?;
            Ok(match swap {
                Swap::Conflict(loaded) => Swap::Conflict(self.shown(loaded)),
                swap => swap,
            })
        })
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
