//! Counts over Kafka, where they were built in (cargo feature `kafka`).

use std::sync::Arc;

use anteroom_config::Config;
use anteroom_limit_store::clock::Now;
use anteroom_limit_store::shared::SharedCounts;

use crate::open_error::OpenError;

/// Starts to connect, if the configuration has brokers. Brokers that are away are no error.
#[cfg(feature = "kafka")]
pub(crate) fn open(config: &Config, now: Now) -> Result<Option<Arc<dyn SharedCounts>>, OpenError> {
    let Some(kafka) = &config.limit_stores.kafka else {
        return Ok(None);
    };
    let settings = anteroom_kafka::KafkaSettings {
        brokers: kafka.brokers.iter().map(ToString::to_string).collect(),
        prefix: kafka.prefix.clone(),
        properties: kafka.properties.clone(),
        look_back: anteroom_kafka::LookBack::For(look_back(config)),
    };
    let counts = anteroom_kafka::KafkaCounts::open(settings, now)?;
    Ok(Some(Arc::new(counts)))
}

/// For how long it may matter what a client of any limit did, and as much as clocks of nodes and
/// brokers may be apart. For clients and limits that get a longer window later, all is read then;
/// so this is no longer than it must be, for a node counts alone until it has read that.
#[cfg(feature = "kafka")]
fn look_back(config: &Config) -> std::time::Duration {
    use std::time::Duration;
    const APART: Duration = Duration::from_secs(300);
    let limits = config.limits.iter();
    let policies = limits.flat_map(|limit| limit.overrides.values().chain([&limit.policy]));
    let counters = policies.filter_map(anteroom_limit::policy::Policy::counters);
    let longest = counters.map(|counters| Duration::from_micros(counters.matters_for().0));
    longest.fold(Duration::ZERO, Duration::max) + APART
}

/// Refuses a configuration that has brokers.
#[cfg(not(feature = "kafka"))]
pub(crate) fn open(config: &Config, _: Now) -> Result<Option<Arc<dyn SharedCounts>>, OpenError> {
    match config.limit_stores.kafka {
        Some(_) => Err(OpenError::NoKafka),
        None => Ok(None),
    }
}
