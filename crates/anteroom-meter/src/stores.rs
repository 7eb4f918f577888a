//! Where limits are counted that several nodes share.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use anteroom_config::{LimitStore, OnLimitStoreFailure};
use anteroom_counts::CallKey;
use anteroom_counts::shared::{CountsError, SharedCounts};

/// The stores that limits can name; those that are `None` cannot be used.
#[derive(Clone, Debug, Default)]
pub struct CountStores {
    /// `store = "valkey"`.
    pub valkey: Option<Arc<dyn SharedCounts>>,
    /// `store = "leases"`.
    pub leases: Option<Arc<dyn SharedCounts>>,
    /// `store = "memcached"`.
    pub memcached: Option<Arc<dyn SharedCounts>>,
    /// `store = "kafka"`.
    pub kafka: Option<Arc<dyn SharedCounts>>,
    /// `store = "gossip"`.
    pub gossip: Option<Arc<dyn SharedCounts>>,
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
        let named = match store {
            LimitStore::Local => return Ok(None),
            LimitStore::Valkey => &self.valkey,
            LimitStore::Leases => &self.leases,
            LimitStore::Memcached => &self.memcached,
            LimitStore::Kafka => &self.kafka,
            LimitStore::Gossip => &self.gossip,
        };
        named.clone().map(Some).ok_or_else(|| store.word())
    }

    /// What they have counted of themselves, by their words.
    pub(crate) fn events(&self) -> BTreeMap<(&'static str, &'static str), u64> {
        let stores = [
            &self.valkey,
            &self.leases,
            &self.memcached,
            &self.kafka,
            &self.gossip,
        ]
        .into_iter()
        .flatten();
        let events = stores.flat_map(|store| {
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

    /// Whether calls of a client are not even asked for: its store is away, and what that has lent must not be spent.
    pub(crate) fn is_shut(&self, limit: &str, key: CallKey) -> bool {
        self.on_failure == OnLimitStoreFailure::Closed && self.counts.is_away(limit, key)
    }
}

/// Whether the store of a limit is away, as its calls see it.
#[derive(Default)]
pub(crate) struct Contact {
    is_lost: AtomicBool,
    failures: AtomicU64,
}

impl Contact {
    /// The store has answered.
    pub(crate) fn note_answer(&self, limit: &str) {
        if self.is_lost.load(Relaxed) && self.is_lost.swap(false, Relaxed) {
            tracing::info!(limit, "calls are counted again");
        }
    }

    /// It has not. Told once, and then when it is back.
    pub(crate) fn note_failure(&self, limit: &str, error: &CountsError) {
        self.failures.fetch_add(1, Relaxed);
        if !self.is_lost.swap(true, Relaxed) {
            let cause = anteroom_counts::shared::chain(error);
            tracing::error!(limit, cause, "calls cannot be counted");
        }
    }

    /// How many calls could not be counted.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Relaxed)
    }
}

impl fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Elsewhere({:?})", self.counts)
    }
}
