//! Where what operators say is kept: a record, and one with the log. That about a room lies beside
//! its ledger.
//!
//! What is said is judged elsewhere. A change and its entry are written in one piece, as the newest
//! entry stands in the record itself; the log gets it afterwards, by whoever comes by.

use std::marker::PhantomData;
use std::sync::Arc;

use anteroom_config::overrides::{Entry, Log, Record as Said, RoomOverrides};

use crate::store::{Loaded, RecordKey, Store, StoreError, Swap, chain};

/// A race here is lost to another operator who acts in the same moment.
const TRIES: u32 = 16;

/// What of a key says that its record is no ledger.
const OVERRIDES: &str = "/settings";
const LOG: &str = "/audit";

/// Whether a record is one of these, and no ledger.
#[must_use]
pub fn is_overrides(key: &RecordKey) -> bool {
    key.0.ends_with(OVERRIDES) || key.0.ends_with(LOG)
}

/// What operators said about something, in one store.
pub struct OverrideStore<R> {
    store: Arc<dyn Store>,
    overrides: RecordKey,
    log: RecordKey,
    kind: PhantomData<fn() -> R>,
}

/// The orders of one room in one store.
pub type RoomOverrideStore = OverrideStore<RoomOverrides>;

impl<R> Clone for OverrideStore<R> {
    fn clone(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
            overrides: self.overrides.clone(),
            log: self.log.clone(),
            kind: PhantomData,
        }
    }
}

/// Why a change of orders was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError<E: std::error::Error + 'static> {
    /// What was to be changed is not allowed.
    #[error("that cannot be done")]
    Refused(#[source] E),
    /// The store failed.
    #[error("cannot reach the settings")]
    Store(#[source] StoreError),
    /// Others wrote first every time.
    #[error("lost {TRIES} races for the settings")]
    Contention,
}

impl<R> std::fmt::Debug for OverrideStore<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SaidPlace({})", self.overrides.0)
    }
}

impl<R: Said> OverrideStore<R> {
    /// The orders whose records' keys begin with `prefix`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, prefix: &str) -> Self {
        Self {
            store,
            overrides: RecordKey(format!("{prefix}{OVERRIDES}")),
            log: RecordKey(format!("{prefix}{LOG}")),
            kind: PhantomData,
        }
    }

    /// What was said, as the store knows it.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails, or has a record that cannot be read: a newer program may
    /// have written it, and its nodes go by it.
    pub async fn read(&self) -> Result<Option<R>, StoreError> {
        let loaded = self.store.load(&self.overrides).await?;
        self.overrides_in(&loaded)
    }

    /// Changes what was said, after what is known here if the store has lost it. `change` is called
    /// anew on what a competitor left. A record that cannot be read is replaced: somebody wants
    /// something to hold.
    ///
    /// # Errors
    ///
    /// [`ChangeError`]; nothing is changed then, unless the store failed after it was told.
    pub async fn change<E: std::error::Error + 'static>(
        &self,
        known: &R,
        mut change: impl FnMut(&R) -> Result<R, E>,
    ) -> Result<R, ChangeError<E>> {
        let failed = ChangeError::Store;
        let mut there = self.store.load(&self.overrides).await.map_err(failed)?;
        for _ in 0..TRIES {
            let found = self.overrides_in(&there).unwrap_or_else(|error| {
                tracing::error!(cause = chain(&error), "replacing the settings");
                None
            });
            let before = found.filter(|found| !known.is_newer_than(found));
            let before = before.unwrap_or_else(|| known.clone());
            let next = change(&before).map_err(ChangeError::Refused)?;
            // The place of the newest entry is needed for the next one.
            if let Some(newest) = before.newest()
                && !self.note(newest).await.map_err(failed)?
            {
                return Err(ChangeError::Contention);
            }
            let value = next.encode();
            let swap = self
                .store
                .compare_and_swap(&self.overrides, there.expected(), value);
            there = match swap.await.map_err(failed)? {
                Swap::Swapped => {
                    self.note_later(&next).await;
                    return Ok(next);
                }
                Swap::Conflict(loaded) => loaded,
                Swap::OtherStore => self.store.load(&self.overrides).await.map_err(failed)?,
            };
        }
        Err(ChangeError::Contention)
    }

    /// Puts back what the store has lost. Nothing happens if it knows something as new.
    ///
    /// # Errors
    ///
    /// As [`RoomOverrideStore::read`].
    pub async fn restore(&self, known: &R) -> Result<(), StoreError> {
        let loaded = self.store.load(&self.overrides).await?;
        let found = self.overrides_in(&loaded)?.unwrap_or_default();
        if known.is_newer_than(&found) {
            let value = known.encode();
            // Whoever was faster has put back the same.
            self.store
                .compare_and_swap(&self.overrides, loaded.expected(), value)
                .await?;
        }
        Ok(())
    }

    /// Who changed what, oldest first.
    ///
    /// # Errors
    ///
    /// As [`RoomOverrideStore::read`].
    pub async fn log(&self) -> Result<Log, StoreError> {
        let loaded = self.store.load(&self.log).await?;
        let mut log = self.log_in(&loaded);
        if let Some(newest) = self.read().await?.as_ref().and_then(R::newest) {
            log.add(newest);
        }
        Ok(log)
    }

    fn overrides_in(&self, loaded: &Loaded) -> Result<Option<R>, StoreError> {
        let record = loaded.record.as_ref();
        let found = record.map(|record| R::decode(&record.value));
        found.transpose().map_err(|source| StoreError::Refused {
            place: format!("the record {}", self.overrides.0),
            refusal: "holds settings that this program cannot read",
            remedy: "run the version that wrote them, or say something anew: that replaces them",
            source: Box::new(source),
        })
    }

    fn log_in(&self, loaded: &Loaded) -> Log {
        let record = loaded.record.as_ref();
        let read = record.map(|record| Log::decode(&record.value)).transpose();
        let read =
            read.inspect_err(|error| tracing::error!(record = %self.log.0, %error, "not read"));
        read.ok().flatten().unwrap_or_default()
    }

    /// Sees to the newest entry; if that fails, whoever comes by next does.
    async fn note_later(&self, overrides: &R) {
        if let Some(newest) = overrides.newest()
            && let Err(error) = self.note(newest).await
        {
            tracing::debug!(%error, "the log gets its newest entry later");
        }
    }

    /// Makes sure that an entry is in the log. `false`: others wrote first every time.
    async fn note(&self, entry: &Entry) -> Result<bool, StoreError> {
        let mut there = self.store.load(&self.log).await?;
        for _ in 0..TRIES {
            let mut log = self.log_in(&there);
            if !log.add(entry) {
                return Ok(true);
            }
            let value = log.encode();
            let swap = self
                .store
                .compare_and_swap(&self.log, there.expected(), value);
            there = match swap.await? {
                Swap::Swapped => return Ok(true),
                Swap::Conflict(loaded) => loaded,
                Swap::OtherStore => self.store.load(&self.log).await?,
            };
        }
        Ok(false)
    }
}
