//! Counts over Kafka, where they were built in (cargo feature `kafka`).

use std::sync::Arc;

use anteroom_config::Config;
use anteroom_limit_store::shared::SharedCounts;
use anteroom_store::Clock;

use crate::open::OpenError;

/// The log of a configuration that has one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    #[cfg(feature = "kafka")]
    counts: Option<Arc<anteroom_kafka::KafkaCounts>>,
}

#[cfg(feature = "kafka")]
impl Log {
    /// Starts to connect; brokers that are away are no error.
    pub(crate) fn open(config: &Config, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let Some(kafka) = &config.kafka else {
            return Ok(Self::default());
        };
        let settings = anteroom_kafka::KafkaSettings {
            brokers: kafka.brokers.iter().map(ToString::to_string).collect(),
            prefix: kafka.prefix.clone(),
            properties: kafka.properties.clone(),
            look_back: anteroom_kafka::LookBack::For(look_back(config)),
        };
        let now = move || anteroom_limit::time::Micros(clock.now().0.saturating_mul(1_000));
        let counts = anteroom_kafka::KafkaCounts::open(settings, Arc::new(now))?;
        Ok(Self {
            counts: Some(Arc::new(counts)),
        })
    }

    pub(crate) fn counts(&self) -> Option<Arc<dyn SharedCounts>> {
        self.counts.clone().map(|counts| counts as _)
    }

    /// Tells what was counted last, which takes up to some seconds.
    pub(crate) async fn close(&self) {
        if let Some(counts) = self.counts.clone() {
            let closing = tokio::task::spawn_blocking(move || counts.close());
            if closing.await.is_err() {
                tracing::error!("counts over kafka were not closed");
            }
        }
    }
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

#[cfg(not(feature = "kafka"))]
impl Log {
    /// Refuses a configuration that has one.
    pub(crate) fn open(config: &Config, _: Arc<dyn Clock>) -> Result<Self, OpenError> {
        match config.kafka {
            Some(_) => Err(OpenError::NoKafka),
            None => Ok(Self::default()),
        }
    }

    pub(crate) fn counts(&self) -> Option<Arc<dyn SharedCounts>> {
        None
    }

    pub(crate) async fn close(&self) {}
}
