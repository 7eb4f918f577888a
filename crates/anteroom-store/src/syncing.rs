//! Runs the core's ledger on a store: load, decide, compare and swap.
//!
//! What is decided is the core's business; here is only what becomes of a record that is not there,
//! of one that another server wrote, and of a race that is lost.

use std::sync::Arc;
use std::time::Duration;

use anteroom_core::id::{DataCenterId, Life};
use anteroom_core::ledger::{Ledger, LendingTerms};
use anteroom_core::sync::{Reply, SyncRequest};
use anteroom_core::time::{Millis, Span};
use anteroom_wire::ledger::{self as record, LedgerRecordError};
use tokio::time::Instant;

use crate::deployment;
use crate::store::{Identity, Loaded, RecordKey, Store, StoreError, Swap};

/// How often a lost race is tried again before the caller waits for its next period. With tens of
/// writers more tries would only add to the crowd.
const TRIES: u32 = 8;
/// After so many lost races a writer steps aside for a moment, where that is longer than a call takes.
const PATIENT_TRIES: u32 = 2;
/// For how long at most: longer than a write takes next door.
const STEP_ASIDE_MAX: Duration = Duration::from_millis(8);

/// One room's ledger in one store.
#[derive(Clone)]
pub struct LedgerPlace {
    store: Arc<dyn Store>,
    key: RecordKey,
    room: String,
    role: LedgerRole,
    lives: Lives,
}

/// Draws the life of a record that begins anew.
type Lives = Arc<dyn Fn() -> Result<Life, SyncError> + Send + Sync>;

/// Whose memory a ledger is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LedgerRole {
    /// Alone in the journal of its process, which is lost as a whole or not at all.
    Alone,
    /// Lends what the limits allow, in a store that may lose what it has.
    Root(LendingTerms),
    /// Lends what the world's ledger lends to this data center.
    Below(DataCenterId),
}

/// What came of a visit to a ledger.
#[derive(Debug)]
pub struct Exchange {
    /// What it said to the node.
    pub reply: Reply,
    /// A request to the world's ledger. Whoever made the visit carries it there, and what the world
    /// says back to this ledger.
    pub errand: Option<SyncRequest>,
    /// Somebody else is on such an errand, and is expected back after so long.
    pub others_back_after: Option<Span>,
}

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
            lives: Arc::new(new_life),
        }
    }

    /// The same with lives from elsewhere: for replays, which must draw what was drawn before.
    #[doc(hidden)]
    #[must_use]
    pub fn with_lives(mut self, lives: impl Fn() -> Life + Send + Sync + 'static) -> Self {
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
        let lending = self.lending();
        self.change(|ledger, now| ledger.handle_sync(request.clone(), lending, now))
            .await
    }

    /// Brings what the world's ledger said, if anything, and sends a request; and draws the next
    /// request to the world if that is due. `is_wanted`: somebody waits for more than is here.
    ///
    /// # Errors
    ///
    /// As [`LedgerPlace::sync`].
    pub async fn visit(
        &self,
        request: &SyncRequest,
        news: Option<&Reply>,
        is_wanted: bool,
    ) -> Result<Exchange, SyncError> {
        let lending = self.lending();
        self.change(|ledger, now| {
            if let Some(news) = news {
                ledger.handle_upstream(news.clone(), now);
            }
            let reply = ledger.handle_sync(request.clone(), lending, now);
            let errand = ledger
                .is_upstream_due(is_wanted, now)
                .then(|| ledger.poll_upstream(now));
            let errand = errand.flatten();
            let upstream = ledger.upstream.as_deref().filter(|_| errand.is_none());
            Exchange {
                reply,
                others_back_after: upstream.and_then(|up| up.back_after(now)),
                errand,
            }
        })
        .await
    }

    /// Brings what the world's ledger said, and nothing else.
    ///
    /// # Errors
    ///
    /// As [`LedgerPlace::sync`].
    pub async fn deliver(&self, news: &Reply) -> Result<(), SyncError> {
        self.change(|ledger, now| {
            ledger.handle_upstream(news.clone(), now);
        })
        .await
    }

    /// Ends a reserve on the operator's word that nobody is inside.
    ///
    /// # Errors
    ///
    /// As [`LedgerPlace::sync`].
    pub async fn assume_empty(&self) -> Result<(), SyncError> {
        self.change(|ledger, _| ledger.assume_empty()).await
    }

    /// The ledger as it is, to look at.
    ///
    /// # Errors
    ///
    /// As [`LedgerPlace::sync`].
    pub async fn read(&self) -> Result<(Ledger, Millis), SyncError> {
        let loaded = self.load().await?;
        let ledger = self.open(&loaded).await?;
        Ok((ledger, loaded.now))
    }

    fn lending(&self) -> LendingTerms {
        match self.role {
            LedgerRole::Root(lending) => lending,
            LedgerRole::Alone | LedgerRole::Below(_) => LendingTerms::default(),
        }
    }

    /// Changes the record. `change` is called anew on what a competitor left.
    ///
    /// # Errors
    ///
    /// As [`LedgerPlace::sync`].
    #[doc(hidden)]
    pub async fn change<T>(
        &self,
        mut change: impl FnMut(&mut Ledger, Millis) -> T,
    ) -> Result<T, SyncError> {
        let (mut there, mut is_far) = (None, false);
        for lost in 0..TRIES {
            if lost >= PATIENT_TRIES && !is_far {
                step_aside().await;
                there = None;
            }
            let loaded = match there.take() {
                Some(loaded) => loaded,
                None => self.load().await?,
            };
            let mut ledger = self.open(&loaded).await?;
            let done = change(&mut ledger, loaded.now);
            let value = self.written(&ledger, loaded.identity);
            let swap = self
                .store
                .compare_and_swap(&self.key, loaded.expected(), value);
            let began = Instant::now();
            match swap.await.map_err(|source| self.failed(source))? {
                Swap::Swapped => return Ok(done),
                Swap::Conflict(loaded) => there = Some(loaded),
                Swap::OtherStore => {}
            }
            is_far = began.elapsed() > STEP_ASIDE_MAX;
        }
        Err(SyncError::Contention {
            room: self.room.clone(),
        })
    }

    async fn load(&self) -> Result<Loaded, SyncError> {
        let loaded = self.store.load(&self.key).await;
        loaded.map_err(|source| self.failed(source))
    }

    /// The ledger of a record, or the one that begins where there is none, or none to be trusted.
    async fn open(&self, loaded: &Loaded) -> Result<Ledger, SyncError> {
        let found = match &loaded.record {
            Some(record) => Some(self.parse(&record.value)?),
            None => None,
        };
        match (self.role, found) {
            (LedgerRole::Alone, found) => Ok(found.map_or_else(Ledger::new, |(_, ledger)| ledger)),
            (_, Some((keeper, ledger))) if keeper == loaded.identity => Ok(ledger),
            (LedgerRole::Below(data_center), _) => {
                // What the lost one had done is known to the world.
                Ok(Ledger::below_world((self.lives)()?, data_center))
            }
            (LedgerRole::Root(lending), Some((_, mut ledger))) => {
                tracing::warn!(
                    room = %self.room,
                    "the store is another server than before and may have lost its newest writes: \
                     nobody is admitted until all that may have been lent has ended"
                );
                ledger.begin_epoch((self.lives)()?, lending, loaded.now);
                Ok(ledger)
            }
            (LedgerRole::Root(lending), None) => {
                let is_first = deployment::is_first_start(&*self.store, lending.ttl).await;
                if is_first.map_err(|source| self.failed(source))? {
                    Ok(Ledger::first_start((self.lives)()?))
                } else {
                    Ok(Ledger::found_empty((self.lives)()?, lending, loaded.now))
                }
            }
        }
    }

    /// Who wrote a record, and what. A journal is written by one process and says nothing of it.
    fn parse(&self, value: &[u8]) -> Result<(Identity, Ledger), SyncError> {
        let damaged = |source| SyncError::Record {
            room: self.room.clone(),
            source,
        };
        if self.role == LedgerRole::Alone {
            let ledger = record::decode(value).map_err(damaged)?;
            return Ok((Identity(0), ledger));
        }
        let (keeper, rest) = value
            .split_first_chunk()
            .ok_or_else(|| damaged(LedgerRecordError::Damaged))?;
        let ledger = record::decode(rest).map_err(damaged)?;
        Ok((Identity(u64::from_be_bytes(*keeper)), ledger))
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

fn new_life() -> Result<Life, SyncError> {
    getrandom::u64().map(Life).map_err(SyncError::Random)
}

/// Lets others go first, each for another while.
async fn step_aside() {
    let most = u64::try_from(STEP_ASIDE_MAX.as_micros()).unwrap_or(u64::MAX);
    // Without random bytes everybody waits the same: slower, not wrong.
    let drawn = getrandom::u64().unwrap_or(most) % most;
    tokio::time::sleep(Duration::from_micros(drawn)).await;
}
