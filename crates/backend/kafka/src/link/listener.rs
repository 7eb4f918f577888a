//! Reads all totals that still matter.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::Message as _;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaResult;
use rdkafka::message::BorrowedMessage;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::{Link, POLL_TIMEOUT};
use crate::contact::{self, Contact};
use crate::partitions::Partitions;
use crate::settings::LookBack;

/// Timeout of metadata requests to brokers. Nothing is read meanwhile.
const METADATA_TIMEOUT: Duration = Duration::from_secs(1);
/// Retry period while the partitions are not known.
const RETRY_PERIOD: Duration = Duration::from_millis(500);
/// Retry period while some partitions are not read because their broker does not respond: each
/// attempt may take all of [`METADATA_TIMEOUT`].
const RETRY_MISSING_PERIOD: Duration = Duration::from_secs(3);
/// Period of the check for new partitions. The first node that finds one sends reports there that
/// others do not read before their own check.
const CHECK_PERIOD: Duration = Duration::from_secs(10);

/// Reader of totals.
struct Reader<'a> {
    link: &'a Link,
    consumer: &'a BaseConsumer<Contact>,
    topic: String,
    look_back: LookBack,
    /// Backlog of each partition when this node began to read it.
    backlog: BTreeMap<i32, Backlog>,
    /// Partition to start the next attempt with, so that one that does not respond does not delay
    /// others.
    next: i32,
    is_backlog_read: bool,
}

/// Offsets of a backlog: the next to read, and its end.
#[derive(Clone, Copy, Debug)]
struct Backlog {
    next: i64,
    end: i64,
}

impl Backlog {
    /// Records that an offset was read, and all before it were read or deleted. Returns how many of
    /// the backlog these are.
    fn read(&mut self, offset: i64) -> u64 {
        let next = self.end.min(offset.saturating_add(1)).max(self.next);
        let read = next - self.next;
        self.next = next;
        u64::try_from(read).unwrap_or(0)
    }

    fn left(self) -> u64 {
        u64::try_from(self.end - self.next).unwrap_or(0)
    }
}

/// Runs until the link is stopped.
pub(super) fn run(link: &Link, consumer: &BaseConsumer<Contact>) {
    let mut reader = Reader {
        link,
        consumer,
        topic: link.settings.totals_topic(),
        look_back: link.settings.look_back,
        backlog: BTreeMap::new(),
        next: 0,
        is_backlog_read: false,
    };
    let mut look_at = Duration::ZERO;
    while !link.is_stopped() {
        if link.needs_all() && reader.look_back != LookBack::Everything {
            reader.restart();
            look_at = Duration::ZERO;
        }
        if link.at() >= look_at {
            let pause = match reader.update_partitions() {
                Ok(()) if link.node().partitions().is_some() => CHECK_PERIOD,
                Err(_) if !reader.backlog.is_empty() => RETRY_MISSING_PERIOD,
                _ => RETRY_PERIOD,
            };
            look_at = link.at() + pause;
        }
        match consumer.poll(POLL_TIMEOUT) {
            Some(Ok(message)) => reader.receive(&message),
            Some(Err(error)) => contact::note(&error, "reading totals"),
            None => {}
        }
    }
}

impl Reader<'_> {
    fn receive(&mut self, message: &BorrowedMessage<'_>) {
        let now = self.link.now();
        let backlog = self.backlog.get_mut(&message.partition());
        let read = backlog.map_or(0, |backlog| backlog.read(message.offset()));
        let mut node = self.link.node();
        node.receive_total(message.payload().unwrap_or_default(), now);
        node.backlog_read(read);
        drop(node);
        if read > 0 && self.left() == 0 {
            self.log_backlog();
        }
    }

    fn left(&self) -> u64 {
        self.backlog.values().map(|backlog| backlog.left()).sum()
    }

    /// Begins to read new partitions, and divides clients among all.
    fn update_partitions(&mut self) -> KafkaResult<()> {
        let found = self.find_partitions();
        if let Err(error) = &found {
            contact::note(error, "finding partitions of totals");
        }
        self.log_backlog();
        found
    }

    fn find_partitions(&mut self) -> KafkaResult<()> {
        let totals = self.count_partitions(&self.topic)?;
        let requests = self.count_partitions(&self.link.settings.calls_topic())?;
        let found = i32::try_from(totals).unwrap_or(i32::MAX);
        let mut begun = Ok(());
        for partition in (self.next..found).chain(0..self.next.min(found)) {
            let is_active = begun.is_ok() && !self.link.is_stopped();
            if is_active && !self.backlog.contains_key(&partition) {
                self.next = partition.saturating_add(1);
                begun = self.begin(partition);
            }
        }
        // Even if not all are read: clients of an unread partition soon count as cut off, others do
        // not.
        if let Some(partitions) = Partitions::among(requests, totals) {
            self.link.node().divide(partitions);
        }
        begun
    }

    fn count_partitions(&self, topic: &str) -> KafkaResult<usize> {
        let metadata = self
            .consumer
            .fetch_metadata(Some(topic), METADATA_TIMEOUT)?;
        let found = metadata.topics().first();
        Ok(found.map_or(0, |topic| topic.partitions().len()))
    }

    fn begin(&mut self, partition: i32) -> KafkaResult<()> {
        let (low, end) =
            self.consumer
                .fetch_watermarks(&self.topic, partition, METADATA_TIMEOUT)?;
        let mut list = TopicPartitionList::new();
        list.add_partition(&self.topic, partition);
        let next = match self.look_back {
            LookBack::Everything => low,
            LookBack::For(time) => {
                let now_ms = self.link.now().0 / 1_000;
                let time_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
                let since = i64::try_from(now_ms.saturating_sub(time_ms)).unwrap_or(i64::MAX);
                list.set_all_offsets(Offset::Offset(since))?;
                let found = self
                    .consumer
                    .offsets_for_times(list.clone(), METADATA_TIMEOUT)?;
                first_offset(&found, end)
            }
        };
        list.set_all_offsets(Offset::Offset(next))?;
        self.consumer.incremental_assign(&list)?;
        let backlog = Backlog { next, end };
        self.link.node().backlog_found(backlog.left());
        self.backlog.insert(partition, backlog);
        self.is_backlog_read = false;
        Ok(())
    }

    /// Starts over and reads all that the topic still has.
    fn restart(&mut self) {
        tracing::info!(
            topic = self.topic,
            "a client has a longer window than the totals read: reading all totals"
        );
        let mut list = TopicPartitionList::new();
        for partition in std::mem::take(&mut self.backlog).into_keys() {
            list.add_partition(&self.topic, partition);
        }
        if let Err(error) = self.consumer.incremental_unassign(&list) {
            contact::note(&error, "reading totals anew");
        }
        self.look_back = LookBack::Everything;
    }

    /// Logs the rest of the backlog. A node that has not read it counts alone at first, and then is
    /// cut off.
    fn log_backlog(&mut self) {
        if self.is_backlog_read || self.backlog.is_empty() {
            return;
        }
        let (topic, left) = (&self.topic, self.left());
        if left > 0 {
            tracing::info!(topic, left, "reading earlier totals");
        } else {
            self.is_backlog_read = true;
            tracing::info!(topic, "earlier totals read");
        }
    }
}

/// Returns the first offset to read of a partition that was looked up by time. If nothing is that
/// new, it is the end *before* the lookup: the library would look for the end only when it begins
/// to read, and miss what was published meanwhile.
fn first_offset(found: &TopicPartitionList, end: i64) -> i64 {
    match found.elements().first().map(|found| found.offset()) {
        Some(Offset::Offset(offset)) => offset,
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_without_newer_totals_is_read_from_its_earlier_end() {
        for (offset, expected) in [(Offset::End, 7), (Offset::Offset(5), 5)] {
            let mut found = TopicPartitionList::new();
            found.add_partition_offset("t", 0, offset).unwrap();
            assert_eq!(first_offset(&found, 7), expected);
        }
    }

    #[test]
    fn a_backlog_is_counted_once_even_with_deleted_messages() {
        let mut backlog = Backlog { next: 3, end: 10 };
        for (offset, read, left) in [(3, 1, 6), (3, 0, 6), (7, 4, 2), (12, 2, 0), (13, 0, 0)] {
            assert_eq!(
                (backlog.read(offset), backlog.left()),
                (read, left),
                "{offset}"
            );
        }
    }
}
