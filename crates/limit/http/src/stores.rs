//! Where limits are counted that several nodes share.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anteroom_config::{LimitStore, OnLimitStoreFailure};
use anteroom_limit_store::CallKey;
use anteroom_limit_store::outage::Outage;
use anteroom_limit_store::shared::{CountsError, SharedCounts};
use tokio::time::Instant;

/// How often the log says that a store has no time. Callers can bring that about as often as they
/// like.
const BUSY_TOLD_EVERY: Duration = Duration::from_secs(60);

/// The stores in which limits can be counted, beside the memory of this process.
#[derive(Clone, Debug, Default)]
pub struct CountStores(BTreeMap<LimitStore, Arc<dyn SharedCounts>>);

impl FromIterator<(LimitStore, Arc<dyn SharedCounts>)> for CountStores {
    fn from_iter<T: IntoIterator<Item = (LimitStore, Arc<dyn SharedCounts>)>>(stores: T) -> Self {
        Self(stores.into_iter().collect())
    }
}

impl CountStores {
    /// The one that a limit names; `None` if that is no shared one.
    ///
    /// # Errors
    ///
    /// Its word, if there is none.
    pub(crate) fn named(
        &self,
        store: LimitStore,
    ) -> Result<Option<Arc<dyn SharedCounts>>, &'static str> {
        if store == LimitStore::Local {
            return Ok(None);
        }
        let named = self.0.get(&store).cloned();
        named.map(Some).ok_or_else(|| store.word())
    }

    /// All of them.
    pub(crate) fn each(&self) -> impl Iterator<Item = &dyn SharedCounts> {
        self.0.values().map(Arc::as_ref)
    }

    /// What they have counted of themselves, by their words.
    pub(crate) fn events(&self) -> BTreeMap<(&'static str, &'static str), u64> {
        let events = self.each().flat_map(|store| {
            let events = store.events().into_iter();
            events.map(|(word, count)| ((store.kind(), word), count))
        });
        events.collect()
    }
}

/// The store of a limit that is counted elsewhere.
#[derive(Clone)]
pub(crate) struct Elsewhere {
    pub(crate) counts: Arc<dyn SharedCounts>,
    pub(crate) on_failure: OnLimitStoreFailure,
}

impl Elsewhere {
    /// Whether both are the same store, so that it charges both in one piece.
    pub(crate) fn is_same_store(&self, other: &Self) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.counts), Arc::as_ptr(&other.counts))
    }

    /// Whether calls of a client are not even asked for: its store is away, and what that has lent
    /// must not be spent.
    pub(crate) fn is_shut(&self, limit: &str, key: CallKey) -> bool {
        self.on_failure == OnLimitStoreFailure::Closed && self.counts.is_away(limit, key)
    }
}

/// Whether the store of a limit is away, as its calls see it.
pub(crate) struct StoreContact {
    began: Instant,
    outage: Outage,
    /// Milliseconds after `began`.
    busy_told_again_at: AtomicU64,
    failures: AtomicU64,
}

impl Default for StoreContact {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            outage: Outage::default(),
            busy_told_again_at: AtomicU64::default(),
            failures: AtomicU64::default(),
        }
    }
}

impl StoreContact {
    /// The store has decided about a call of this client. It is not back with that if it says that
    /// it is away: then it had lent what was spent.
    pub(crate) fn note_answer(&self, store: &dyn SharedCounts, limit: &str, key: CallKey) {
        let is_away = || store.is_away(limit, key);
        if self.outage.handle_answer(self.began.elapsed(), is_away) {
            tracing::info!(limit, "calls are counted again");
        }
    }

    /// It has not. Told once, and then when it is back.
    pub(crate) fn note_failure(&self, limit: &str, error: &CountsError) {
        let cause = || anteroom_limit_store::shared::chain(error);
        if let CountsError::Busy { .. } = error {
            self.failures.fetch_add(1, Relaxed);
            if self.is_busy_told() {
                let cause = cause();
                tracing::warn!(limit, cause, "there is no time to count calls");
            }
        } else {
            self.note_gone(limit, cause);
        }
    }

    /// It was not even asked, for it is known to be away.
    pub(crate) fn note_shut(&self, limit: &str) {
        self.note_gone(limit, || "its store is away".to_owned());
    }

    fn note_gone(&self, limit: &str, cause: impl FnOnce() -> String) {
        self.failures.fetch_add(1, Relaxed);
        if self.outage.handle_failure(self.began.elapsed()) {
            let cause = cause();
            tracing::error!(limit, cause, "calls cannot be counted");
        }
    }

    fn is_busy_told(&self) -> bool {
        let now = millis(self.began.elapsed());
        let due_at = self.busy_told_again_at.load(Relaxed);
        let again_at = now.saturating_add(millis(BUSY_TOLD_EVERY));
        let told = &self.busy_told_again_at;
        let set = || told.compare_exchange(due_at, again_at, Relaxed, Relaxed);
        now >= due_at && set().is_ok()
    }

    /// How long ago it last failed, if it is not known to be back since.
    pub(crate) fn failed_ago(&self) -> Option<Duration> {
        self.outage.failed_ago(self.began.elapsed())
    }

    /// How many calls could not be counted.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Relaxed)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Elsewhere({:?})", self.counts)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_store_without_time_is_reported_now_and_then_and_available() {
        let contact = StoreContact::default();
        let busy = CountsError::Busy {
            place: "memcached".to_owned(),
            source: "too many calls".into(),
        };
        for _ in 0..200 {
            contact.note_failure("api", &busy);
        }
        assert_eq!(contact.failures(), 200);
        assert_eq!(contact.failed_ago(), None);
        assert!(!contact.is_busy_told(), "it was told");
        advance(BUSY_TOLD_EVERY).await;
        let told = (0..200).filter(|_| contact.is_busy_told());
        assert_eq!(told.count(), 1);
    }
}
