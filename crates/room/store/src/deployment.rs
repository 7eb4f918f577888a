//! Record that all nodes of a store share: the id of the deployment and its secrets.
//!
//! The first node of a deployment draws them and writes them to the store. The other nodes read
//! them there. A node that has them on its own disk restores them to a store that has lost them.
//! The record also shows whether the deployment began on this very server. Only then is a ledger
//! that is absent known to be new, and not lost.

use std::collections::BTreeMap;

use crate::wire::deployment::{self as record, DamagedDeployment, DeploymentFacts};
use anteroom_room::hash::LotteryKey;
use anteroom_room::id::{DataCenterId, DeploymentId};
use anteroom_room::ledger_exchange::{FirstStart, RecordLocation};
use anteroom_room::time::{DurationMs, Timestamp};

use crate::store::{Identity, Loaded, RecordKey, Store, StoreError, Swap};

/// Attempts at a write. One is lost for each other node that starts at the same time.
const TRIES: u32 = 32;

/// Identity and secret of a deployment: drawn at the first start and kept from then on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Deployment {
    /// Id of the deployment. Tickets of another deployment are invalid.
    pub deployment_id: DeploymentId,
    /// Secret key of its lotteries.
    pub lottery_key: LotteryKey,
}

/// Ticket keys, newest first.
pub type TicketKeys = Vec<[u8; 32]>;

/// Facts that all nodes of a store share.
#[derive(Clone, Eq, PartialEq)]
pub struct Membership {
    /// Id and lottery key.
    pub deployment: Deployment,
    /// Keys of tickets, newest first; at least one.
    pub ticket_keys: TicketKeys,
}

impl std::fmt::Debug for Membership {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A log must not show keys.
        write!(f, "Membership({:016x})", self.deployment.deployment_id.0)
    }
}

/// Error of joining a deployment.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The store failed.
    #[error("cannot learn from the store which deployment this is")]
    Store(#[from] StoreError),
    /// The record is not readable.
    #[error(
        "the store's record of the deployment is damaged; delete it to start over (all active and \
         waiting visitors become new ones)"
    )]
    Damaged(#[from] DamagedDeployment),
    /// Other nodes wrote first, every time.
    #[error("too many nodes start at the same time; start this one again")]
    Contention,
}

impl DeploymentFacts {
    fn membership(self) -> Membership {
        Membership {
            deployment: Deployment {
                deployment_id: self.deployment_id,
                lottery_key: self.lottery_key,
            },
            ticket_keys: self.ticket_keys,
        }
    }
}

/// Returns the deployment that the store knows; `None` if it knows none.
///
/// # Errors
///
/// As [`join`].
pub async fn known(store: &dyn Store) -> Result<Option<Membership>, JoinError> {
    let loaded = store.load(&key()).await?;
    Ok(facts(&loaded)?.map(DeploymentFacts::membership))
}

/// Joins the deployment that the store knows. If it knows none, writes `own` there. `is_new` says
/// that `own` was drawn just now; `at` is by a clock that writes tickets.
///
/// # Errors
///
/// [`JoinError`] if the store cannot be used or its record cannot be read.
pub async fn join(
    store: &dyn Store,
    own: &Membership,
    is_new: bool,
    at: Timestamp,
) -> Result<Membership, JoinError> {
    let key = key();
    for _ in 0..TRIES {
        let loaded = store.load(&key).await?;
        if let Some(found) = facts(&loaded)? {
            return Ok(found.membership());
        }
        let facts = DeploymentFacts {
            deployment_id: own.deployment.deployment_id,
            lottery_key: own.deployment.lottery_key,
            ticket_keys: own.ticket_keys.clone(),
            keeper: loaded.identity.0,
            kept_since: at,
            is_first: is_new,
        };
        if write(store, &loaded, &facts).await? {
            return Ok(own.clone());
        }
    }
    Err(JoinError::Contention)
}

/// Restores the deployment to a store that has lost it, and returns the id that the store has. A
/// store that knows a deployment keeps it.
///
/// # Errors
///
/// As [`join`].
pub async fn restore(
    store: &dyn Store,
    own: &Membership,
    at: Timestamp,
) -> Result<DeploymentId, JoinError> {
    let found = join(store, own, false, at).await?;
    Ok(found.deployment.deployment_id)
}

/// Writes the name of this data center to the store, and returns the names of all of them.
///
/// # Errors
///
/// [`JoinError`] if the store cannot be used.
pub async fn register_data_center(
    store: &dyn Store,
    id: DataCenterId,
    name: &str,
) -> Result<BTreeMap<DataCenterId, String>, JoinError> {
    let key = RecordKey("data-centers".to_owned());
    for _ in 0..TRIES {
        let loaded = store.load(&key).await?;
        let record = loaded.record.as_ref();
        let mut names =
            record.map_or_else(BTreeMap::new, |found| record::decode_names(&found.value));
        if names.get(&id).is_some_and(|known| known == name) {
            return Ok(names);
        }
        names.insert(id, name.to_owned());
        let value = record::encode_names(&names);
        let swap = store.compare_and_swap(&key, loaded.expected(), value);
        if swap.await? == Swap::Swapped {
            return Ok(names);
        }
    }
    Err(JoinError::Contention)
}

/// Whether an absent ledger was never in this store, or all leases that it granted have ended.
/// After a loss that takes `ttl`. `at` is by a clock that writes tickets; `None` if none was read.
pub(crate) async fn is_first_start(
    store: &dyn Store,
    ttl: DurationMs,
    at: Option<Timestamp>,
) -> Result<bool, StoreError> {
    let key = key();
    for _ in 0..TRIES {
        let loaded = store.load(&key).await?;
        let Ok(Some(found)) = facts(&loaded) else {
            return Ok(false);
        };
        let kept = RecordLocation {
            store: Identity(found.keeper),
            since: found.kept_since,
            is_first: found.is_first,
        };
        let moved = match FirstStart::of(kept, loaded.identity, at, ttl) {
            FirstStart::Yes => return Ok(true),
            FirstStart::No => return Ok(false),
            FirstStart::Moved(kept) => kept,
        };
        let facts = DeploymentFacts {
            keeper: moved.store.0,
            kept_since: moved.since,
            is_first: moved.is_first,
            ..found
        };
        if write(store, &loaded, &facts).await? {
            return Ok(false);
        }
    }
    Ok(false)
}

fn key() -> RecordKey {
    RecordKey("deployment".to_owned())
}

fn facts(loaded: &Loaded) -> Result<Option<DeploymentFacts>, DamagedDeployment> {
    let record = loaded.record.as_ref();
    record.map(|found| record::decode(&found.value)).transpose()
}

async fn write(
    store: &dyn Store,
    loaded: &Loaded,
    facts: &DeploymentFacts,
) -> Result<bool, StoreError> {
    let value = record::encode(facts);
    let key = key();
    let swap = store.compare_and_swap(&key, loaded.expected(), value);
    Ok(swap.await? == Swap::Swapped)
}
