//! Stores of a node, and the ledgers and overrides in them.

use std::sync::Arc;
use std::time::Duration;

use crate::clock_watch::OtherOwner;
use anteroom_config::overrides::Record;
use anteroom_room::allocation::CounterScope;
use anteroom_room::id::{DataCenterId, DeploymentId};
use anteroom_room::ledger::LeaseTerms;
#[cfg(debug_assertions)]
use anteroom_room::time::DurationMs;
use anteroom_store::{
    HistoryName, LedgerRole, OverrideFeed, OverrideStore, RecordKey, Store, StoredLedger, chain,
};
use tokio::time::timeout;

/// Environment variable with a shorter lease of the global ledger, in seconds. Fault runs on real
/// processes set it, so that a test need not wait ten minutes. All nodes need the same value.
#[cfg(debug_assertions)]
const GLOBAL_LEASE: &str = "ANTEROOM_DEBUG_GLOBAL_LEASE_SECS";

/// Longest wait for a store to let a ledger end.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// Stores of a node.
#[derive(Clone)]
pub enum Stores {
    /// Store inside this process, for a single node.
    Alone(Arc<dyn Store>),
    /// Store of all nodes.
    Shared(Arc<dyn Store>),
    /// Local store in each data center, and a global store behind them.
    TwoLevels {
        /// Store of this data center.
        local: Arc<dyn Store>,
        /// Store behind all data centers; may be the same server.
        global: Arc<dyn Store>,
    },
}

/// Ledgers of one room, as one node sees them.
pub(crate) struct Ledgers {
    /// Ledger with which the node syncs.
    pub(crate) parent: StoredLedger,
    /// Ledger behind the parent, if the parent is not the root.
    pub(crate) global: Option<StoredLedger>,
}

impl Ledgers {
    /// Lets the ledgers end one session from now, unless somebody syncs with them. If a store does
    /// not reply, its ledger stays until another node does this.
    pub(crate) async fn end(&self) {
        for ledger in std::iter::once(&self.parent).chain(&self.global) {
            if let Ok(Err(error)) = timeout(END_TIMEOUT, ledger.end_after_session()).await {
                tracing::debug!(cause = chain(&error), "ledger of a deleted room stays");
            }
        }
    }

    /// Returns the root ledger, if other processes write it as well.
    pub(crate) fn root(&self) -> Option<&StoredLedger> {
        match self.parent.role() {
            LedgerRole::Alone => None,
            LedgerRole::Root(_) => Some(&self.parent),
            LedgerRole::DataCenter(_) => self.global.as_ref(),
        }
    }
}

impl Stores {
    /// Returns the store that all nodes of the deployment share, if there are other nodes.
    pub(crate) fn common(&self) -> Option<&Arc<dyn Store>> {
        match self {
            Self::Alone(_) => None,
            Self::Shared(store) | Self::TwoLevels { global: store, .. } => Some(store),
        }
    }

    /// Returns the store of histories: the one that all nodes share, or that of this process.
    pub(crate) const fn of_history(&self) -> &Arc<dyn Store> {
        match self {
            Self::Alone(store) | Self::Shared(store) | Self::TwoLevels { global: store, .. } => {
                store
            }
        }
    }

    /// Returns the name of a room's history. A journal has rooms of one deployment alone.
    pub(crate) fn history_name(&self, room: &str, deployment_id: DeploymentId) -> HistoryName {
        HistoryName(match self {
            Self::Alone(_) => room.to_owned(),
            Self::Shared(_) | Self::TwoLevels { .. } => {
                format!("{room}/{:016x}", deployment_id.0)
            }
        })
    }

    /// Returns the stores of other machines.
    pub(crate) fn shared(&self) -> Vec<(OtherOwner, Arc<dyn Store>)> {
        let (local, global) = match self {
            Self::Alone(_) => (None, None),
            Self::Shared(store) => (Some(store), None),
            Self::TwoLevels { local, global } => (Some(local), Some(global)),
        };
        let local = local.map(|store| (OtherOwner::LocalStore, Arc::clone(store)));
        let global = global.map(|store| (OtherOwner::GlobalStore, Arc::clone(store)));
        local.into_iter().chain(global).collect()
    }

    pub(crate) fn ledgers(
        &self,
        room: &str,
        deployment_id: DeploymentId,
        here: DataCenterId,
    ) -> Ledgers {
        let key = |level: &str| RecordKey(format!("{room}/{:016x}/{level}", deployment_id.0));
        let ledger = |store: &Arc<dyn Store>, key, role| {
            StoredLedger::new(Arc::clone(store), key, room, role)
        };
        match self {
            Self::Alone(store) => Ledgers {
                parent: ledger(store, RecordKey(room.to_owned()), LedgerRole::Alone),
                global: None,
            },
            Self::Shared(store) => {
                let role = LedgerRole::Root(LeaseTerms::default());
                Ledgers {
                    parent: ledger(store, key("all"), role),
                    global: None,
                }
            }
            Self::TwoLevels { local, global } => {
                let below = LedgerRole::DataCenter(here);
                let root = LedgerRole::Root(global_terms());
                Ledgers {
                    parent: ledger(local, key(&format!("{:08x}", here.0)), below),
                    global: Some(ledger(global, key("world"), root)),
                }
            }
        }
    }

    /// Returns the feed of overrides of a subject: a room by its name, or anything else by a name
    /// that no room has. The main record is in the root ledger's store, and a copy in the local
    /// store if that is another one.
    #[must_use]
    pub fn hearing<R: Record>(
        &self,
        name: &str,
        deployment_id: DeploymentId,
        about: &str,
    ) -> OverrideFeed<R> {
        let record = |store: &Arc<dyn Store>, end: &str| {
            OverrideStore::new(
                Arc::clone(store),
                &format!("{name}/{:016x}{end}", deployment_id.0),
            )
        };
        let records = match self {
            Self::Alone(store) => (OverrideStore::new(Arc::clone(store), name), None),
            Self::Shared(store) => (record(store, ""), None),
            Self::TwoLevels { local, global } => (record(global, ""), Some(record(local, "/copy"))),
        };
        OverrideFeed::new(records, self.are_shared(), about)
    }

    /// Returns the store of counters of this scope.
    pub(crate) fn counters(&self, scope: CounterScope) -> &Arc<dyn Store> {
        match (self, scope) {
            (Self::Alone(store) | Self::Shared(store), _) => store,
            (Self::TwoLevels { local, .. }, CounterScope::DataCenter(_)) => local,
            (Self::TwoLevels { global, .. }, CounterScope::Anywhere) => global,
        }
    }

    /// Whether other processes write the same records. If so, each request goes to a shared server,
    /// and syncs are paced.
    #[must_use]
    pub fn are_shared(&self) -> bool {
        !matches!(self, Self::Alone(_))
    }

    /// Closes all stores.
    pub(crate) async fn close(&self) {
        match self {
            Self::Alone(store) | Self::Shared(store) => store.close().await,
            Self::TwoLevels { local, global } => {
                local.close().await;
                global.close().await;
            }
        }
    }
}

/// Returns the terms of the global ledger's leases.
#[cfg(not(debug_assertions))]
const fn global_terms() -> LeaseTerms {
    LeaseTerms::ROOT
}

/// Returns the terms of the global ledger's leases. Only debug builds read [`GLOBAL_LEASE`]: no
/// operator can shorten a lease in production.
#[cfg(debug_assertions)]
fn global_terms() -> LeaseTerms {
    let secs = std::env::var(GLOBAL_LEASE).ok();
    let Some(secs) = secs.and_then(|secs| secs.parse().ok()) else {
        return LeaseTerms::ROOT;
    };
    tracing::warn!(secs, "global lease shortened for a fault run");
    LeaseTerms {
        ttl: DurationMs::from_secs(secs),
    }
}
