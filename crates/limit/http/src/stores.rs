//! Stores that count limits for several nodes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anteroom_config::{LimitStore, OnLimitStoreFailure};
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::outage::Outage;
use anteroom_limit_store::shared::{CountsError, SharedCounts};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Interval of the log line about an overloaded store. Clients can overload it as often as they
/// like.
const BUSY_LOG_PERIOD: Duration = Duration::from_secs(60);
/// Time for which the cause of a failure is kept before another one replaces it.
const CAUSE_PERIOD: Duration = Duration::from_secs(1);

/// Shared stores for limits, besides the memory of this process.
#[derive(Clone, Debug, Default)]
pub struct CountStores(BTreeMap<LimitStore, Arc<dyn SharedCounts>>);

impl FromIterator<(LimitStore, Arc<dyn SharedCounts>)> for CountStores {
    fn from_iter<T: IntoIterator<Item = (LimitStore, Arc<dyn SharedCounts>)>>(stores: T) -> Self {
        Self(stores.into_iter().collect())
    }
}

impl CountStores {
    /// Returns the store that a limit names; `None` if it is local.
    ///
    /// # Errors
    ///
    /// Name of the store if it is not configured.
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

    /// Returns all stores.
    pub(crate) fn each(&self) -> impl Iterator<Item = &dyn SharedCounts> {
        self.0.values().map(Arc::as_ref)
    }

    /// Returns the events that the stores have counted, by store and event.
    pub(crate) fn events(&self) -> BTreeMap<(&'static str, &'static str), u64> {
        let events = self.each().flat_map(|store| {
            let events = store.events().into_iter();
            events.map(|(word, count)| ((store.kind(), word), count))
        });
        events.collect()
    }
}

/// Shared store of a limit.
#[derive(Clone)]
pub(crate) struct SharedStore {
    pub(crate) counts: Arc<dyn SharedCounts>,
    pub(crate) on_failure: OnLimitStoreFailure,
}

impl SharedStore {
    /// Whether both are the same store, so that it acquires both in one step.
    pub(crate) fn is_same_store(&self, other: &Self) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.counts), Arc::as_ptr(&other.counts))
    }

    /// Whether requests of a client are rejected without reaching the store: it is unavailable, and
    /// leases must not be spent then.
    pub(crate) fn is_closed(&self, limit: &str, key: ClientKey) -> bool {
        self.on_failure == OnLimitStoreFailure::Closed && self.counts.is_unavailable(limit, key)
    }
}

/// Availability of the store of a limit, as its requests see it.
pub(crate) struct StoreContact {
    began: Instant,
    outage: Outage,
    /// Milliseconds after `began`.
    busy_log_due_at: AtomicU64,
    failures: AtomicU64,
    /// Cause of a recent failure.
    cause: Mutex<Option<RecentCause>>,
}

struct RecentCause {
    noted_at: Duration,
    text: String,
}

impl Default for StoreContact {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            outage: Outage::default(),
            busy_log_due_at: AtomicU64::default(),
            failures: AtomicU64::default(),
            cause: Mutex::default(),
        }
    }
}

impl StoreContact {
    /// Records that the store has decided about a request of this client. If it reports itself as
    /// unavailable, it decided from leases and has not recovered.
    pub(crate) fn note_reply(&self, store: &dyn SharedCounts, limit: &str, key: ClientKey) {
        let is_unavailable = || store.is_unavailable(limit, key);
        if self
            .outage
            .handle_reply(self.began.elapsed(), is_unavailable)
        {
            tracing::info!(limit, "requests are counted again");
        }
    }

    /// Records a failure. It logs the first one and the recovery.
    pub(crate) fn note_failure(&self, limit: &str, error: &CountsError) {
        let cause = || anteroom_limit_store::shared::chain(error);
        if let CountsError::Busy { .. } = error {
            self.failures.fetch_add(1, Relaxed);
            if self.is_busy_log_due() {
                let cause = cause();
                tracing::warn!(limit, cause, "requests not counted: store overloaded");
            }
        } else {
            self.note_outage(limit, cause);
        }
    }

    /// Records that the store was not tried, because it is known to be unavailable.
    pub(crate) fn note_closed(&self, limit: &str) {
        self.note_outage(limit, || "store unavailable".to_owned());
    }

    fn note_outage(&self, limit: &str, cause: impl FnOnce() -> String) {
        self.failures.fetch_add(1, Relaxed);
        let now = self.began.elapsed();
        let is_first = self.outage.handle_failure(now);
        let mut known = self.cause.lock();
        let is_recent = |known: &RecentCause| now.saturating_sub(known.noted_at) < CAUSE_PERIOD;
        // A failure costs no text, or a flood of them would.
        if !is_first && known.as_ref().is_some_and(is_recent) {
            return;
        }
        let text = cause();
        if is_first {
            tracing::error!(limit, cause = text, "requests cannot be counted");
        }
        *known = Some(RecentCause {
            noted_at: now,
            text,
        });
    }

    /// Returns the cause of a recent failure, if the store has not recovered.
    pub(crate) fn cause(&self) -> Option<String> {
        self.failed_ago()?;
        self.cause.lock().as_ref().map(|cause| cause.text.clone())
    }

    fn is_busy_log_due(&self) -> bool {
        let now = millis(self.began.elapsed());
        let due_at = self.busy_log_due_at.load(Relaxed);
        let again_at = now.saturating_add(millis(BUSY_LOG_PERIOD));
        let due = &self.busy_log_due_at;
        let set = || due.compare_exchange(due_at, again_at, Relaxed, Relaxed);
        now >= due_at && set().is_ok()
    }

    /// Returns the time since the last failure, if the store has not recovered.
    pub(crate) fn failed_ago(&self) -> Option<Duration> {
        self.outage.failed_ago(self.began.elapsed())
    }

    /// Returns how many requests could not be counted.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Relaxed)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Debug for SharedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedStore({:?})", self.counts)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_overloaded_store_is_logged_once_a_period_and_stays_available() {
        let contact = StoreContact::default();
        let busy = CountsError::Busy {
            store_name: "memcached".to_owned(),
            source: "too many requests".into(),
        };
        for _ in 0..200 {
            contact.note_failure("api", &busy);
        }
        assert_eq!(contact.failures(), 200);
        assert_eq!(contact.failed_ago(), None);
        assert!(!contact.is_busy_log_due(), "it was logged");
        advance(BUSY_LOG_PERIOD).await;
        let logged = (0..200).filter(|_| contact.is_busy_log_due());
        assert_eq!(logged.count(), 1);
    }
}
