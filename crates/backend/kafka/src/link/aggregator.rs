//! Reads what nodes tell, as far as it is this node's turn, and publishes totals.
//!
//! How far a partition was read is kept by the brokers, and only [after they have totals of
//! it](super::rounds). Who takes over reads the rest, and some of it twice, which changes nothing;
//! and what came before stands in totals, which it has read like every node.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::Message as _;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _};
use rdkafka::producer::Producer as _;

use super::outgoing::TOTALS;
use super::rounds::{Offsets, Round, Rounds};
use super::{LAST_WORDS, LOOK_EVERY, Link, TELL_EVERY};
use crate::contact::{self, Contact};

/// What is read, and what becomes of it.
struct Reader<'a> {
    link: &'a Link,
    consumer: &'a BaseConsumer<Contact>,
    calls: String,
    totals: String,
    /// Of which no totals were sent yet.
    read: Offsets,
    rounds: Rounds,
}

/// Until the link is stopped; then it leaves the group, so that others take over at once.
pub(super) fn run(link: &Link, consumer: &BaseConsumer<Contact>) {
    let mut reader = Reader {
        link,
        consumer,
        calls: link.settings.calls_topic(),
        totals: link.settings.totals_topic(),
        read: Offsets::new(),
        rounds: Rounds::default(),
    };
    if let Err(error) = consumer.subscribe(&[&reader.calls]) {
        tracing::error!(%error, topic = reader.calls, "cannot subscribe");
        return;
    }
    let mut next_at = Duration::ZERO;
    while !link.is_stopped() {
        reader.read_next();
        let at = link.at();
        if at >= next_at {
            next_at = at + TELL_EVERY;
            reader.publish();
        }
    }
    reader.publish();
    if let Err(error) = link.producer.flush(LAST_WORDS) {
        contact::note(&error, "the last totals were not published");
    }
    reader.keep_offsets();
    if let Err(error) = consumer.commit_consumer_state(CommitMode::Sync) {
        tracing::debug!(%error, "how far calls were read is not kept");
    }
}

impl Reader<'_> {
    fn read_next(&mut self) {
        match self.consumer.poll(LOOK_EVERY) {
            Some(Ok(message)) => {
                let now = self.link.now();
                let payload = message.payload().unwrap_or_default();
                self.link.node().hear_call(payload, now);
                self.read.insert(message.partition(), message.offset());
            }
            Some(Err(error)) => contact::note(&error, "reading calls"),
            None => {}
        }
    }

    fn publish(&mut self) {
        self.keep_offsets();
        let round = Arc::new(Round::default());
        let is_all = self.link.send_all(&self.totals, &TOTALS, &round);
        // If something is left, that and what was read belong to the next round.
        let read = match is_all {
            true => std::mem::take(&mut self.read),
            false => Offsets::new(),
        };
        self.rounds.begin(round, read);
    }

    fn keep_offsets(&mut self) {
        let again = |id| self.link.node().publish_again(id);
        for (partition, offset) in self.rounds.end(&mut self.read, again) {
            // Refused where the partition is another node's by now, which reads it again.
            if let Err(error) = self.consumer.store_offset(&self.calls, partition, offset) {
                tracing::debug!(%error, partition, "a partition is another node's by now");
            }
        }
    }
}
