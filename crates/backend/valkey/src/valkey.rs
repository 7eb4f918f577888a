//! Store of rooms on Valkey or Redis.

use std::fmt;

use anteroom_config::ValkeyAddress;
use anteroom_room::time::DurationMs;
use anteroom_store::{
    BoxFuture, CounterName, Expected, HistoryBound, HistoryName, HistoryRow, HistoryRows,
    HistorySpan, LeftChanges, LeftRequest, Loaded, Note, RecordKey, Store, StoreError, Swap,
};

use crate::access::SetupError;
use crate::health::{self, Findings};
use crate::history::HistoryScripts;
use crate::keys::Keys;
use crate::route::Route;
use crate::script::{KeysWithLeft, Scripts};

/// Store of rooms on Valkey or Redis.
///
/// There is one connection to each server, shared by all requests. It is opened by the first
/// request and reopened after a loss. A load and a swap cost one round trip each. Requests end
/// within 1 s, 2.25 s with a new connection; while the circuit is open they end at once.
///
/// # Invariants
///
/// - A load and the swap after it happen in one run of one server, or the swap is a conflict.
/// - A swap is sent once. Without a reply it may have been carried out or not.
///
/// # Limits
///
/// A server that loses its data, or a replica that is promoted before it had all of them, returns
/// numbers of the current minute again. Ledgers notice this by the identity, counters do not.
pub struct Valkey {
    route: Route,
    keys: Keys,
    scripts: Scripts,
    history: HistoryScripts,
    /// Name of the store, without secrets.
    store_name: String,
}

impl Valkey {
    /// Creates a store; `prefix` begins all its keys. Opens no connection yet.
    ///
    /// # Errors
    ///
    /// [`SetupError`] if the trusted certificates for TLS cannot be read.
    pub fn new(address: &ValkeyAddress, prefix: &str) -> Result<Self, SetupError> {
        Ok(Self {
            route: Route::new(address)?,
            keys: Keys::new(prefix),
            scripts: Scripts::new(),
            history: HistoryScripts::new(),
            store_name: address.to_string(),
        })
    }

    /// Checks that the store is fit for use: it is available, accepts our credentials, is new
    /// enough and no replica.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if it is not, with the remedy if an operator has to act.
    pub async fn check(&self) -> Result<Findings, StoreError> {
        let found = health::check(&self.route).await;
        found.map_err(|failure| failure.into_store_error("check", &self.store_name))
    }
}

impl Store for Valkey {
    fn load<'a>(&'a self, key: &'a RecordKey) -> BoxFuture<'a, Result<Loaded, StoreError>> {
        Box::pin(async move {
            let loaded = self.scripts.load(&self.route, &self.keys.record(key)).await;
            loaded.map_err(|failure| failure.into_store_error("read from", &self.store_name))
        })
    }

    fn load_changed<'a>(
        &'a self,
        key: &'a RecordKey,
        known: Expected,
        note: Option<&'a Note>,
    ) -> BoxFuture<'a, Result<Option<Loaded>, StoreError>> {
        Box::pin(async move {
            let (scripts, route) = (&self.scripts, &self.route);
            let (record, notes) = (self.keys.record(key), self.keys.notes(key));
            let note = note.map(|note| (&*notes, note));
            let loaded = match scripts.load_changed(route, &record, known, note).await {
                // As in `load_and_leave`: until the other key is there, no note is left.
                Err(failure) if failure.is_slot_divided() => {
                    scripts.load_changed(route, &record, known, None).await
                }
                loaded => loaded,
            };
            loaded.map_err(|failure| failure.into_store_error("read from", &self.store_name))
        })
    }

    fn notes<'a>(&'a self, key: &'a RecordKey) -> BoxFuture<'a, Result<Vec<Note>, StoreError>> {
        Box::pin(async move {
            let notes = self.scripts.notes(&self.route, &self.keys.notes(key)).await;
            notes.map_err(|failure| failure.into_store_error("read from", &self.store_name))
        })
    }

    fn keep_for<'a>(
        &'a self,
        key: &'a RecordKey,
        value: Option<&'a [u8]>,
        lifetime: DurationMs,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let (scripts, key) = (&self.scripts, self.keys.record(key));
            let kept = scripts.keep_for(&self.route, &key, value, lifetime).await;
            kept.map_err(|failure| failure.into_store_error("write to", &self.store_name))
        })
    }

    fn compare_and_swap<'a>(
        &'a self,
        key: &'a RecordKey,
        expected: Expected,
        value: Vec<u8>,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(async move {
            let key = self.keys.record(key);
            let swap = self.scripts.swap(&self.route, &key, expected, &value).await;
            swap.map_err(|failure| failure.into_store_error("write to", &self.store_name))
        })
    }

    fn load_and_leave<'a>(
        &'a self,
        key: &'a RecordKey,
        leave: Option<LeftRequest>,
    ) -> BoxFuture<'a, Result<Loaded, StoreError>> {
        Box::pin(async move {
            let (record, left) = (self.keys.record(key), self.keys.left(key));
            let keys = KeysWithLeft {
                record: &record,
                left: &left,
            };
            let leave = leave.as_ref();
            let loaded = match self.scripts.load_and_leave(&self.route, keys, leave).await {
                // The record alone is at one server. Until the other key is there, nothing is left.
                Err(failure) if failure.is_slot_divided() => {
                    self.scripts.load(&self.route, &record).await
                }
                loaded => loaded,
            };
            loaded.map_err(|failure| failure.into_store_error("read from", &self.store_name))
        })
    }

    fn swap_and_remove<'a>(
        &'a self,
        key: &'a RecordKey,
        expected: Expected,
        value: Vec<u8>,
        left: LeftChanges,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(async move {
            let (record, beside) = (self.keys.record(key), self.keys.left(key));
            let keys = KeysWithLeft {
                record: &record,
                left: &beside,
            };
            let (scripts, route) = (&self.scripts, &self.route);
            let write = (expected, &value[..]);
            let swap = match scripts.swap_and_remove(route, keys, write, &left).await {
                // As above. What was left stays, and is stale when it is applied again.
                Err(failure) if failure.is_slot_divided() => {
                    scripts.swap(route, &record, expected, &value).await
                }
                swap => swap,
            };
            swap.map_err(|failure| failure.into_store_error("write to", &self.store_name))
        })
    }

    fn take_number<'a>(&'a self, name: &'a CounterName) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move {
            let taken = self
                .scripts
                .take(&self.route, &self.keys.counter(name))
                .await;
            taken
                .map_err(|failure| failure.into_store_error("take a number from", &self.store_name))
        })
    }

    fn put_history<'a>(
        &'a self,
        rows: &'a [HistoryRows],
        bound: HistoryBound,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let put = self.history.put(&self.route, &self.keys, rows, bound).await;
            put.map_err(|failure| failure.into_store_error("write to", &self.store_name))
        })
    }

    fn history<'a>(
        &'a self,
        name: &'a HistoryName,
        span: HistorySpan,
    ) -> BoxFuture<'a, Result<Vec<HistoryRow>, StoreError>> {
        Box::pin(async move {
            let found = self.history.load(&self.route, &self.keys, name, span).await;
            found.map_err(|failure| failure.into_store_error("read from", &self.store_name))
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.route.close();
        Box::pin(async {})
    }
}

impl fmt::Debug for Valkey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Valkey({})", self.store_name)
    }
}
