//! Storage of overrides: one record with their values and one with the audit log. Those of a room
//! are beside its ledger.
//!
//! A change and its log entry are written atomically: the record itself contains the newest entry.
//! The next writer or the same one copies it to the log afterwards. Validation is not done here.

use std::marker::PhantomData;
use std::sync::Arc;

use anteroom_config::overrides::{
    Entry, Log, Record as OverrideRecord, RoomOverrides, UnreadableOverrides,
};

use anteroom_room::time::{DurationMs, Timestamp};

use crate::store::{
    Expected, Identity, Loaded, Note, RecordKey, RecordVersion, Store, StoreError, Swap, chain,
};

/// Attempts at a write. One is lost to each operator who writes at the same moment.
const TRIES: u32 = 16;

/// State in which no record is, so that a read returns the present one.
const NEVER: Expected = Expected {
    version: RecordVersion(u64::MAX),
    identity: Identity(u64::MAX),
};

/// Suffix of the keys of overrides, which no ledger has.
const OVERRIDES: &str = "/settings";
/// Suffix of the keys of audit logs.
const LOG: &str = "/audit";

/// Part of the keys of pages, which no ledger has.
const PAGE: &str = "/page/";

/// Whether a record has overrides, their log or a page, and is no ledger.
#[must_use]
pub fn is_overrides(key: &RecordKey) -> bool {
    key.0.ends_with(OVERRIDES) || key.0.ends_with(LOG) || key.0.contains(PAGE)
}

/// Overrides of one subject in one store.
pub struct OverrideStore<R> {
    store: Arc<dyn Store>,
    overrides: RecordKey,
    log: RecordKey,
    prefix: String,
    kind: PhantomData<fn() -> R>,
}

/// Overrides of one room in one store.
pub type RoomOverrideStore = OverrideStore<RoomOverrides>;

impl<R> Clone for OverrideStore<R> {
    fn clone(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
            overrides: self.overrides.clone(),
            log: self.log.clone(),
            prefix: self.prefix.clone(),
            kind: PhantomData,
        }
    }
}

/// Error of a change of overrides.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError<E: std::error::Error + 'static> {
    /// The change is not allowed.
    #[error("cannot change the overrides")]
    Rejected(#[source] E),
    /// The store failed.
    #[error("cannot reach the overrides")]
    Store(#[source] StoreError),
    /// Other writers were first, every time.
    #[error("cannot change the overrides: lost {TRIES} races to other writers; try again")]
    Contention,
}

impl<R> std::fmt::Debug for OverrideStore<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OverrideStore({})", self.overrides.0)
    }
}

impl<R: OverrideRecord> OverrideStore<R> {
    /// Returns the overrides whose records' keys begin with `prefix`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, prefix: &str) -> Self {
        Self {
            store,
            overrides: RecordKey(format!("{prefix}{OVERRIDES}")),
            log: RecordKey(format!("{prefix}{LOG}")),
            prefix: prefix.to_owned(),
            kind: PhantomData,
        }
    }

    /// Returns the overrides in the store.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails or its record cannot be read. Nodes with a newer program
    /// may use such a record.
    pub async fn read(&self) -> Result<Option<R>, StoreError> {
        let loaded = self.store.load(&self.overrides).await?;
        self.overrides_in(&loaded)
    }

    /// Returns the overrides in the store, and what a later read may expect, unless they are those
    /// that an earlier read found. Leaves a note beside them, if there is one.
    ///
    /// # Errors
    ///
    /// As [`OverrideStore::read`].
    pub async fn read_changed(
        &self,
        known: Option<Expected>,
        note: Option<&Note>,
    ) -> Result<Option<(Expected, Option<R>)>, StoreError> {
        let loaded = match (known, note) {
            (None, None) => Some(self.store.load(&self.overrides).await?),
            (known, note) => {
                let known = known.unwrap_or(NEVER);
                self.store
                    .load_changed(&self.overrides, known, note)
                    .await?
            }
        };
        let Some(loaded) = loaded else {
            return Ok(None);
        };
        let overrides = self.overrides_in(&loaded)?;
        Ok(Some((loaded.expected(), overrides)))
    }

    /// Returns the notes that readers left beside the overrides.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn notes(&self) -> Result<Vec<Note>, StoreError> {
        self.store.notes(&self.overrides).await
    }

    /// Lets the overrides expire, unless they are written before. Returns whether there are any.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn keep_for(&self, lifetime: DurationMs) -> Result<bool, StoreError> {
        self.store.keep_for(&self.overrides, None, lifetime).await
    }

    /// Keeps a page beside the overrides until it expires. Where there is none of this name, writes
    /// it. Returns whether there is one now.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn keep_page(
        &self,
        name: &str,
        text: Option<&str>,
        lifetime: DurationMs,
    ) -> Result<bool, StoreError> {
        let (key, text) = (self.page_key(name), text.map(str::as_bytes));
        self.store.keep_for(&key, text, lifetime).await
    }

    /// Returns a page; `None` if there is none of this name.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn page(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let loaded = self.store.load(&self.page_key(name)).await?;
        Ok(loaded.record.map(|record| record.value))
    }

    fn page_key(&self, name: &str) -> RecordKey {
        RecordKey(format!("{}{PAGE}{name}", self.prefix))
    }

    /// Changes the overrides. If the store has lost newer ones, the change builds on `known`.
    /// `change` gets what is known and the store's time, and is called again on what another writer
    /// left. A record of a newer version of the program stays as it is. A damaged one is replaced:
    /// the operator's new command must take effect.
    ///
    /// # Errors
    ///
    /// [`ChangeError`]. Nothing is changed then, unless the store failed after the write.
    pub async fn change<E: std::error::Error + 'static>(
        &self,
        known: &R,
        mut change: impl FnMut(&R, Timestamp) -> Result<R, E>,
    ) -> Result<R, ChangeError<E>> {
        let failed = ChangeError::Store;
        let mut loaded = self.store.load(&self.overrides).await.map_err(failed)?;
        for _ in 0..TRIES {
            let found = match self.overrides_in(&loaded) {
                Err(error) if is_of_newer_program(&error) => return Err(failed(error)),
                Err(error) => {
                    tracing::error!(cause = chain(&error), "overrides damaged: replacing them");
                    None
                }
                Ok(found) => found,
            };
            let before = known.merged(&found.unwrap_or_default());
            let next = change(&before, loaded.now).map_err(ChangeError::Rejected)?;
            // The next entry overwrites the newest one in the record.
            if let Some(newest) = before.newest()
                && !self.add_to_log(newest).await.map_err(failed)?
            {
                return Err(ChangeError::Contention);
            }
            let value = next.encode();
            let swap = self
                .store
                .compare_and_swap(&self.overrides, loaded.expected(), value);
            loaded = match swap.await.map_err(failed)? {
                Swap::Swapped => {
                    self.try_log(&next).await;
                    return Ok(next);
                }
                Swap::Conflict(loaded) => loaded,
                Swap::OtherStore => self.store.load(&self.overrides).await.map_err(failed)?,
            };
        }
        Err(ChangeError::Contention)
    }

    /// Restores overrides that the store has lost. Overrides that are as new stay.
    ///
    /// # Errors
    ///
    /// As [`RoomOverrideStore::read`].
    pub async fn restore(&self, known: &R) -> Result<(), StoreError> {
        let loaded = self.store.load(&self.overrides).await?;
        let found = self.overrides_in(&loaded)?.unwrap_or_default();
        if known.is_newer_than(&found) {
            let value = known.merged(&found).encode();
            // A process that was faster has restored the same.
            self.store
                .compare_and_swap(&self.overrides, loaded.expected(), value)
                .await?;
        }
        Ok(())
    }

    /// Returns the audit log, oldest entry first.
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
        found.transpose().map_err(|source| StoreError::Rejected {
            store_name: format!("the record {}", self.overrides.0),
            reason: "has overrides that this program cannot read",
            remedy: "run the version that wrote them, or replace damaged ones by a new command",
            source: Box::new(source),
        })
    }

    fn log_in(&self, loaded: &Loaded) -> Log {
        let record = loaded.record.as_ref();
        let read = record.map(|record| Log::decode(&record.value)).transpose();
        let read = read.inspect_err(|error| {
            tracing::error!(record = %self.log.0, %error, "audit log unreadable");
        });
        read.ok().flatten().unwrap_or_default()
    }

    /// Copies the newest entry to the log. If that fails, the next change does.
    async fn try_log(&self, overrides: &R) {
        if let Some(newest) = overrides.newest()
            && let Err(error) = self.add_to_log(newest).await
        {
            tracing::debug!(%error, "newest entry not logged yet");
        }
    }

    /// Makes sure that an entry is in the log. Returns `false` if other writers were first, every
    /// time.
    async fn add_to_log(&self, entry: &Entry) -> Result<bool, StoreError> {
        let mut loaded = self.store.load(&self.log).await?;
        for _ in 0..TRIES {
            let mut log = self.log_in(&loaded);
            if !log.add(entry) {
                return Ok(true);
            }
            let value = log.encode();
            let swap = self
                .store
                .compare_and_swap(&self.log, loaded.expected(), value);
            loaded = match swap.await? {
                Swap::Swapped => return Ok(true),
                Swap::Conflict(loaded) => loaded,
                Swap::OtherStore => self.store.load(&self.log).await?,
            };
        }
        Ok(false)
    }
}

/// Whether a record was written by a newer version of the program.
fn is_of_newer_program(error: &StoreError) -> bool {
    let StoreError::Rejected { source, .. } = error else {
        return false;
    };
    matches!(
        source.downcast_ref(),
        Some(UnreadableOverrides::OtherForm(_))
    )
}
