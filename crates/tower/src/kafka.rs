//! Counts over Kafka, in builds with the cargo feature `kafka`.

use std::sync::Arc;

use anteroom_config::Config;
use anteroom_limit_store::clock::Now;
use anteroom_limit_store::shared::SharedCounts;

use crate::open_error::OpenError;

/// Starts to connect if the configuration has brokers. Unavailable brokers are no error.
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

/// Returns the longest time for which a request matters to any limit, plus a margin for clocks.
///
/// It is no longer than necessary, because a node counts alone until it has read that much. If a
/// reload brings a longer window, the node reads everything then.
#[cfg(feature = "kafka")]
fn look_back(config: &Config) -> std::time::Duration {
    use std::time::Duration;
    // Largest difference between the clocks of nodes and brokers.
    const CLOCK_MARGIN: Duration = Duration::from_secs(300);
    let limits = config.limits.iter();
    let policies = limits.flat_map(|limit| limit.overrides.values().chain([&limit.policy]));
    let counters = policies.filter_map(anteroom_limit::policy::Policy::counters);
    let longest = counters.map(|counters| Duration::from_micros(counters.valid_for().0));
    longest.fold(Duration::ZERO, Duration::max) + CLOCK_MARGIN
}

/// Rejects a configuration that has brokers.
#[cfg(not(feature = "kafka"))]
pub(crate) fn open(config: &Config, _: Now) -> Result<Option<Arc<dyn SharedCounts>>, OpenError> {
    match config.limit_stores.kafka {
        Some(_) => Err(OpenError::NoKafka),
        None => Ok(None),
    }
}
