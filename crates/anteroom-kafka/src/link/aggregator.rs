//! Reads what nodes tell, as far as it is this node's turn, and publishes totals.
//!
//! How far a partition was read is kept by the brokers, and only after totals of it were handed over. Who takes over
//! reads the rest, and some of it twice, which changes nothing; and what came before stands in totals, which it has read
//! like every node.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::Message as _;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _};

use super::{LOOK_EVERY, Link, TELL_EVERY};
use crate::contact::{self, Contact};
use crate::node::Node;

/// Until the link is stopped; then it leaves the group, so that others take over at once.
pub(super) fn run(link: &Link, consumer: &BaseConsumer<Contact>) {
    let calls = link.settings.calls_topic();
    let totals = link.settings.totals_topic();
    if let Err(error) = consumer.subscribe(&[&calls]) {
        tracing::error!(%error, topic = calls, "cannot subscribe");
        return;
    }
    let mut read = BTreeMap::new();
    let mut next_at = Duration::ZERO;
    while !link.is_stopped() {
        match consumer.poll(LOOK_EVERY) {
            Some(Ok(message)) => {
                let now = link.now();
                link.node()
                    .hear_call(message.payload().unwrap_or_default(), now);
                read.insert(message.partition(), message.offset());
            }
            Some(Err(error)) => contact::note(&error, "reading calls"),
            None => {}
        }
        let at = link.at();
        if at >= next_at {
            next_at = at + TELL_EVERY;
            publish(link, consumer, (&calls, &totals), &mut read);
        }
    }
    publish(link, consumer, (&calls, &totals), &mut read);
    if let Err(error) = consumer.commit_consumer_state(CommitMode::Sync) {
        tracing::debug!(%error, "how far calls were read is not kept");
    }
}

fn publish(
    link: &Link,
    consumer: &BaseConsumer<Contact>,
    (calls, totals): (&str, &str),
    read: &mut BTreeMap<i32, i64>,
) {
    if !link.send_all(totals, Node::totals_to_publish, Node::not_published) {
        return;
    }
    for (partition, offset) in std::mem::take(read) {
        // Refused where the partition is another node's by now, which reads it again.
        if let Err(error) = consumer.store_offset(calls, partition, offset) {
            tracing::debug!(%error, partition, "a partition is another node's by now");
        }
    }
}
