//! Ledger of one room on a store: load, decide, compare and swap.
//!
//! The core decides, and says what to do if a record is absent, if another server wrote it, or if a
//! race is lost ([`anteroom_room::ledger_exchange`]). This module reads and writes the records.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::wire::ledger::{self as record, LedgerRecordError};
use anteroom_room::id::Incarnation;
use anteroom_room::ledger::Ledger;
use anteroom_room::ledger_exchange::{
    Delivery, InitialLedger, Leaving, LedgerOperation, NextStep, PAUSE_MAX, RecordState, TRIES,
    Tries, WriteOutcome, apply_left,
};
pub use anteroom_room::ledger_exchange::{Exchange, LedgerRole};
use anteroom_room::store::StoreFacts;
use anteroom_room::sync::{Reply, SyncRequest};
use anteroom_room::time::{DurationMs, Timestamp};
use tokio::time::Instant;

use crate::deployment;
use crate::left_requests::{self, LeftRequests};
use crate::store::{LeftChanges, LeftRequest, Loaded, RecordKey, Store, StoreError, Swap};

/// Shortest time after which a ledger ends. A node that has not heard of the end may still sync.
const ENDS_AFTER_MIN: DurationMs = DurationMs::from_secs(60);

/// Ledger of one room in one store.
#[derive(Clone)]
pub struct StoredLedger {
    store: Arc<dyn Store>,
    key: RecordKey,
    room: String,
    role: LedgerRole,
    incarnations: IncarnationSource,
    /// Whether the newest message met other writers.
    is_contended: Arc<AtomicBool>,
}

/// Source of the incarnations of new records.
type IncarnationSource = Arc<dyn Fn() -> Result<Incarnation, SyncError> + Send + Sync>;

/// Error of an operation on a ledger.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SyncError {
    /// The store failed.
    #[error("cannot reach the ledger of room {room}")]
    Store {
        /// Name of the room.
        room: String,
        /// Underlying error.
        source: StoreError,
    },
    /// The record is not readable.
    #[error("cannot read the ledger of room {room}")]
    Record {
        /// Name of the room.
        room: String,
        /// Underlying error.
        source: LedgerRecordError,
    },
    /// Other writers were first, every time.
    #[error("cannot update the ledger of room {room}: lost {TRIES} races to other nodes")]
    Contention {
        /// Name of the room.
        room: String,
    },
    /// The system has no random bytes.
    #[error("cannot draw random bytes")]
    Random(getrandom::Error),
}

impl std::fmt::Debug for StoredLedger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StoredLedger({}, {:?})", self.key.0, self.role)
    }
}

impl StoredLedger {
    /// Returns the ledger of `room` under `key`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, key: RecordKey, room: &str, role: LedgerRole) -> Self {
        let room = room.to_owned();
        Self {
            store,
            key,
            room,
            role,
            incarnations: Arc::new(new_incarnation),
            is_contended: Arc::default(),
        }
    }

    /// Replaces the source of incarnations. Replays need those of the recorded run.
    #[doc(hidden)]
    #[must_use]
    pub fn with_incarnations(
        mut self,
        source: impl Fn() -> Incarnation + Send + Sync + 'static,
    ) -> Self {
        self.incarnations = Arc::new(move || Ok(source()));
        self
    }

    /// Returns the ledger's role among the levels.
    #[must_use]
    pub fn role(&self) -> LedgerRole {
        self.role
    }

    /// Sends one request.
    ///
    /// # Errors
    ///
    /// [`SyncError`] if there is no reply. The request may still have taken effect. The next one
    /// corrects that, because requests contain absolute numbers.
    pub async fn sync(&self, request: &SyncRequest) -> Result<Reply, SyncError> {
        let exchange = self.exchange(request, None, false).await?;
        Ok(exchange.reply)
    }

    /// Delivers the reply of the root's ledger, if there is one, and sends a request. The exchange
    /// contains the next request to the root if that is due. `is_wanted` says that visitors wait
    /// for more than this ledger has.
    ///
    /// # Errors
    ///
    /// As [`StoredLedger::sync`].
    ///
    /// # Panics
    ///
    /// Never: every request of a child gets a reply.
    pub async fn exchange(
        &self,
        request: &SyncRequest,
        upstream_reply: Option<&Reply>,
        is_wanted: bool,
    ) -> Result<Exchange, SyncError> {
        let operation = LedgerOperation::Sync {
            request: Box::new(request.clone()),
            root_reply: upstream_reply.cloned(),
            is_wanted,
        };
        let exchange = self.perform(&operation).await?;
        Ok(exchange.expect("a request of a child gets a reply"))
    }

    /// Delivers a reply of the root's ledger, and nothing else.
    ///
    /// # Errors
    ///
    /// As [`StoredLedger::sync`].
    pub async fn deliver(&self, delivery: &Delivery) -> Result<(), SyncError> {
        self.perform(&LedgerOperation::Deliver(delivery.clone()))
            .await?;
        Ok(())
    }

    /// Ends a reserve: an operator has confirmed that there are no active visitors.
    ///
    /// # Errors
    ///
    /// As [`StoredLedger::sync`].
    pub async fn assume_empty(&self) -> Result<(), SyncError> {
        self.perform(&LedgerOperation::AssumeEmpty).await?;
        Ok(())
    }

    /// Performs an operation on the ledger, again if another writer was first. The same write
    /// applies the requests that others left beside the record.
    ///
    /// # Errors
    ///
    /// As [`StoredLedger::sync`].
    #[doc(hidden)]
    pub async fn perform(
        &self,
        operation: &LedgerOperation,
    ) -> Result<Option<Exchange>, SyncError> {
        let own = operation.request_to_leave(self.role);
        let own = own.and_then(left_requests::to_leave);
        let was_contended = self.is_contended.load(Ordering::Relaxed);
        let mut leaving = Leaving::new(own.is_some(), was_contended);
        let result = self.write(operation, own.as_ref(), &mut leaving).await;
        let is_contended = leaving.has_met_others();
        self.is_contended.store(is_contended, Ordering::Relaxed);
        result
    }

    async fn write(
        &self,
        operation: &LedgerOperation,
        own: Option<&LeftRequest>,
        leaving: &mut Leaving,
    ) -> Result<Option<Exchange>, SyncError> {
        let (at, terms) = (operation.sent_at(), self.role.lease_terms());
        let mut tries = Tries::default();
        let mut loaded = self.load_and_leave(own, leaving).await?;
        loop {
            let left = LeftRequests::of(&loaded, own);
            let was_taken = leaving.is_taken(left.is_own_left);
            leaving.handle_loaded(left.is_own_left, !left.of_others.is_empty());
            if tries.has_lost()
                && let Some(ledger) = self.present(&loaded)?
                && let Some(applied) = operation.applied_by_another(&ledger, terms, was_taken)
            {
                return Ok(Some(applied));
            }
            let mut ledger = self.open(&loaded, at).await?;
            for request in &left.of_others {
                apply_left(request, &mut ledger, terms);
            }
            let done = operation.perform(&mut ledger, terms);
            let (expected, value) = (loaded.expected(), record::encode(&ledger));
            let changes = LeftChanges {
                applied: left.to_remove,
                leave: own.filter(|_| leaving.is_due_at_conflict()).cloned(),
            };
            let began = Instant::now();
            let swap = if self.role.has_left_requests() {
                let write = self
                    .store
                    .swap_and_remove(&self.key, expected, value, changes);
                write.await
            } else {
                self.store
                    .compare_and_swap(&self.key, expected, value)
                    .await
            };
            let swap = swap.map_err(|source| self.failed(source))?;
            let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            let written = outcome(&swap);
            leaving.handle_written(written);
            loaded = match (tries.handle_written(written, DurationMs(took)), swap) {
                (NextStep::Done, _) => return Ok(done),
                (NextStep::GiveUp, _) => return Err(self.contended()),
                (NextStep::Decide, Swap::Conflict(loaded)) => loaded,
                (NextStep::Decide | NextStep::Load, _) => self.load_and_leave(own, leaving).await?,
                (NextStep::Pause, _) => {
                    step_aside().await;
                    self.load_and_leave(own, leaving).await?
                }
            };
        }
    }

    /// Returns the ledger, and changes nothing.
    ///
    /// # Errors
    ///
    /// As [`StoredLedger::sync`].
    pub async fn read(&self) -> Result<Ledger, SyncError> {
        let loaded = self.load().await?;
        self.open(&loaded, None).await
    }

    /// Lets the ledger end one session from now, unless it is written before: the session of the
    /// longest seat that it may know.
    ///
    /// # Errors
    ///
    /// [`SyncError`] if the store fails or the record cannot be read.
    pub async fn end_after_session(&self) -> Result<(), SyncError> {
        let loaded = self.load().await?;
        if loaded.record.is_none() {
            return Ok(());
        }
        let longest = self.open(&loaded, None).await?.longest_seat();
        let kept = self
            .store
            .keep_for(&self.key, None, longest.max(ENDS_AFTER_MIN));
        kept.await.map_err(|source| self.failed(source))?;
        Ok(())
    }

    /// Replaces the record. Replays put older ones back.
    ///
    /// # Errors
    ///
    /// [`SyncError`] if it is not replaced.
    #[doc(hidden)]
    pub async fn replace(&self, ledger: &Ledger) -> Result<(), SyncError> {
        let expected = self.load().await?.expected();
        let value = record::encode(ledger);
        let swap = self.store.compare_and_swap(&self.key, expected, value);
        match swap.await.map_err(|source| self.failed(source))? {
            Swap::Swapped => Ok(()),
            Swap::Conflict(_) | Swap::OtherStore => Err(self.contended()),
        }
    }

    async fn load(&self) -> Result<Loaded, SyncError> {
        let loaded = self.store.load(&self.key).await;
        loaded.map_err(|source| self.failed(source))
    }

    /// Loads the record with the requests that are left beside it; leaves the own one if that is
    /// due.
    async fn load_and_leave(
        &self,
        own: Option<&LeftRequest>,
        leaving: &Leaving,
    ) -> Result<Loaded, SyncError> {
        if !self.role.has_left_requests() {
            return self.load().await;
        }
        let leave = own.filter(|_| leaving.is_due_at_load()).cloned();
        let loaded = self.store.load_and_leave(&self.key, leave).await;
        loaded.map_err(|source| self.failed(source))
    }

    /// Returns the ledger of a record, or a new one if the record is absent or not trusted.
    async fn open(&self, loaded: &Loaded, at: Option<Timestamp>) -> Result<Ledger, SyncError> {
        let (seen, left) = self.parse(loaded)?;
        let is_first_start = if InitialLedger::needs_first_start(self.role, seen) {
            let ttl = self.role.lease_terms().ttl;
            let is_first = deployment::is_first_start(&*self.store, ttl, at).await;
            is_first.map_err(|source| self.failed(source))?
        } else {
            false
        };
        let is_same = |before: StoreFacts| before.identity == seen.store.identity;
        if self.role == LedgerRole::Alone || seen.written_to.is_some_and(is_same) {
            // No incarnation is drawn.
            let opening = InitialLedger::of(self.role, seen, Incarnation::ALONE, false);
            return Ok(opening.open(left, seen.store));
        }
        let opening = InitialLedger::of(self.role, seen, (self.incarnations)()?, is_first_start);
        match opening {
            InitialLedger::Epoch(..) => tracing::warn!(
                room = %self.room,
                "the store is another server than before and may have lost its newest writes: \
                 nobody is admitted until all earlier leases have ended"
            ),
            InitialLedger::Probation(_) => tracing::warn!(
                room = %self.room,
                "the store came back as another server: nobody is admitted until all nodes have \
                 reported again"
            ),
            InitialLedger::FoundEmpty(..) => tracing::warn!(
                room = %self.room,
                "the store has no record of this room and may have lost it: nobody is admitted \
                 until all earlier leases have ended"
            ),
            _ => {}
        }
        Ok(opening.open(left, seen.store))
    }

    /// Returns the state of a record, and its ledger.
    fn parse(&self, loaded: &Loaded) -> Result<(RecordState, Option<Ledger>), SyncError> {
        let found = loaded.record.as_ref();
        let left = found.map(|found| record::decode(&found.value)).transpose();
        let left = left.map_err(|source| SyncError::Record {
            room: self.room.clone(),
            source,
        })?;
        let seen = RecordState {
            expected: loaded.expected(),
            store: loaded.store(),
            written_to: left.as_ref().map(Ledger::store),
        };
        Ok((seen, left))
    }

    /// Returns the ledger of a record; `None` if it is absent, or another server wrote it.
    fn present(&self, loaded: &Loaded) -> Result<Option<Ledger>, SyncError> {
        let (seen, ledger) = self.parse(loaded)?;
        Ok(ledger.filter(|ledger| ledger.store().identity == seen.store.identity))
    }

    fn contended(&self) -> SyncError {
        SyncError::Contention {
            room: self.room.clone(),
        }
    }

    fn failed(&self, source: StoreError) -> SyncError {
        SyncError::Store {
            room: self.room.clone(),
            source,
        }
    }
}

fn new_incarnation() -> Result<Incarnation, SyncError> {
    let random = getrandom::u64().map_err(SyncError::Random)?;
    Ok(Incarnation::first(random))
}

fn outcome(swap: &Swap) -> WriteOutcome {
    match swap {
        Swap::Swapped => WriteOutcome::Yes,
        Swap::Conflict(_) => WriteOutcome::Conflict,
        Swap::OtherStore => WriteOutcome::OtherStore,
    }
}

/// Waits for a random time, so that other writers go first.
async fn step_aside() {
    let most = PAUSE_MAX.0 * 1_000;
    // Without random bytes all writers wait equally long: slower, not wrong.
    let drawn = getrandom::u64().unwrap_or(most) % most;
    tokio::time::sleep(Duration::from_micros(drawn)).await;
}
