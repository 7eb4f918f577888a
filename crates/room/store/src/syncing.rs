//! Runs the core's ledger on a store: load, decide, compare and swap.
//!
//! What is decided, what becomes of a record that is not there or that another server wrote, and of
//! a race that is lost, is the core's business ([`anteroom_room::ledger_call`]). Here messages are
//! carried and records read and written.

use std::sync::Arc;
use std::time::Duration;

use crate::wire::ledger::{self as record, LedgerRecordError};
use anteroom_room::id::Incarnation;
use anteroom_room::ledger::Ledger;
pub use anteroom_room::ledger_call::{Exchange, LedgerRole};
use anteroom_room::ledger_call::{
    LedgerOperation, Next, Opening, STEP_ASIDE_MAX, Seen, TRIES, Tries, Written,
};
use anteroom_room::sync::{Reply, SyncRequest};
use anteroom_room::time::{DurationMs, Timestamp};
use tokio::time::Instant;

use crate::deployment;
use crate::store::{Identity, Loaded, RecordKey, Store, StoreError, Swap};

/// One room's ledger in one store.
#[derive(Clone)]
pub struct LedgerPlace {
    store: Arc<dyn Store>,
    key: RecordKey,
    room: String,
    role: LedgerRole,
    lives: IncarnationSource,
}

/// Draws the life of a record that begins anew.
type IncarnationSource = Arc<dyn Fn() -> Result<Incarnation, SyncError> + Send + Sync>;

/// Why a sync brought no reply.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SyncError {
    /// The store failed.
    #[error("cannot reach the ledger of room {room}")]
    Store {
        /// The room.
        room: String,
        /// Why not.
        source: StoreError,
    },
    /// The record is not readable.
    #[error("cannot read the ledger of room {room}")]
    Record {
        /// The room.
        room: String,
        /// Why not.
        source: LedgerRecordError,
    },
    /// Others wrote first every time.
    #[error("lost {TRIES} races for the ledger of room {room}")]
    Contention {
        /// The room.
        room: String,
    },
    /// The system has no random bytes to offer.
    #[error("cannot draw random bytes")]
    Random(getrandom::Error),
}

impl std::fmt::Debug for LedgerPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LedgerPlace({}, {:?})", self.key.0, self.role)
    }
}

impl LedgerPlace {
    /// The ledger of `room` under `key`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, key: RecordKey, room: &str, role: LedgerRole) -> Self {
        let room = room.to_owned();
        Self {
            store,
            key,
            room,
            role,
            lives: Arc::new(new_incarnation),
        }
    }

    /// The same with lives from elsewhere: for replays, which must draw what was drawn before.
    #[doc(hidden)]
    #[must_use]
    pub fn with_lives(mut self, lives: impl Fn() -> Incarnation + Send + Sync + 'static) -> Self {
        self.lives = Arc::new(move || Ok(lives()));
        self
    }

    /// Whose memory it is.
    #[must_use]
    pub fn role(&self) -> LedgerRole {
        self.role
    }

    /// Sends one request.
    ///
    /// # Errors
    ///
    /// [`SyncError`] if there is no reply. The request may have taken effect all the same; the next
    /// one, in absolute figures, sets that right.
    pub async fn sync(&self, request: &SyncRequest) -> Result<Reply, SyncError> {
        let exchange = self.visit(request, None, false).await?;
        Ok(exchange.reply)
    }

    /// Brings what the root's ledger said, if anything, and sends a request; and draws the next
    /// request to the world if that is due. `is_wanted`: somebody waits for more than is here.
    ///
    /// # Errors
    ///
    /// As [`LedgerPlace::sync`].
    ///
    /// # Panics
    ///
    /// Never: whoever speaks is answered.
    pub async fn visit(
        &self,
        request: &SyncRequest,
        news: Option<&Reply>,
        is_wanted: bool,
    ) -> Result<Exchange, SyncError> {
        let deed = LedgerOperation::Sync {
            request: Box::new(request.clone()),
            news: news.cloned(),
            is_wanted,
        };
        let exchange = self.perform(&deed).await?;
        Ok(exchange.expect("a child that speaks is answered"))
    }

    /// Brings what the root's ledger said, and nothing else.
    ///
    /// # Errors
    ///
    /// As [`LedgerPlace::sync`].
    pub async fn deliver(&self, news: &Reply) -> Result<(), SyncError> {
        self.perform(&LedgerOperation::Deliver(news.clone()))
            .await?;
        Ok(())
    }

    /// Ends a reserve on the operator's word that nobody is inside.
    ///
    /// # Errors
    ///
    /// As [`LedgerPlace::sync`].
    pub async fn assume_empty(&self) -> Result<(), SyncError> {
        self.perform(&LedgerOperation::AssumeEmpty).await?;
        Ok(())
    }

    /// Does something to the ledger, on whatever competitors leave there.
    ///
    /// # Errors
    ///
    /// As [`LedgerPlace::sync`].
    #[doc(hidden)]
    pub async fn perform(&self, deed: &LedgerOperation) -> Result<Option<Exchange>, SyncError> {
        let lending = self.role.lending();
        self.change(|ledger, now| deed.perform(ledger, lending, now))
            .await
    }

    /// The ledger as it is, to look at.
    ///
    /// # Errors
    ///
    /// As [`LedgerPlace::sync`].
    pub async fn read(&self) -> Result<(Ledger, Timestamp), SyncError> {
        let loaded = self.load().await?;
        let ledger = self.open(&loaded).await?;
        Ok((ledger, loaded.now))
    }

    /// Changes the record. `change` is called anew on what a competitor left.
    ///
    /// # Errors
    ///
    /// As [`LedgerPlace::sync`].
    #[doc(hidden)]
    pub async fn change<T>(
        &self,
        mut change: impl FnMut(&mut Ledger, Timestamp) -> T,
    ) -> Result<T, SyncError> {
        let mut tries = Tries::default();
        let mut loaded = self.load().await?;
        loop {
            let mut ledger = self.open(&loaded).await?;
            let done = change(&mut ledger, loaded.now);
            let value = self.written(&ledger, loaded.identity);
            let swap = self
                .store
                .compare_and_swap(&self.key, loaded.expected(), value);
            let began = Instant::now();
            let swap = swap.await.map_err(|source| self.failed(source))?;
            let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            let written = match &swap {
                Swap::Swapped => Written::Yes,
                Swap::Conflict(_) => Written::Conflict,
                Swap::OtherStore => Written::OtherStore,
            };
            let next = tries.handle_written(written, DurationMs(took));
            loaded = match (next, swap) {
                (Next::Done, _) => return Ok(done),
                (Next::GiveUp, _) => {
                    return Err(SyncError::Contention {
                        room: self.room.clone(),
                    });
                }
                (Next::Decide, Swap::Conflict(loaded)) => loaded,
                (Next::Decide | Next::Load, _) => self.load().await?,
                (Next::StepAside, _) => {
                    step_aside().await;
                    self.load().await?
                }
            };
        }
    }

    async fn load(&self) -> Result<Loaded, SyncError> {
        let loaded = self.store.load(&self.key).await;
        loaded.map_err(|source| self.failed(source))
    }

    /// The ledger of a record, or the one that begins where there is none, or none to be trusted.
    async fn open(&self, loaded: &Loaded) -> Result<Ledger, SyncError> {
        let (seen, left) = self.parse(loaded)?;
        let is_first_start = if Opening::needs_first_start(self.role, seen) {
            let ttl = self.role.lending().ttl;
            let is_first = deployment::is_first_start(&*self.store, ttl).await;
            is_first.map_err(|source| self.failed(source))?
        } else {
            false
        };
        if left.is_some() && seen.keeper == Some(loaded.identity) {
            // Nothing begins, and no life has to be drawn.
            return Ok(Opening::AsLeft.open(left, loaded.now));
        }
        let opening = Opening::of(self.role, seen, (self.lives)()?, is_first_start);
        if matches!(opening, Opening::Epoch(..)) {
            tracing::warn!(
                room = %self.room,
                "the store is another server than before and may have lost its newest writes: \
                 nobody is admitted until all that may have been lent has ended"
            );
        }
        Ok(opening.open(left, loaded.now))
    }

    /// What is to be known of a record, and what is in it. A journal is written by one process and
    /// says nothing of who wrote it.
    fn parse(&self, loaded: &Loaded) -> Result<(Seen, Option<Ledger>), SyncError> {
        let damaged = |source| SyncError::Record {
            room: self.room.clone(),
            source,
        };
        let mut seen = Seen {
            expected: loaded.expected(),
            now: loaded.now,
            keeper: None,
        };
        let Some(found) = &loaded.record else {
            return Ok((seen, None));
        };
        let mut value = &found.value[..];
        seen.keeper = Some(loaded.identity);
        if self.role != LedgerRole::Alone {
            let (keeper, rest) = value
                .split_first_chunk()
                .ok_or_else(|| damaged(LedgerRecordError::Damaged))?;
            seen.keeper = Some(Identity(u64::from_be_bytes(*keeper)));
            value = rest;
        }
        let ledger = record::decode(value).map_err(damaged)?;
        Ok((seen, Some(ledger)))
    }

    fn written(&self, ledger: &Ledger, keeper: Identity) -> Vec<u8> {
        let record = record::encode(ledger);
        if self.role == LedgerRole::Alone {
            return record;
        }
        let keeper = keeper.0.to_be_bytes();
        [&keeper[..], &record].concat()
    }

    fn failed(&self, source: StoreError) -> SyncError {
        SyncError::Store {
            room: self.room.clone(),
            source,
        }
    }
}

fn new_incarnation() -> Result<Incarnation, SyncError> {
    getrandom::u64().map(Incarnation).map_err(SyncError::Random)
}

/// Lets others go first, each for another while.
async fn step_aside() {
    let most = STEP_ASIDE_MAX.0 * 1_000;
    // Without random bytes everybody waits the same: slower, not wrong.
    let drawn = getrandom::u64().unwrap_or(most) % most;
    tokio::time::sleep(Duration::from_micros(drawn)).await;
}
