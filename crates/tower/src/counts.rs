//! Opens the stores in which limits are counted that several nodes share.
//!
//! The one place that names their backends: an arm for each store that a limit can name.

use std::sync::Arc;
use std::time::Duration;

use anteroom_config::{Config, GossipConfig, LimitStore, MemcachedConfig, StoreConfig};
use anteroom_embedded::DataDir;
use anteroom_embedded::leases::LeaseFile;
use anteroom_gossip::{GossipCounts, GossipSettings, Secret};
use anteroom_limit::time::TimestampUs;
use anteroom_limit_store::clock::Now;
use anteroom_limit_store::lending::{LeasedCounts, Settings};
use anteroom_limit_store::lent::LeaseRecords;
use anteroom_limit_store::shared::{SharedCounts, chain};
use anteroom_memcached::MemcachedCounts;
use anteroom_store::Clock;
use anteroom_valkey::{ValkeyCounts, ValkeyLeases};

use crate::kafka;
use crate::open_error::OpenError;

type Counts = Arc<dyn SharedCounts>;

/// When a store of limits opens, beside the store of rooms, which may be waited for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Turn {
    /// Before it: a mistake in the settings is told at once, and nothing has been written.
    BeforeRooms,
    /// After it.
    AfterRooms,
}

impl Turn {
    const fn of(store: LimitStore) -> Self {
        match store {
            LimitStore::Memcached | LimitStore::Kafka => Self::BeforeRooms,
            LimitStore::Local | LimitStore::Valkey | LimitStore::Leases | LimitStore::Gossip => {
                Self::AfterRooms
            }
        }
    }
}

/// Opens the stores of this configuration whose turn it is. They connect when the first limit needs
/// them, or beside the requests. Requests for leases run on the runtime in which this is called.
pub(crate) fn open(
    turn: Turn,
    config: &Config,
    dir: &DataDir,
    clock: &Arc<dyn Clock>,
) -> Result<Vec<(LimitStore, Counts)>, OpenError> {
    let whose_turn = LimitStore::ALL
        .iter()
        .filter(|store| Turn::of(**store) == turn);
    let opened = whose_turn.filter_map(|store| {
        let opened = open_one(*store, config, dir, clock).transpose()?;
        Some(opened.map(|counts| (*store, counts)))
    });
    opened.collect()
}

/// Opens a store; `None` if this configuration has none of the kind.
fn open_one(
    store: LimitStore,
    config: &Config,
    dir: &DataDir,
    clock: &Arc<dyn Clock>,
) -> Result<Option<Counts>, OpenError> {
    match store {
        // Each limit counts in a memory of its own.
        LimitStore::Local => Ok(None),
        LimitStore::Valkey => on_valkey(config),
        LimitStore::Leases => lending(config, dir, clock).map(Some),
        LimitStore::Memcached => {
            let memcached = config.limit_stores.memcached.as_ref();
            Ok(memcached.map(|memcached| on_memcached(memcached, clock)))
        }
        LimitStore::Kafka => kafka::open(config, micros(clock)),
        LimitStore::Gossip => {
            let gossip = config.limit_stores.gossip.as_ref();
            gossip.map(|gossip| gossiping(gossip, clock)).transpose()
        }
    }
}

/// Counts behind all data centers, for that is what a limit is for.
fn on_valkey(config: &Config) -> Result<Option<Counts>, OpenError> {
    let StoreConfig::Valkey(valkey) = &config.store else {
        return Ok(None);
    };
    let counts =
        ValkeyCounts::new(&valkey.global, &valkey.prefix).map_err(OpenError::setup("global"))?;
    Ok(Some(Arc::new(counts)))
}

/// Leases from where the records of rooms lie: behind all data centers, or in the data folder.
fn lending(config: &Config, dir: &DataDir, clock: &Arc<dyn Clock>) -> Result<Counts, OpenError> {
    let records: Arc<dyn LeaseRecords> = match &config.store {
        StoreConfig::Embedded => {
            let file = Arc::new(LeaseFile::new(dir.clone(), Arc::clone(clock)));
            let mut limits = config.limits.iter();
            if limits.any(|limit| limit.store == LimitStore::Leases) {
                tokio::spawn(open_ahead(Arc::clone(&file)));
            }
            file
        }
        StoreConfig::Valkey(valkey) => {
            let lent = ValkeyLeases::new(&valkey.global, &valkey.prefix);
            Arc::new(lent.map_err(OpenError::setup("global"))?)
        }
    };
    Ok(Arc::new(LeasedCounts::new(records, Settings::default())?))
}

/// Opens what was lent, beside everything else, as soon as a predecessor lets go of it.
async fn open_ahead(lent: Arc<LeaseFile>) {
    if let Err(error) = lent.open().await {
        let cause = chain(&error);
        tracing::info!(cause, "what was lent of calls is not open yet");
    }
}

fn on_memcached(config: &MemcachedConfig, clock: &Arc<dyn Clock>) -> Counts {
    let counts = MemcachedCounts::new(&config.servers, &config.prefix, micros(clock));
    Arc::new(counts)
}

fn gossiping(config: &GossipConfig, clock: &Arc<dyn Clock>) -> Result<Counts, OpenError> {
    let secret = Secret::read(&config.secret_file)?;
    let settings = GossipSettings {
        listen: config.listen,
        advertise: config.advertise,
        peers: config.peers.clone(),
        interval: Duration::from_millis(config.interval.0),
    };
    let counts = GossipCounts::open(&settings, &secret, micros(clock))?;
    Ok(Arc::new(counts))
}

/// By the clock of rooms: it goes to the wall clock, and does not jump.
fn micros(clock: &Arc<dyn Clock>) -> Now {
    let clock = Arc::clone(clock);
    Arc::new(move || TimestampUs(clock.now().0.saturating_mul(1_000)))
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
    let near =
        ValkeyCounts::new(&valkey.local, &valkey.prefix).map_err(OpenError::setup("local"))?;
    Ok(Some(Arc::new(near)))
}
