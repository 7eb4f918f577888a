//! What every store offers.

use std::future::Future;
use std::pin::Pin;

use anteroom_room::allocation::CounterKey;
pub use anteroom_room::ledger_call::{Expected, Identity, RecordVersion};
use anteroom_room::time::Timestamp;

/// A future that a store returns. Boxed: a node talks to its store a few times a second, and one
/// allocation buys that nodes need not know which store it is.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A place for ledgers and counters.
pub trait Store: Send + Sync + 'static {
    /// Loads a record, together with the store's clock and identity.
    fn load<'a>(&'a self, key: &'a RecordKey) -> BoxFuture<'a, Result<Loaded, StoreError>>;

    /// Writes a record if nobody has written it since, and the store is still the one that it was.
    /// Only a write that will survive a crash of this process may report [`Swap::Swapped`].
    fn compare_and_swap<'a>(
        &'a self,
        key: &'a RecordKey,
        expected: Expected,
        value: Vec<u8>,
    ) -> BoxFuture<'a, Result<Swap, StoreError>>;

    /// Takes the next number of a counter, beginning with 0. A number is never handed out twice;
    /// after a crash some may be missing.
    fn take_number<'a>(&'a self, name: &'a CounterName) -> BoxFuture<'a, Result<u64, StoreError>>;

    /// Lets go of everything, so that another process may take over. Later calls fail.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Tells the time of rooms. A store that lives in this process uses the node's clock.
pub trait Clock: Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Timestamp;

    /// Room time was at least this before: it never falls behind what a journal has seen.
    fn never_before(&self, at: Timestamp);
}

/// Name of a record: one ledger.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RecordKey(pub String);

/// Name of a counter of the `counters` allocation.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CounterName {
    /// Which room.
    pub room: String,
    /// Which counter of it.
    pub key: CounterKey,
}

/// What [`Store::load`] returns.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Loaded {
    /// The record; `None` if there is none.
    pub record: Option<Record>,
    /// The store's clock.
    pub now: Timestamp,
    /// The store's identity.
    pub identity: Identity,
}

impl Loaded {
    /// What a write that follows from this must find.
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
    /// Its version.
    pub version: RecordVersion,
    /// Its bytes.
    pub value: Vec<u8>,
}

/// What became of a write.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Swap {
    /// Written.
    Swapped,
    /// Somebody else wrote first: what is there, as a load would bring it.
    Conflict(Loaded),
    /// The store is another one than was read; load again.
    OtherStore,
}

/// Why a store could not do what it was asked to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process holds it. Wait, or stop the other one.
    #[error("another process holds the journal {path}")]
    Held {
        /// The journal.
        path: String,
    },
    /// It does not work at present: disk full, read-only, gone.
    #[error("cannot {doing} {place}")]
    Unavailable {
        /// What was tried: open, read, write, reach.
        doing: &'static str,
        /// Which store: a journal, an address without its password.
        place: String,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It answers, and will not do what is asked before somebody has changed something.
    #[error("{place} {refusal}; {remedy}")]
    Refused {
        /// Which store.
        place: String,
        /// What it said, in our words.
        refusal: &'static str,
        /// What to do.
        remedy: &'static str,
        /// What it said, in its words.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It was closed on purpose.
    #[error("the store is closed")]
    Closed,
}

/// An error with its causes, on one line.
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
