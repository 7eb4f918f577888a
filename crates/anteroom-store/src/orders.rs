//! Where what operators say about a room is kept: a record beside its ledger, and one with the log.
//!
//! What is said is judged elsewhere. A change and its entry are written in one piece, as the newest
//! entry stands in the record itself; the log gets it afterwards, by whoever comes by.

use std::sync::Arc;

use anteroom_wire::orders::{Entry, Log, Orders};

use crate::store::{Expected, RecordKey, Store, StoreError, Swap};

/// A race here is lost to another operator who acts in the same moment.
const TRIES: u32 = 16;

/// What of a key says that its record is no ledger.
const ORDERS: &str = "/settings";
const LOG: &str = "/audit";

/// Whether a record is one of these, and no ledger.
pub(crate) fn is_orders(key: &RecordKey) -> bool {
    key.0.ends_with(ORDERS) || key.0.ends_with(LOG)
}

/// The orders of one room in one store.
#[derive(Clone)]
pub struct OrdersPlace {
    store: Arc<dyn Store>,
    orders: RecordKey,
    log: RecordKey,
}

/// Why a change of orders was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError<E: std::error::Error + 'static> {
    /// What was to be changed is not allowed.
    #[error("that cannot be done")]
    Refused(#[source] E),
    /// The store failed.
    #[error("cannot reach the room's settings")]
    Store(#[source] StoreError),
    /// Others wrote first every time.
    #[error("lost {TRIES} races for the room's settings")]
    Contention,
}

impl std::fmt::Debug for OrdersPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OrdersPlace({})", self.orders.0)
    }
}

impl OrdersPlace {
    /// The orders whose records' keys begin with `prefix`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, prefix: &str) -> Self {
        Self {
            store,
            orders: RecordKey(format!("{prefix}{ORDERS}")),
            log: RecordKey(format!("{prefix}{LOG}")),
        }
    }

    /// What was said, as the store knows it. A record that cannot be read counts as none, and the next
    /// change replaces it.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn read(&self) -> Result<Option<Orders>, StoreError> {
        Ok(self.load().await?.0)
    }

    /// Changes what was said, after what is known here if the store has lost it. `change` is called
    /// anew on what a competitor left.
    ///
    /// # Errors
    ///
    /// [`ChangeError`]; nothing is changed then, unless the store failed after it was told.
    pub async fn change<E: std::error::Error + 'static>(
        &self,
        known: &Orders,
        mut change: impl FnMut(&Orders) -> Result<Orders, E>,
    ) -> Result<Orders, ChangeError<E>> {
        for _ in 0..TRIES {
            let (found, expected) = self.load().await.map_err(ChangeError::Store)?;
            let before = found.filter(|found| found.version >= known.version);
            let before = before.unwrap_or_else(|| known.clone());
            let next = change(&before).map_err(ChangeError::Refused)?;
            // The place of the newest entry is needed for the next one.
            if let Some(newest) = &before.newest {
                self.note(newest).await.map_err(ChangeError::Store)?;
            }
            if self
                .swap(expected, &next)
                .await
                .map_err(ChangeError::Store)?
            {
                if let Some(newest) = &next.newest
                    && let Err(error) = self.note(newest).await
                {
                    tracing::debug!(%error, "the log gets its newest entry later");
                }
                return Ok(next);
            }
        }
        Err(ChangeError::Contention)
    }

    /// Puts back what the store has lost. Nothing happens if it knows something as new.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn restore(&self, known: &Orders) -> Result<(), StoreError> {
        let (found, expected) = self.load().await?;
        if found.is_none_or(|found| found.version < known.version) {
            // Whoever was faster has put back the same.
            self.swap(expected, known).await?;
        }
        Ok(())
    }

    /// Who changed what, oldest first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn log(&self) -> Result<Log, StoreError> {
        let loaded = self.store.load(&self.log).await?;
        let mut log = self.log_in(loaded.record.as_ref().map(|record| &record.value[..]));
        if let Some(newest) = self.read().await?.and_then(|orders| orders.newest) {
            log.add(&newest);
        }
        Ok(log)
    }

    async fn load(&self) -> Result<(Option<Orders>, Expected), StoreError> {
        let loaded = self.store.load(&self.orders).await?;
        let expected = loaded.expected();
        let found = loaded.record.and_then(|record| {
            Orders::decode(&record.value)
                .inspect_err(|error| tracing::error!(record = %self.orders.0, %error, "not read"))
                .ok()
        });
        Ok((found, expected))
    }

    async fn swap(&self, expected: Expected, orders: &Orders) -> Result<bool, StoreError> {
        let value = orders.encode();
        let swap = self.store.compare_and_swap(&self.orders, expected, value);
        Ok(swap.await? == Swap::Swapped)
    }

    fn log_in(&self, value: Option<&[u8]>) -> Log {
        let read = value.map(Log::decode).transpose();
        let read =
            read.inspect_err(|error| tracing::error!(record = %self.log.0, %error, "not read"));
        read.ok().flatten().unwrap_or_default()
    }

    /// Makes sure that an entry is in the log.
    async fn note(&self, entry: &Entry) -> Result<(), StoreError> {
        for _ in 0..TRIES {
            let loaded = self.store.load(&self.log).await?;
            let mut log = self.log_in(loaded.record.as_ref().map(|record| &record.value[..]));
            if !log.add(entry) {
                return Ok(());
            }
            let value = log.encode();
            let swap = self
                .store
                .compare_and_swap(&self.log, loaded.expected(), value);
            if swap.await? == Swap::Swapped {
                return Ok(());
            }
        }
        Ok(())
    }
}
