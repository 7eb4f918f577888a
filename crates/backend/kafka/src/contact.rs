//! What does the client library say of itself?

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

/// Hears of errors, and counts what was not delivered.
#[derive(Debug, Default)]
pub(crate) struct Contact {
    undelivered: AtomicU64,
}

impl Contact {
    /// Messages that did not arrive, as far as is known. What they said is told again.
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
            // Each lost connection is one of them; that a store is away is said once, elsewhere.
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
            // It is sent again ten times a second; what brokers refuse for good must not fill the
            // log.
            if before.saturating_add(1).is_power_of_two() {
                note(error, "a message was not delivered");
            }
            if let Some(told) = message.payload().and_then(message::decode) {
                round.lose(told.id);
            }
        }
    }
}

/// Says what somebody has to mend; what comes and goes with a connection is for who looks closely.
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
