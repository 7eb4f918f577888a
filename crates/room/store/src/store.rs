//! The [`Store`] trait: versioned records, counters and an identity.

use std::future::Future;
use std::pin::Pin;

use anteroom_room::allocation::CounterKey;
pub use anteroom_room::ledger_exchange::{Expected, LEFT_FOR, LEFT_MAX, RecordVersion};
pub use anteroom_room::store::{Durability, Identity, StoreFacts};
use anteroom_room::sync::SyncRequest;
use anteroom_room::time::{DurationMs, Timestamp};

/// Time for which a note lies beside a record. A reader that leaves one every five seconds may miss
/// two.
pub const NOTE_FOR: DurationMs = DurationMs::from_secs(15);
/// Most notes beside a record: one of each node, and of each that ended in the last seconds.
pub const NOTES_MAX: usize = 256;

use crate::history::{HistoryBound, HistoryName, HistoryRow, HistoryRows, HistorySpan};

/// Future that a store returns. It is boxed so that nodes need not know the type of their store: a
/// node sends it a few requests a second, so one allocation each is cheap.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Storage of ledgers and counters.
pub trait Store: Send + Sync + 'static {
    /// Loads a record, together with the store's identity and its clock.
    fn load<'a>(&'a self, key: &'a RecordKey) -> BoxFuture<'a, Result<Loaded, StoreError>>;

    /// Loads a record like [`Store::load`], unless its version and the store's identity are still
    /// the known ones. A shared store then sends no content. The reader may leave a note beside the
    /// record.
    fn load_changed<'a>(
        &'a self,
        key: &'a RecordKey,
        known: Expected,
        note: Option<&'a Note>,
    ) -> BoxFuture<'a, Result<Option<Loaded>, StoreError>> {
        let _ = note;
        Box::pin(async move {
            let loaded = self.load(key).await?;
            Ok((loaded.expected() != known).then_some(loaded))
        })
    }

    /// Returns the notes that readers left beside a record within [`NOTE_FOR`], by the store's
    /// clock. A store that one process has to itself keeps none.
    fn notes<'a>(&'a self, key: &'a RecordKey) -> BoxFuture<'a, Result<Vec<Note>, StoreError>> {
        let _ = key;
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Lets a record expire after `lifetime`, from now on and by the store's clock. A later swap of
    /// the record makes it stay. Where there is none, `value` becomes the record. Returns whether
    /// there is a record now.
    fn keep_for<'a>(
        &'a self,
        key: &'a RecordKey,
        value: Option<&'a [u8]>,
        lifetime: DurationMs,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Writes a record if its version and the store's identity are still the expected ones. Only a
    /// write that survives a crash of this process may report [`Swap::Swapped`].
    fn compare_and_swap<'a>(
        &'a self,
        key: &'a RecordKey,
        expected: Expected,
        value: Vec<u8>,
    ) -> BoxFuture<'a, Result<Swap, StoreError>>;

    /// Loads a record together with the requests that writers left beside it, and leaves one more.
    /// A request that is not among the returned ones was not left: there are too many, or the
    /// store keeps none.
    ///
    /// A store that one process has to itself keeps none. A shared store keeps up to [`LEFT_MAX`]
    /// beside each record, for [`LEFT_FOR`] after the newest one, or until it loses data.
    fn load_and_leave<'a>(
        &'a self,
        key: &'a RecordKey,
        leave: Option<LeftRequest>,
    ) -> BoxFuture<'a, Result<Loaded, StoreError>> {
        drop(leave);
        self.load(key)
    }

    /// Writes a record like [`Store::compare_and_swap`], and removes the requests that its new
    /// value contains. If another writer was first, nothing is removed, and a request is left as by
    /// [`Store::load_and_leave`].
    fn swap_and_remove<'a>(
        &'a self,
        key: &'a RecordKey,
        expected: Expected,
        value: Vec<u8>,
        left: LeftChanges,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        drop(left);
        self.compare_and_swap(key, expected, value)
    }

    /// Takes the next number of a counter, beginning with 0. A number is never handed out twice;
    /// after a crash some may be missing.
    fn take_number<'a>(&'a self, name: &'a CounterName) -> BoxFuture<'a, Result<u64, StoreError>>;

    /// Writes rows of the histories of rooms. A row of the same grain, minute and node is replaced,
    /// so a write that may have been carried out can be repeated.
    ///
    /// Afterwards the store has no row that is older than its grain allows, counted from the newest
    /// one here, and keeps the bound: the oldest rows go first. A store that keeps no history
    /// writes nothing.
    fn put_history<'a>(
        &'a self,
        rows: &'a [HistoryRows],
        bound: HistoryBound,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let _ = (rows, bound);
        Box::pin(async { Ok(()) })
    }

    /// Reads the rows of a room's history, in the order of their minutes.
    fn history<'a>(
        &'a self,
        name: &'a HistoryName,
        span: HistorySpan,
    ) -> BoxFuture<'a, Result<Vec<HistoryRow>, StoreError>> {
        let _ = (name, span);
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Releases everything, so that another process may take over. Later operations fail.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Source of room time. A store inside this process uses the node's clock.
pub trait Clock: Send + Sync + 'static {
    /// Returns the present room time.
    fn now(&self) -> Timestamp;

    /// Keeps room time at or after `at`, the latest time that a journal has recorded.
    fn never_before(&self, at: Timestamp);
}

/// Name of a record: one ledger.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RecordKey(pub String);

/// Name of a counter of the `counters` allocation.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CounterName {
    /// Name of the room.
    pub room: String,
    /// Counter of that room.
    pub key: CounterKey,
}

/// Name of a left request: its child and its number.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LeftId(pub Vec<u8>);

impl LeftId {
    /// Returns the name of a request.
    #[must_use]
    pub fn of(request: &SyncRequest) -> Self {
        let (child, number) = (request.child.0.to_be_bytes(), request.number.to_be_bytes());
        Self([child, number].concat())
    }
}

/// Request that its sender left beside a record, for any writer to apply.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LeftRequest {
    /// Name of the request.
    pub id: LeftId,
    /// Content, opaque to the store.
    pub value: Vec<u8>,
}

/// Changes of the requests that are left beside a record, by a write.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LeftChanges {
    /// Requests to remove, if the record is written.
    pub applied: Vec<LeftId>,
    /// Request to leave, if it is not.
    pub leave: Option<LeftRequest>,
}

/// Note of a reader beside a record. A newer one of the same name replaces it; one without content
/// removes it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Note {
    /// Name of the reader.
    pub name: String,
    /// Content, opaque to the store.
    pub value: Vec<u8>,
}

/// Result of [`Store::load`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Loaded {
    /// The record; `None` if there is none.
    pub record: Option<Record>,
    /// The store's clock, to compare it with those of the nodes. It orders changes of the rooms of
    /// the API; nothing else is decided by it.
    pub now: Timestamp,
    /// The store's identity.
    pub identity: Identity,
    /// Promise of the store about its writes.
    pub durability: Durability,
    /// Requests that are left beside the record, if they were asked for.
    pub left: Vec<LeftRequest>,
}

impl Loaded {
    /// Returns the facts about the store that its records depend on.
    #[must_use]
    pub fn store(&self) -> StoreFacts {
        StoreFacts {
            identity: self.identity,
            durability: self.durability,
        }
    }

    /// Returns the state that a write based on this load must find.
    #[must_use]
    pub fn expected(&self) -> Expected {
        let record = self.record.as_ref();
        Expected {
            version: record.map_or(RecordVersion::ABSENT, |record| record.version),
            identity: self.identity,
        }
    }
}

/// A record and its version.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Record {
    /// Version that the next write must expect.
    pub version: RecordVersion,
    /// Content, opaque to the store.
    pub value: Vec<u8>,
}

/// Outcome of a write.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Swap {
    /// The record is written.
    Swapped,
    /// Another writer was first. Contains the present record, as a load returns it.
    Conflict(Loaded),
    /// The identity of the store has changed since the load. Load again.
    OtherStore,
}

/// Error of a store operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process holds the journal. Wait, or stop that process.
    #[error("another process holds the journal {path}")]
    Held {
        /// Path of the journal.
        path: String,
    },
    /// The store does not work at present: unreachable, disk full or read-only.
    #[error("cannot {doing} {store_name}")]
    Unavailable {
        /// Operation that failed: open, read, write or reach.
        doing: &'static str,
        /// Name of the store: a journal's path, or an address without its password.
        store_name: String,
        /// Underlying error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The store replies, but rejects the operation until an operator changes something.
    #[error("{store_name} {reason}; {remedy}")]
    Rejected {
        /// Name of the store.
        store_name: String,
        /// Reason, in our words.
        reason: &'static str,
        /// Next step of the operator.
        remedy: &'static str,
        /// Reply of the store, in its words.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// [`Store::close`] was called before.
    #[error("the store is closed")]
    Closed,
}

/// Formats an error with its causes, on one line.
#[must_use]
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
