//! Opens the stores in which nodes count their shared rate limits.
//!
//! Only this module names their backends: one arm per store that a limit can name.

use std::sync::Arc;
use std::time::Duration;

use anteroom_config::{Config, GossipConfig, LimitStore, MemcachedConfig, StoreConfig};
use anteroom_embedded::DataDir;
use anteroom_embedded::leases::LeaseFile;
use anteroom_gossip::{GossipCounts, GossipSettings, Secret};
use anteroom_limit::time::TimestampUs;
use anteroom_limit_store::clock::Now;
use anteroom_limit_store::lease_store::LeaseRecords;
use anteroom_limit_store::leases::{LeasedCounts, Settings};
use anteroom_limit_store::shared::{SharedCounts, chain};
use anteroom_memcached::MemcachedCounts;
use anteroom_store::Clock;
use anteroom_valkey::{ValkeyCounts, ValkeyLeases};

use crate::kafka;
use crate::open_error::OpenError;

type Counts = Arc<dyn SharedCounts>;

/// Phase in which a store of limits opens: opening the store of rooms may take long.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Phase {
    /// Before the store of rooms: a mistake in the settings shows at once, with nothing written.
    BeforeRooms,
    /// After the store of rooms.
    AfterRooms,
}

impl Phase {
    const fn of(store: LimitStore) -> Self {
        match store {
            LimitStore::Memcached | LimitStore::Kafka => Self::BeforeRooms,
            LimitStore::Local | LimitStore::Valkey | LimitStore::Leases | LimitStore::Gossip => {
                Self::AfterRooms
            }
        }
    }
}

/// Opens the stores of this configuration that belong to `phase`. They connect when the first limit
/// needs them, or in the background. Requests for leases run on the calling runtime.
pub(crate) fn open(
    phase: Phase,
    config: &Config,
    dir: &DataDir,
    clock: &Arc<dyn Clock>,
) -> Result<Vec<(LimitStore, Counts)>, OpenError> {
    let in_phase = LimitStore::ALL
        .iter()
        .filter(|store| Phase::of(**store) == phase);
    let opened = in_phase.filter_map(|store| {
        let opened = open_one(*store, config, dir, clock).transpose()?;
        Some(opened.map(|counts| (*store, counts)))
    });
    opened.collect()
}

/// Opens one store; `None` if this configuration has none of the kind.
fn open_one(
    store: LimitStore,
    config: &Config,
    dir: &DataDir,
    clock: &Arc<dyn Clock>,
) -> Result<Option<Counts>, OpenError> {
    match store {
        // Each local limit counts in its own memory.
        LimitStore::Local => Ok(None),
        LimitStore::Valkey => on_valkey(config),
        LimitStore::Leases => leased(config, dir, clock).map(Some),
        LimitStore::Memcached => {
            let memcached = config.limit_stores.memcached.as_ref();
            Ok(memcached.map(|memcached| on_memcached(memcached, clock)))
        }
        LimitStore::Kafka => kafka::open(config, micros(clock)),
        LimitStore::Gossip => {
            let gossip = config.limit_stores.gossip.as_ref();
            gossip.map(|gossip| on_gossip(gossip, clock)).transpose()
        }
    }
}

/// Opens counts in the global store, so that a limit holds across data centers.
fn on_valkey(config: &Config) -> Result<Option<Counts>, OpenError> {
    let StoreConfig::Valkey(valkey) = &config.store else {
        return Ok(None);
    };
    let counts =
        ValkeyCounts::new(&valkey.global, &valkey.prefix).map_err(OpenError::setup("global"))?;
    Ok(Some(Arc::new(counts)))
}

/// Opens leases next to the records of rooms: in the global store, or in the data folder.
fn leased(config: &Config, dir: &DataDir, clock: &Arc<dyn Clock>) -> Result<Counts, OpenError> {
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
            let leases = ValkeyLeases::new(&valkey.global, &valkey.prefix);
            Arc::new(leases.map_err(OpenError::setup("global"))?)
        }
    };
    Ok(Arc::new(LeasedCounts::new(records, Settings::default())?))
}

/// Opens the lease file in the background, as soon as a predecessor releases it.
async fn open_ahead(leases: Arc<LeaseFile>) {
    if let Err(error) = leases.open().await {
        let cause = chain(&error);
        tracing::info!(cause, "lease file not open yet");
    }
}

fn on_memcached(config: &MemcachedConfig, clock: &Arc<dyn Clock>) -> Counts {
    let counts = MemcachedCounts::new(&config.servers, &config.prefix, micros(clock));
    Arc::new(counts)
}

fn on_gossip(config: &GossipConfig, clock: &Arc<dyn Clock>) -> Result<Counts, OpenError> {
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

/// Returns room time, which follows the wall clock without jumps.
fn micros(clock: &Arc<dyn Clock>) -> Now {
    let clock = Arc::clone(clock);
    Arc::new(move || TimestampUs(clock.now().0.saturating_mul(1_000)))
}

/// Opens counts in the local store, for callers that cannot wait for the global one. Returns `None`
/// if there is no such store.
///
/// # Errors
///
/// [`OpenError::Setup`].
pub fn local_counts(config: &Config) -> Result<Option<Arc<dyn SharedCounts>>, OpenError> {
    let StoreConfig::Valkey(valkey) = &config.store else {
        return Ok(None);
    };
    let local =
        ValkeyCounts::new(&valkey.local, &valkey.prefix).map_err(OpenError::setup("local"))?;
    Ok(Some(Arc::new(local)))
}
