//! Callbacks of the client library: logs, errors and delivery results.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rdkafka::Message as _;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::KafkaError;
use rdkafka::message::DeliveryResult;
use rdkafka::producer::ProducerContext;
use rdkafka::types::RDKafkaErrorCode;

use crate::link::rounds::Round;
use crate::message;

/// Callbacks that log errors and count undelivered messages.
#[derive(Debug, Default)]
pub(crate) struct Contact {
    undelivered: AtomicU64,
}

impl Contact {
    /// Returns the number of messages known to be undelivered. Their contents are sent again.
    pub(crate) fn undelivered(&self) -> u64 {
        self.undelivered.load(Relaxed)
    }
}

impl ClientContext for Contact {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, text: &str) {
        match level {
            RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical => {
                tracing::error!(facility, "librdkafka: {text}");
            }
            // Each lost connection logs one; the caller of the store logs once that it is
            // unavailable.
            _ => tracing::debug!(facility, "librdkafka: {text}"),
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        note(&error, reason);
    }
}

impl ConsumerContext for Contact {}

impl ProducerContext for Contact {
    type DeliveryOpaque = Arc<Round>;

    fn delivery(&self, result: &DeliveryResult<'_>, round: Arc<Round>) {
        if let Err((error, message)) = result {
            let before = self.undelivered.fetch_add(1, Relaxed);
            // Messages are resent ten times a second; permanent rejections must not fill the log.
            if before.saturating_add(1).is_power_of_two() {
                note(error, "a message was not delivered");
            }
            if let Some(report) = message.payload().and_then(message::decode) {
                round.lose(report.id);
            }
        }
    }
}

/// Logs an error: as a warning if an operator has to act, at debug level if it comes and goes with
/// a connection.
pub(crate) fn note(error: &KafkaError, reason: &str) {
    use RDKafkaErrorCode::{
        AllBrokersDown, BrokerTransportFailure, MessageTimedOut, OperationTimedOut, Resolve,
        UnknownTopicOrPartition,
    };
    match error.rdkafka_error_code() {
        Some(
            AllBrokersDown
            | BrokerTransportFailure
            | MessageTimedOut
            | OperationTimedOut
            | Resolve
            | UnknownTopicOrPartition,
        ) => tracing::debug!(%error, reason, "kafka"),
        _ => tracing::warn!(%error, reason, "kafka"),
    }
}
