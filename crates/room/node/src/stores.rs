//! Which ledgers does a node talk to, and where are they?

use std::sync::Arc;

use anteroom_config::overrides::Record;
use anteroom_room::allocation::CounterScope;
use anteroom_room::id::{DataCenterId, DeploymentId};
use anteroom_room::ledger::LeaseTerms;
#[cfg(debug_assertions)]
use anteroom_room::time::DurationMs;
use anteroom_store::{LedgerPlace, LedgerRole, OverrideFeed, OverrideStore, RecordKey, Store};

/// Names a shorter lease of the global ledger, in seconds. Fault runs on real processes set it:
/// they see that lease end, and nobody waits ten minutes for a test. All nodes need the same value.
#[cfg(debug_assertions)]
const GLOBAL_LEASE: &str = "ANTEROOM_DEBUG_GLOBAL_LEASE_SECS";

/// The stores of a node.
#[derive(Clone)]
pub enum Stores {
    /// In this process: one node.
    Alone(Arc<dyn Store>),
    /// One store for all nodes.
    Shared(Arc<dyn Store>),
    /// One in each data center, and one behind them all.
    TwoLevels {
        /// This data center's.
        local: Arc<dyn Store>,
        /// The one behind all data centers; the same server may be both.
        global: Arc<dyn Store>,
    },
}

/// The ledgers of one room, as one node sees them.
pub(crate) struct Ledgers {
    /// The one it talks to.
    pub(crate) parent: LedgerPlace,
    /// The one behind that.
    pub(crate) global: Option<LedgerPlace>,
}

impl Ledgers {
    /// The one that lends what the limits allow, if others write it as well.
    pub(crate) fn root(&self) -> Option<&LedgerPlace> {
        match self.parent.role() {
            LedgerRole::Alone => None,
            LedgerRole::Root(_) => Some(&self.parent),
            LedgerRole::Below(_) => self.global.as_ref(),
        }
    }
}

impl Stores {
    /// The store that all nodes of the deployment share, if there are others.
    pub(crate) fn common(&self) -> Option<&Arc<dyn Store>> {
        match self {
            Self::Alone(_) => None,
            Self::Shared(store) | Self::TwoLevels { global: store, .. } => Some(store),
        }
    }

    pub(crate) fn ledgers(&self, room: &str, birth: DeploymentId, here: DataCenterId) -> Ledgers {
        let key = |level: &str| RecordKey(format!("{room}/{:016x}/{level}", birth.0));
        let place = |store: &Arc<dyn Store>, key, role| {
            LedgerPlace::new(Arc::clone(store), key, room, role)
        };
        match self {
            Self::Alone(store) => Ledgers {
                parent: place(store, RecordKey(room.to_owned()), LedgerRole::Alone),
                global: None,
            },
            Self::Shared(store) => {
                let role = LedgerRole::Root(LeaseTerms::default());
                Ledgers {
                    parent: place(store, key("all"), role),
                    global: None,
                }
            }
            Self::TwoLevels { local, global } => {
                let below = LedgerRole::Below(here);
                let root = LedgerRole::Root(global_lending());
                Ledgers {
                    parent: place(local, key(&format!("{:08x}", here.0)), below),
                    global: Some(place(global, key("world"), root)),
                }
            }
        }
    }

    /// What operators say about something, as this process hears it: a room by its name, or
    /// whatever else by a name that no room has. It is kept with what lends what the limits allow;
    /// and a copy next door, if that is elsewhere.
    #[must_use]
    pub fn hearing<R: Record>(
        &self,
        name: &str,
        birth: DeploymentId,
        about: &str,
    ) -> OverrideFeed<R> {
        let place = |store: &Arc<dyn Store>, end: &str| {
            OverrideStore::new(Arc::clone(store), &format!("{name}/{:016x}{end}", birth.0))
        };
        let places = match self {
            Self::Alone(store) => (OverrideStore::new(Arc::clone(store), name), None),
            Self::Shared(store) => (place(store, ""), None),
            Self::TwoLevels { local, global } => (place(global, ""), Some(place(local, "/copy"))),
        };
        OverrideFeed::new(places, self.are_shared(), about)
    }

    /// Where counters of this scope are kept.
    pub(crate) fn counters(&self, scope: CounterScope) -> &Arc<dyn Store> {
        match (self, scope) {
            (Self::Alone(store) | Self::Shared(store), _) => store,
            (Self::TwoLevels { local, .. }, CounterScope::DataCenter(_)) => local,
            (Self::TwoLevels { global, .. }, CounterScope::Anywhere) => global,
        }
    }

    /// Whether other processes write the same records. Then each call is a message to a server that
    /// others need as well, and rounds are paced.
    #[must_use]
    pub fn are_shared(&self) -> bool {
        !matches!(self, Self::Alone(_))
    }

    /// Lets go of everything.
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

/// How long the global ledger lends.
#[cfg(not(debug_assertions))]
const fn global_lending() -> LeaseTerms {
    LeaseTerms::ROOT
}

/// How long the global ledger lends. Only programs that are not built for release read
/// [`GLOBAL_LEASE`]: no operator can shorten a lease in production.
#[cfg(debug_assertions)]
fn global_lending() -> LeaseTerms {
    let secs = std::env::var(GLOBAL_LEASE).ok();
    let Some(secs) = secs.and_then(|secs| secs.parse().ok()) else {
        return LeaseTerms::ROOT;
    };
    tracing::warn!(secs, "global lease shortened for a fault run");
    LeaseTerms {
        ttl: DurationMs::from_secs(secs),
    }
}
