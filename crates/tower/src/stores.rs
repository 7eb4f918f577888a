//! Opens the store of a configuration and joins this node to its deployment.

use std::sync::Arc;
use std::time::Duration;

use anteroom_config::{Config, StoreConfig, ValkeyConfig};
use anteroom_embedded::{DataDir, Embedded};
use anteroom_limit_http::CountStores;
use anteroom_node::Stores;
use anteroom_store::{
    Clock, Deployment, Identity, JoinError, Membership, Store, StoreError, TicketKeys, chain, join,
    known, restore,
};
use anteroom_valkey::Valkey;
use tokio::task::JoinHandle;

use crate::counts::{self, Phase};
use crate::open_error::OpenError;

/// Longest time that a node without leases waits for the first reply of its store.
pub(crate) const FIRST_CONTACT: Duration = Duration::from_secs(30);
/// Pause between two attempts to join.
const JOIN_RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// Interval of the checks that the store still has the deployment's record.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Time after the start of an empty store in which the nodes of a deployment restore its record
/// there. They notice the server within a second, and check within another one.
const RESTORED_AFTER: Duration = Duration::from_secs(4);

/// Stores of a node, and the settings that it shares with other nodes.
pub struct OpenedStores {
    pub(crate) stores: Stores,
    pub(crate) embedded: Option<Arc<Embedded>>,
    pub(crate) deployment: Deployment,
    /// Ticket keys, unless the configuration has its own.
    pub(crate) ticket_keys: TicketKeys,
    /// Stores of the limits that several nodes count together.
    pub(crate) counts: CountStores,
    /// Task that restores the deployment's record in a store that has lost it.
    pub(crate) keeper: Option<JoinHandle<()>>,
}

impl OpenedStores {
    /// Opens the stores of the configuration. An unavailable store is no error for a node that has
    /// joined before; a new node waits for it for half a minute.
    ///
    /// # Errors
    ///
    /// [`OpenError`] if the data folder or a store cannot be used.
    pub async fn of(
        config: &Config,
        dir: &DataDir,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        let mut counts = counts::open(Phase::BeforeRooms, config, dir, &clock)?;
        let mut opened = open_store(config, dir, Arc::clone(&clock)).await?;
        counts.extend(counts::open(Phase::AfterRooms, config, dir, &clock)?);
        opened.counts = counts.into_iter().collect();
        Ok(opened)
    }

    /// Uses the journal of this process as the only store.
    ///
    /// # Errors
    ///
    /// [`OpenError::DataDir`].
    pub fn alone(dir: &DataDir, store: Arc<Embedded>) -> Result<Self, OpenError> {
        Ok(Self {
            stores: Stores::Alone(Arc::clone(&store) as Arc<dyn Store>),
            embedded: Some(store),
            deployment: dir.deployment()?,
            ticket_keys: dir.ticket_keys()?,
            counts: CountStores::default(),
            keeper: None,
        })
    }
}

async fn open_store(
    config: &Config,
    dir: &DataDir,
    clock: Arc<dyn Clock>,
) -> Result<OpenedStores, OpenError> {
    match &config.store {
        StoreConfig::Embedded => {
            let identity = Identity(dir.deployment()?.deployment_id.0);
            let journal = Embedded::new(dir.clone(), identity, clock);
            OpenedStores::alone(dir, Arc::new(journal))
        }
        StoreConfig::Valkey(valkey) => shared(valkey, dir, clock).await,
    }
}

async fn shared(
    config: &ValkeyConfig,
    dir: &DataDir,
    clock: Arc<dyn Clock>,
) -> Result<OpenedStores, OpenError> {
    let local = Valkey::new(&config.local, &config.prefix).map_err(OpenError::setup("local"))?;
    let local = Arc::new(local);
    let global = if config.has_global {
        let global = Valkey::new(&config.global, &config.prefix);
        Arc::new(global.map_err(OpenError::setup("global"))?)
    } else {
        Arc::clone(&local)
    };
    let (own, is_new) = dir.membership()?;
    for (name, store) in [("local", &local), ("global", &global)] {
        if name == "local" || config.has_global {
            check(name, store).await?;
        }
    }
    let membership = match first_contact(&global, &own, is_new, &*clock).await {
        Ok(membership) => {
            dir.adopt(&membership)?;
            membership
        }
        Err(JoinError::Store(error)) if !is_new => {
            tracing::error!(
                cause = chain(&error),
                "the store is unavailable: active visitors pass, nobody is admitted until it \
                 replies"
            );
            own
        }
        Err(error) => return Err(error.into()),
    };
    let keeper = tokio::spawn(keep(Arc::clone(&global), membership.clone(), clock));
    let stores = if config.has_global {
        Stores::TwoLevels { local, global }
    } else {
        Stores::Shared(local)
    };
    Ok(OpenedStores {
        stores,
        embedded: None,
        deployment: membership.deployment,
        ticket_keys: membership.ticket_keys,
        counts: CountStores::default(),
        keeper: Some(keeper),
    })
}

/// Checks a store. An unavailable one may come back; one that rejects needs an operator.
async fn check(name: &'static str, store: &Valkey) -> Result<(), OpenError> {
    match store.check().await {
        Ok(findings) => {
            let has_warnings = findings.warnings().next().is_some();
            if has_warnings {
                tracing::warn!("store.{name}: {findings}");
            } else {
                tracing::info!("store.{name}: {findings}");
            }
            Ok(())
        }
        Err(error @ StoreError::Rejected { .. }) => Err(OpenError::Store {
            name,
            source: error,
        }),
        Err(error) => {
            tracing::warn!(cause = chain(&error), "store.{name} does not reply yet");
            Ok(())
        }
    }
}

/// Joins the deployment. A new node retries for [`FIRST_CONTACT`].
async fn first_contact(
    store: &Valkey,
    own: &Membership,
    is_new: bool,
    clock: &dyn Clock,
) -> Result<Membership, JoinError> {
    let until = tokio::time::Instant::now() + FIRST_CONTACT;
    loop {
        match join_or_found(store, own, is_new, clock).await {
            Err(JoinError::Store(StoreError::Unavailable { .. }))
                if is_new && tokio::time::Instant::now() < until =>
            {
                tokio::time::sleep(JOIN_RETRY_INTERVAL).await;
            }
            result => return result,
        }
    }
}

/// Joins the deployment, and founds one where there is none. A store that has just started may have
/// lost the record of a deployment whose nodes still run. If a new node founded another one there,
/// it would admit visitors as if nobody were active.
async fn join_or_found(
    store: &Valkey,
    own: &Membership,
    is_new: bool,
    clock: &dyn Clock,
) -> Result<Membership, JoinError> {
    while is_new && known(store).await?.is_none() {
        let uptime = store.check().await?.uptime().unwrap_or(RESTORED_AFTER);
        let left = RESTORED_AFTER.saturating_sub(uptime);
        if left.is_zero() {
            break;
        }
        tracing::info!(
            "the store has just started: waiting {} s for nodes that know its deployment",
            left.as_secs()
        );
        tokio::time::sleep(left).await;
    }
    join(store, own, is_new, clock.now()).await
}

/// Restores the deployment's record whenever the store has lost it.
async fn keep(store: Arc<Valkey>, membership: Membership, clock: Arc<dyn Clock>) {
    let mut has_logged = false;
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        let Ok(birth) = restore(&*store, &membership, clock.now()).await else {
            // The rooms' sync loops log it.
            continue;
        };
        let is_other = birth != membership.deployment.deployment_id;
        if is_other && !has_logged {
            tracing::error!(
                "another deployment has begun in this store: it does not know this node's \
                 visitors; restart this node to join it"
            );
        }
        has_logged = is_other;
    }
}
