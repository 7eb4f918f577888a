//! Settings that cannot be right.

use std::error::Error as _;
use std::sync::Arc;

use anteroom_kafka::{KafkaCounts, KafkaSettings, KafkaSetupError};

use crate::support::{Cluster, START};

fn refusal(name: &str, value: &str) -> String {
    let settings = Cluster::start().settings();
    let property = (name.to_owned(), value.to_owned());
    let settings = KafkaSettings {
        properties: [property].into(),
        ..settings
    };
    let error = KafkaCounts::open(settings, Arc::new(|| START)).unwrap_err();
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[tokio::test]
async fn properties_that_are_wrong_or_need_what_is_not_built_in_are_refused() {
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

#[test]
fn somebody_must_be_named() {
    let settings = KafkaSettings {
        brokers: Vec::new(),
        ..Cluster::start().settings()
    };
    let error = KafkaCounts::open(settings, Arc::new(|| START)).unwrap_err();
    assert!(matches!(error, KafkaSetupError::NoBroker), "{error:?}");
}
