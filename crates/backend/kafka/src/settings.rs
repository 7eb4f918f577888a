//! Where is the log, and how is it spoken to?

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use rdkafka::config::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;

use crate::stats::NodeId;

/// Where calls are counted, and how nodes get there. The same on all nodes.
#[derive(Clone)]
pub struct KafkaSettings {
    /// Some of the brokers, each as `host:port`.
    pub brokers: Vec<String>,
    /// What the names of topics and groups begin with.
    pub prefix: String,
    /// Further properties of librdkafka, as it calls them. They may be secret.
    pub properties: BTreeMap<String, String>,
    /// From when on a node that starts reads totals.
    pub look_back: LookBack,
}

/// From when on a node that starts reads totals: what was counted before does not matter any more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LookBack {
    /// By the time that brokers write beside them. At least as long as what a limit counts matters:
    /// two windows. As soon as a client is charged for whom that is longer, everything is read.
    For(Duration),
    /// All that the topic still has.
    Everything,
}

/// Why counts cannot be kept so, whatever the brokers say.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KafkaSetupError {
    /// There is no way to anything.
    #[error("no broker is named")]
    NoBroker,
    /// It is set here already, because counts would be wrong otherwise.
    #[error("the property {property:?} cannot be chosen")]
    Reserved {
        /// Its name.
        property: String,
    },
    /// The library does not know it: a slip of the pen, mostly.
    #[error("librdkafka has no property {property:?}")]
    Unknown {
        /// Its name.
        property: String,
    },
    /// It has no such value, or what it needs was not built in.
    #[error(
        "librdkafka does not take this value of {property:?}, or was built without what it needs"
    )]
    Value {
        /// Its name. Neither its value nor what the library said is kept: that shows the value,
        /// which may be secret.
        property: String,
    },
    /// They do not go together.
    #[error("librdkafka does not take these properties")]
    Properties {
        /// What it said.
        source: Box<KafkaError>,
    },
    /// The system gives no thread.
    #[error("cannot start a thread")]
    Thread {
        /// Why not.
        source: std::io::Error,
    },
}

/// Properties that are set here. What is counted depends on them, or it is said elsewhere.
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
    /// What the library said, without values of properties.
    pub(crate) fn refused(error: KafkaError) -> Self {
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
        // The library is spoken to in C, and what is said of a zero byte in a value shows that
        // value.
        let has_zero = |(_, value): &(&String, &String)| value.contains('\0');
        match self.properties.iter().find(has_zero) {
            Some((name, _)) => Err(KafkaSetupError::Value {
                property: name.clone(),
            }),
            None => Ok(()),
        }
    }

    pub(crate) fn place(&self) -> String {
        format!("kafka at {}", self.brokers.join(", "))
    }

    pub(crate) fn calls_topic(&self) -> String {
        format!("{}-calls", self.prefix)
    }

    pub(crate) fn totals_topic(&self) -> String {
        format!("{}-totals", self.prefix)
    }

    /// What tells. What is older than some seconds is told again anyway, so a queue is not kept for
    /// longer.
    pub(crate) fn producer(&self) -> ClientConfig {
        let mut config = self.base(&[
            ("linger.ms", "5"),
            ("queue.buffering.max.kbytes", "65536"),
            ("topic.metadata.refresh.interval.ms", "10000"),
        ]);
        config.set("message.timeout.ms", "5000");
        config
    }

    /// What aggregates: one of a group that shares the partitions of calls. Where nobody has begun,
    /// from the beginning.
    pub(crate) fn aggregator(&self) -> ClientConfig {
        let mut config = self.consumer();
        config
            .set("group.id", format!("{}-aggregate", self.prefix))
            .set("auto.offset.reset", "earliest")
            .set("enable.auto.commit", "true");
        config
    }

    /// What reads totals: all partitions, as a group that nobody else is in and that keeps nothing.
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

    /// What may be chosen otherwise, and what was.
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

/// Without the values of properties.
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
    fn what_counts_depend_on_cannot_be_chosen_and_all_else_can() {
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
        let nobody = KafkaSettings {
            brokers: Vec::new(),
            ..chosen
        };
        assert!(matches!(nobody.check(), Err(KafkaSetupError::NoBroker)));
    }

    #[test]
    fn secrets_are_not_shown() {
        let text = format!("{:?}", settings(&[("sasl.password", "swordfish")]));
        assert!(text.contains("sasl.password"), "{text}");
        assert!(!text.contains("swordfish"), "{text}");
    }
}
