//! Invalid settings.

use std::error::Error as _;
use std::sync::Arc;

use anteroom_kafka::{KafkaCounts, KafkaSettings, KafkaSetupError};

use crate::kafka::support::{Cluster, START};

/// Returns the error as text, with its debug output and its sources.
fn error_text(name: &str, value: &str) -> String {
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
        (
            "group.id",
            "mine",
            "\"group.id\" is set by Anteroom and cannot be changed",
        ),
    ] {
        let text = error_text(name, value);
        assert!(text.contains(expected), "{name}: {text}");
    }
}

/// A misspelled name of a secret appears in the log, its value does not.
#[tokio::test]
async fn no_value_of_a_property_is_shown() {
    for name in [
        "sasl.passwrod",
        "session.timeout.ms",
        "security.protocol",
        "ssl.key.password",
        "debug",
    ] {
        for value in ["swordfish", "sword\0fish"] {
            let text = error_text(name, value);
            assert!(text.contains(name) && !text.contains("fish"), "{text}");
            // Nor as bytes.
            assert!(!text.contains("102, 105, 115, 104"), "{text}");
        }
    }
}

#[test]
fn at_least_one_broker_is_required() {
    let settings = KafkaSettings {
        brokers: Vec::new(),
        ..Cluster::start().settings()
    };
    let error = KafkaCounts::open(settings, Arc::new(|| START)).unwrap_err();
    assert!(matches!(error, KafkaSetupError::NoBroker), "{error:?}");
}
