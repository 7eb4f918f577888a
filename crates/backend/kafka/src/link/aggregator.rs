//! Reads this node's partitions of the reports, and publishes totals.
//!
//! The brokers keep the offset of a partition, and only [after they have the totals up to
//! it](super::rounds). A successor reads the rest, and some of it twice, which changes nothing.
//! Earlier reports are in totals, which it has read like every node.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::Message as _;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _};
use rdkafka::producer::Producer as _;

use super::outgoing::TOTALS;
use super::rounds::{Offsets, Round, Rounds};
use super::{FLUSH_TIMEOUT, Link, POLL_TIMEOUT, REPORT_PERIOD};
use crate::contact::{self, Contact};

/// Reader of reports and publisher of totals.
struct Reader<'a> {
    link: &'a Link,
    consumer: &'a BaseConsumer<Contact>,
    requests: String,
    totals: String,
    /// Offsets whose totals were not sent yet.
    read: Offsets,
    rounds: Rounds,
}

/// Runs until the link is stopped; then it leaves the group, so that others take over at once.
pub(super) fn run(link: &Link, consumer: &BaseConsumer<Contact>) {
    let mut reader = Reader {
        link,
        consumer,
        requests: link.settings.calls_topic(),
        totals: link.settings.totals_topic(),
        read: Offsets::new(),
        rounds: Rounds::default(),
    };
    if let Err(error) = consumer.subscribe(&[&reader.requests]) {
        tracing::error!(%error, topic = reader.requests, "cannot subscribe");
        return;
    }
    let mut next_at = Duration::ZERO;
    while !link.is_stopped() {
        reader.read_next();
        let at = link.at();
        if at >= next_at {
            next_at = at + REPORT_PERIOD;
            reader.publish();
        }
    }
    reader.publish();
    if let Err(error) = link.producer.flush(FLUSH_TIMEOUT) {
        contact::note(&error, "the last totals were not published");
    }
    reader.keep_offsets();
    if let Err(error) = consumer.commit_consumer_state(CommitMode::Sync) {
        tracing::debug!(%error, "cannot commit offsets");
    }
}

impl Reader<'_> {
    fn read_next(&mut self) {
        match self.consumer.poll(POLL_TIMEOUT) {
            Some(Ok(message)) => {
                let now = self.link.now();
                let payload = message.payload().unwrap_or_default();
                self.link.node().receive_report(payload, now);
                self.read.insert(message.partition(), message.offset());
            }
            Some(Err(error)) => contact::note(&error, "reading reports"),
            None => {}
        }
    }

    fn publish(&mut self) {
        self.keep_offsets();
        let round = Arc::new(Round::default());
        let is_all = self.link.send_all(&self.totals, &TOTALS, &round);
        // If messages are left, they and the offsets belong to the next round.
        let read = match is_all {
            true => std::mem::take(&mut self.read),
            false => Offsets::new(),
        };
        self.rounds.begin(round, read);
    }

    fn keep_offsets(&mut self) {
        let again = |id| self.link.node().publish_again(id);
        for (partition, offset) in self.rounds.end(&mut self.read, again) {
            // Fails if another node has the partition by now; that node reads the messages again.
            if let Err(error) = self
                .consumer
                .store_offset(&self.requests, partition, offset)
            {
                tracing::debug!(%error, partition, "another node has the partition by now");
            }
        }
    }
}
