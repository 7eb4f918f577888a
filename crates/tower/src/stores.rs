//! Which stores does a configuration mean, and to which deployment does this node belong?
//!
//! The one place that names backends.

use std::sync::Arc;
use std::time::Duration;

use anteroom_config::{
    Config, GossipConfig, LimitConfig, LimitStore, MemcachedConfig, StoreConfig, ValkeyConfig,
};
use anteroom_embedded::leases::LentFile;
use anteroom_embedded::{DataDir, Embedded};
use anteroom_gossip::{GossipCounts, GossipSettings, Secret};
use anteroom_limit::time::Micros;
use anteroom_limit_store::lending::LeasedCounts;
use anteroom_limit_store::lent::LentRecords;
use anteroom_limit_store::shared::SharedCounts;
use anteroom_memcached::MemcachedCounts;
use anteroom_node::Stores;
use anteroom_store::{
    Clock, Deployment, Identity, JoinError, Membership, Store, StoreError, TicketKeys, chain, join,
    restore,
};
use anteroom_valkey::{SetupError, Valkey, ValkeyCounts, ValkeyLent};
use tokio::task::JoinHandle;

use crate::kafka::Log;
use crate::open::OpenError;

/// How long a node of which no store knows waits for its store.
pub(crate) const FIRST_CONTACT: Duration = Duration::from_secs(30);
/// Between two tries.
const TRY_AGAIN: Duration = Duration::from_millis(500);
/// How often is looked whether the store still knows the deployment.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// The stores of a node, and what it has in common with others.
pub struct Opened {
    pub(crate) stores: Stores,
    pub(crate) embedded: Option<Arc<Embedded>>,
    pub(crate) deployment: Deployment,
    /// Keys of tickets, unless the configuration has its own.
    pub(crate) ticket_keys: TicketKeys,
    /// Where calls are counted that several nodes count together.
    pub(crate) counts: anteroom_limit_http::CountStores,
    /// What nodes tell each other of calls.
    pub(crate) gossip: Option<Arc<GossipCounts>>,
    /// What was lent of calls, if that lies in the data folder.
    pub(crate) lent: Option<Arc<LentFile>>,
    /// The log over which calls are counted, if there is one.
    pub(crate) log: Log,
    /// Puts the deployment back into a store that has lost it.
    pub(crate) keeper: Option<JoinHandle<()>>,
}

impl Opened {
    /// Opens what the configuration says. A store that does not answer yet may later; a new node of
    /// a deployment waits for it for half a minute.
    ///
    /// # Errors
    ///
    /// [`OpenError`] if the data folder or a store cannot be used.
    pub async fn of(
        config: &Config,
        dir: &DataDir,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        open(config, dir, clock).await
    }

    /// On the journal of this process.
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
            counts: anteroom_limit_http::CountStores::default(),
            gossip: None,
            lent: None,
            log: Log::default(),
            keeper: None,
        })
    }

    /// The same, from which calls are lent, too: what was lent lies beside the journal. Requests
    /// for them run on the runtime in which this is called.
    ///
    /// # Errors
    ///
    /// [`OpenError::Leases`].
    pub fn lending(mut self, dir: &DataDir, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let lent = Arc::new(LentFile::new(dir.clone(), clock));
        let records = Arc::clone(&lent) as Arc<dyn LentRecords>;
        let leases =
            LeasedCounts::new(records, anteroom_limit_store::lending::Settings::default())?;
        self.counts.leases = Some(Arc::new(leases));
        self.lent = Some(lent);
        Ok(self)
    }

    /// Opens what was lent, beside everything else, as soon as a predecessor lets go of it.
    fn look_at_what_was_lent(&self) {
        if let Some(lent) = self.lent.clone() {
            tokio::spawn(async move {
                if let Err(error) = lent.open().await {
                    let cause = anteroom_limit_store::shared::chain(&error);
                    tracing::info!(cause, "what was lent of calls is not open yet");
                }
            });
        }
    }
}

async fn open(config: &Config, dir: &DataDir, clock: Arc<dyn Clock>) -> Result<Opened, OpenError> {
    let memcached = config.memcached.as_ref();
    let memcached = memcached.map(|memcached| on_memcached(memcached, Arc::clone(&clock)));
    let log = Log::open(config, Arc::clone(&clock))?;
    let mut opened = open_store(config, dir, Arc::clone(&clock)).await?;
    opened.counts.memcached = memcached;
    opened.counts.kafka = log.counts();
    opened.log = log;
    // Last, for it is told to others.
    if let Some(gossip) = &config.gossip {
        let gossip = Arc::new(gossiping(gossip, clock)?);
        opened.counts.gossip = Some(Arc::clone(&gossip) as Arc<dyn SharedCounts>);
        opened.gossip = Some(gossip);
    }
    Ok(opened)
}

/// By the clock of rooms: it goes to the wall clock, and does not jump.
fn micros(clock: Arc<dyn Clock>) -> Arc<dyn Fn() -> Micros + Send + Sync> {
    Arc::new(move || Micros(clock.now().0.saturating_mul(1_000)))
}

fn on_memcached(config: &MemcachedConfig, clock: Arc<dyn Clock>) -> Arc<dyn SharedCounts> {
    let counts = MemcachedCounts::new(&config.servers, &config.prefix, micros(clock));
    Arc::new(counts)
}

fn gossiping(config: &GossipConfig, clock: Arc<dyn Clock>) -> Result<GossipCounts, OpenError> {
    let secret = Secret::read(&config.secret_file)?;
    let settings = GossipSettings {
        listen: config.listen,
        advertise: config.advertise,
        peers: config.peers.clone(),
        interval: Duration::from_millis(config.interval.0),
    };
    Ok(GossipCounts::open(&settings, &secret, micros(clock))?)
}

async fn open_store(
    config: &Config,
    dir: &DataDir,
    clock: Arc<dyn Clock>,
) -> Result<Opened, OpenError> {
    match &config.store {
        StoreConfig::Embedded => {
            let identity = Identity(dir.deployment()?.birth.0);
            let journal = Embedded::new(dir.clone(), identity, Arc::clone(&clock));
            let opened = Opened::alone(dir, Arc::new(journal))?.lending(dir, clock)?;
            let is_lent = |limit: &LimitConfig| limit.store == LimitStore::Leases;
            if config.limits.iter().any(is_lent) {
                opened.look_at_what_was_lent();
            }
            Ok(opened)
        }
        StoreConfig::Valkey(valkey) => shared(valkey, dir).await,
    }
}

async fn shared(config: &ValkeyConfig, dir: &DataDir) -> Result<Opened, OpenError> {
    let local = Valkey::new(&config.local, &config.prefix).map_err(setup("local"))?;
    let local = Arc::new(local);
    let world = if config.has_world {
        let world = Valkey::new(&config.world, &config.prefix);
        Arc::new(world.map_err(setup("world"))?)
    } else {
        Arc::clone(&local)
    };
    let (own, is_new) = dir.membership()?;
    for (name, store) in [("local", &local), ("world", &world)] {
        if name == "local" || config.has_world {
            check(name, store).await?;
        }
    }
    let membership = match first_contact(&*world, &own, is_new).await {
        Ok(membership) => {
            dir.adopt(&membership)?;
            membership
        }
        Err(JoinError::Store(error)) if !is_new => {
            tracing::error!(
                cause = chain(&error),
                "the store is away: those inside pass, nobody is admitted before it is back"
            );
            own
        }
        Err(error) => return Err(error.into()),
    };
    let keeper = tokio::spawn(keep(Arc::clone(&world), membership.clone()));
    let stores = if config.has_world {
        Stores::TwoLevels { local, world }
    } else {
        Stores::Shared(local)
    };
    Ok(Opened {
        stores,
        embedded: None,
        deployment: membership.deployment,
        ticket_keys: membership.ticket_keys,
        counts: counts(config)?,
        gossip: None,
        lent: None,
        log: Log::default(),
        keeper: Some(keeper),
    })
}

/// Where calls are counted: behind all data centers, for that is what a limit is for. They connect
/// when the first limit needs them.
fn counts(config: &ValkeyConfig) -> Result<anteroom_limit_http::CountStores, OpenError> {
    let valkey = ValkeyCounts::new(&config.world, &config.prefix).map_err(setup("world"))?;
    let lent = ValkeyLent::new(&config.world, &config.prefix).map_err(setup("world"))?;
    let leases = LeasedCounts::new(
        Arc::new(lent),
        anteroom_limit_store::lending::Settings::default(),
    )?;
    Ok(anteroom_limit_http::CountStores {
        valkey: Some(Arc::new(valkey)),
        leases: Some(Arc::new(leases)),
        ..anteroom_limit_http::CountStores::default()
    })
}

/// Counts at this data center's own server, for who has no time to ask further away; `None` where
/// there is none.
///
/// # Errors
///
/// [`OpenError::Setup`].
pub fn near_counts(config: &Config) -> Result<Option<Arc<dyn SharedCounts>>, OpenError> {
    let StoreConfig::Valkey(valkey) = &config.store else {
        return Ok(None);
    };
    let near = ValkeyCounts::new(&valkey.local, &valkey.prefix).map_err(setup("local"))?;
    Ok(Some(Arc::new(near)))
}

fn setup(name: &'static str) -> impl FnOnce(SetupError) -> OpenError {
    move |source| OpenError::Setup { name, source }
}

/// Tells whether a store is fit for use. One that is away now may be there later; one that refuses
/// needs somebody to change something.
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
        Err(error @ StoreError::Refused { .. }) => Err(OpenError::Store {
            name,
            source: error,
        }),
        Err(error) => {
            tracing::warn!(cause = chain(&error), "store.{name} does not answer yet");
            Ok(())
        }
    }
}

/// Joins the deployment, with patience if nothing else will do.
async fn first_contact(
    store: &dyn Store,
    own: &Membership,
    is_new: bool,
) -> Result<Membership, JoinError> {
    let until = tokio::time::Instant::now() + FIRST_CONTACT;
    loop {
        match join(store, own, is_new).await {
            Err(JoinError::Store(StoreError::Unavailable { .. }))
                if is_new && tokio::time::Instant::now() < until =>
            {
                tokio::time::sleep(TRY_AGAIN).await;
            }
            result => return result,
        }
    }
}

/// Looks again and again whether the store still knows the deployment.
async fn keep(store: Arc<Valkey>, membership: Membership) {
    let mut has_complained = false;
    loop {
        tokio::time::sleep(LOOK_AGAIN).await;
        let Ok(birth) = restore(&*store, &membership).await else {
            // The rooms' loops say so.
            continue;
        };
        let is_other = birth != membership.deployment.birth;
        if is_other && !has_complained {
            tracing::error!(
                "another deployment has begun in this store: this node's visitors are unknown to \
                 it; \
                 restart this node to join it"
            );
        }
        has_complained = is_other;
    }
}
