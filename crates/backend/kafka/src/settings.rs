//! Settings of the Kafka client.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use rdkafka::config::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;

use crate::stats::NodeId;

/// Settings of counts over Kafka; the same on all nodes.
#[derive(Clone)]
pub struct KafkaSettings {
    /// Some of the brokers, each as `host:port`.
    pub brokers: Vec<String>,
    /// Prefix of the names of topics and groups.
    pub prefix: String,
    /// Further properties of librdkafka by its names. Values may be secret.
    pub properties: BTreeMap<String, String>,
    /// Age of the totals that a starting node reads.
    pub look_back: LookBack,
}

/// Age of the totals that a starting node reads; older requests do not matter any more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LookBack {
    /// Reads totals of this age, by the brokers' time. At least two windows, the time for which a
    /// request matters. As soon as a client has a longer window, everything is read.
    For(Duration),
    /// Reads all that the topic still has.
    Everything,
}

/// Error of invalid settings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KafkaSetupError {
    /// The list of brokers is empty.
    #[error("no broker configured")]
    NoBroker,
    /// The property is reserved, because counts would be wrong otherwise.
    #[error("the property {property:?} is set by Anteroom and cannot be changed")]
    Reserved {
        /// Name of the property.
        property: String,
    },
    /// The library does not know the property: mostly a typing error.
    #[error("librdkafka has no property {property:?}")]
    Unknown {
        /// Name of the property.
        property: String,
    },
    /// The value is invalid, or needs a feature that was not built in.
    #[error(
        "librdkafka rejects this value of {property:?}, or was built without the feature it needs"
    )]
    Value {
        /// Name of the property. Its value and the library's message, which shows the value, are
        /// not kept: they may be secret.
        property: String,
    },
    /// The properties conflict.
    #[error("librdkafka rejects these properties")]
    Properties {
        /// Error of the library.
        source: Box<KafkaError>,
    },
    /// The system cannot start a thread.
    #[error("cannot start a thread")]
    Thread {
        /// Underlying error.
        source: std::io::Error,
    },
}

/// Properties that are set here: the counts depend on them, or another setting has the value.
const RESERVED: [&str; 14] = [
    "auto.commit.enable",
    "auto.offset.reset",
    "bootstrap.servers",
    "client.id",
    "delivery.report.only.error",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.partition.eof",
    "group.id",
    "group.instance.id",
    "message.timeout.ms",
    "metadata.broker.list",
    "partitioner",
    "transactional.id",
];

impl KafkaSetupError {
    /// Converts an error of the library, without values of properties.
    pub(crate) fn rejected(error: KafkaError) -> Self {
        match error {
            KafkaError::ClientConfig(RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN, _, property, _) => {
                Self::Unknown { property }
            }
            KafkaError::ClientConfig(_, _, property, _) => Self::Value { property },
            error => Self::Properties {
                source: Box::new(error),
            },
        }
    }
}

impl KafkaSettings {
    pub(crate) fn check(&self) -> Result<(), KafkaSetupError> {
        if self.brokers.is_empty() {
            return Err(KafkaSetupError::NoBroker);
        }
        let reserved = |name: &&String| RESERVED.contains(&name.as_str());
        if let Some(name) = self.properties.keys().find(reserved) {
            let property = name.clone();
            return Err(KafkaSetupError::Reserved { property });
        }
        // The library has a C interface, and its error about a zero byte in a value shows that
        // value.
        let has_zero = |(_, value): &(&String, &String)| value.contains('\0');
        match self.properties.iter().find(has_zero) {
            Some((name, _)) => Err(KafkaSetupError::Value {
                property: name.clone(),
            }),
            None => Ok(()),
        }
    }

    pub(crate) fn store_name(&self) -> String {
        format!("kafka at {}", self.brokers.join(", "))
    }

    pub(crate) fn calls_topic(&self) -> String {
        format!("{}-calls", self.prefix)
    }

    pub(crate) fn totals_topic(&self) -> String {
        format!("{}-totals", self.prefix)
    }

    /// Returns the settings of the producer. Reports are repeated after some seconds anyway, so
    /// messages are not queued for longer.
    pub(crate) fn producer(&self) -> ClientConfig {
        let mut config = self.base(&[
            ("linger.ms", "5"),
            ("queue.buffering.max.kbytes", "65536"),
            ("topic.metadata.refresh.interval.ms", "10000"),
        ]);
        config.set("message.timeout.ms", "5000");
        config
    }

    /// Returns the settings of the aggregator: a member of the group that shares the partitions of
    /// calls. A new group reads from the beginning.
    pub(crate) fn aggregator(&self) -> ClientConfig {
        let mut config = self.consumer();
        config
            .set("group.id", format!("{}-aggregate", self.prefix))
            .set("auto.offset.reset", "earliest")
            .set("enable.auto.commit", "true");
        config
    }

    /// Returns the settings of the reader of totals: all partitions, as the only member of its
    /// group, without stored offsets.
    pub(crate) fn listener(&self, node: NodeId) -> ClientConfig {
        let mut config = self.consumer();
        config
            .set(
                "group.id",
                format!("{}-totals-{:016x}", self.prefix, node.0),
            )
            .set("auto.offset.reset", "earliest")
            .set("enable.auto.commit", "false");
        config
    }

    fn consumer(&self) -> ClientConfig {
        let mut config = self.base(&[
            ("allow.auto.create.topics", "true"),
            ("auto.commit.interval.ms", "1000"),
            ("fetch.wait.max.ms", "100"),
            ("heartbeat.interval.ms", "1000"),
            ("queued.max.messages.kbytes", "16384"),
            ("session.timeout.ms", "6000"),
            ("topic.metadata.refresh.interval.ms", "10000"),
        ]);
        config.set("enable.auto.offset.store", "false");
        config
    }

    /// Returns the defaults, overridden by the configured properties.
    fn base(&self, defaults: &[(&str, &str)]) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("reconnect.backoff.max.ms", "1000");
        for (name, value) in defaults {
            config.set(*name, *value);
        }
        for (name, value) in &self.properties {
            config.set(name, value);
        }
        config
            .set("bootstrap.servers", self.brokers.join(","))
            .set("client.id", "anteroom");
        config
    }
}

/// Omits the values of properties.
impl fmt::Debug for KafkaSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaSettings")
            .field("brokers", &self.brokers)
            .field("prefix", &self.prefix)
            .field("properties", &self.properties.keys())
            .field("look_back", &self.look_back)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(properties: &[(&str, &str)]) -> KafkaSettings {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        KafkaSettings {
            brokers: vec!["a:9092".to_owned(), "b:9092".to_owned()],
            prefix: "p".to_owned(),
            properties: properties.iter().map(owned).collect(),
            look_back: LookBack::Everything,
        }
    }

    #[test]
    fn reserved_properties_are_rejected_and_all_others_accepted() {
        for name in RESERVED {
            let error = settings(&[(name, "x")]).check().unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
        }
        let chosen = settings(&[("session.timeout.ms", "9000"), ("acks", "1")]);
        assert!(chosen.check().is_ok());
        let aggregator = chosen.aggregator();
        assert_eq!(aggregator.get("session.timeout.ms"), Some("9000"));
        assert_eq!(aggregator.get("bootstrap.servers"), Some("a:9092,b:9092"));
        assert_eq!(aggregator.get("group.id"), Some("p-aggregate"));
        let own = chosen.listener(NodeId(7));
        assert_eq!(own.get("group.id"), Some("p-totals-0000000000000007"));
        let empty = KafkaSettings {
            brokers: Vec::new(),
            ..chosen
        };
        assert!(matches!(empty.check(), Err(KafkaSetupError::NoBroker)));
    }

    #[test]
    fn secrets_are_not_shown() {
        let text = format!("{:?}", settings(&[("sasl.password", "swordfish")]));
        assert!(text.contains("sasl.password"), "{text}");
        assert!(!text.contains("swordfish"), "{text}");
    }
}
