//! Settings that cannot be right.

use std::error::Error as _;
use std::sync::Arc;

use anteroom_kafka::{KafkaCounts, KafkaSettings, KafkaSetupError};

use crate::kafka::support::{Cluster, START};

/// All that is said of it, to people and to those who look closely.
fn refusal(name: &str, value: &str) -> String {
    let settings = Cluster::start().settings();
    let property = (name.to_owned(), value.to_owned());
    let settings = KafkaSettings {
        properties: [property].into(),
        ..settings
    };
    let error = KafkaCounts::open(settings, Arc::new(|| START)).unwrap_err();
    let mut text = format!("{error:?}; {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[tokio::test]
async fn wrong_properties_and_missing_features_are_rejected() {
    for (name, value, expected) in [
        ("fetch.wait.ms", "7", "fetch.wait.ms"),
        ("session.timeout.ms", "soon", "session.timeout.ms"),
        ("security.protocol", "ssl", "security.protocol"),
        ("ssl.ca.location", "ca.pem", "ssl.ca.location"),
        ("group.id", "mine", "\"group.id\" cannot be chosen"),
    ] {
        let text = refusal(name, value);
        assert!(text.contains(expected), "{name}: {text}");
    }
}

/// Whoever misspells the name of a secret finds that name in the log, not the secret.
#[tokio::test]
async fn no_value_of_a_property_is_told() {
    for name in [
        "sasl.passwrod",
        "session.timeout.ms",
        "security.protocol",
        "ssl.key.password",
        "debug",
    ] {
        for value in ["swordfish", "sword\0fish"] {
            let text = refusal(name, value);
            assert!(text.contains(name) && !text.contains("fish"), "{text}");
            // As bytes, too.
            assert!(!text.contains("102, 105, 115, 104"), "{text}");
        }
    }
}

#[test]
fn somebody_must_be_named() {
    let settings = KafkaSettings {
        brokers: Vec::new(),
        ..Cluster::start().settings()
    };
    let error = KafkaCounts::open(settings, Arc::new(|| START)).unwrap_err();
    assert!(matches!(error, KafkaSetupError::NoBroker), "{error:?}");
}
