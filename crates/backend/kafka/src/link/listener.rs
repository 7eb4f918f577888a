//! Reads all totals, from when on they matter.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::Message as _;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaResult;
use rdkafka::message::BorrowedMessage;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::{LOOK_EVERY, Link};
use crate::contact::{self, Contact};
use crate::partitions::Partitions;
use crate::settings::LookBack;

/// How long brokers may take to say what there is. Nothing is read meanwhile.
const PATIENCE: Duration = Duration::from_secs(1);
/// After how long is looked again while it is not known which partitions there are.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// And while some are not read because their broker does not answer: each look may cost all of
/// [`PATIENCE`].
const LOOK_FOR_MISSING: Duration = Duration::from_secs(3);
/// How often is looked whether a topic has more partitions by now. Whoever finds them first tells
/// there what others do not hear before they have looked, too.
const LOOK_FOR_MORE: Duration = Duration::from_secs(10);

/// What is read, and how far.
struct Reader<'a> {
    link: &'a Link,
    consumer: &'a BaseConsumer<Contact>,
    topic: String,
    look_back: LookBack,
    /// By partition, what lay in it when this node began to read it.
    past: BTreeMap<i32, Backlog>,
    /// With which partition the next look begins, so that one that does not answer does not keep
    /// others waiting.
    next: i32,
    is_past_read: bool,
}

/// Offsets: the next to be read, and the first that came later.
#[derive(Clone, Copy, Debug)]
struct Backlog {
    next: i64,
    end: i64,
}

impl Backlog {
    /// One was read; those before it were, or are not there any more. Says how many of the past
    /// these are.
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

/// Until the link is stopped.
pub(super) fn run(link: &Link, consumer: &BaseConsumer<Contact>) {
    let mut reader = Reader {
        link,
        consumer,
        topic: link.settings.totals_topic(),
        look_back: link.settings.look_back,
        past: BTreeMap::new(),
        next: 0,
        is_past_read: false,
    };
    let mut look_at = Duration::ZERO;
    while !link.is_stopped() {
        if link.needs_all() && reader.look_back != LookBack::Everything {
            reader.begin_anew();
            look_at = Duration::ZERO;
        }
        if link.at() >= look_at {
            let pause = match reader.look() {
                Ok(()) if link.node().partitions().is_some() => LOOK_FOR_MORE,
                Err(_) if !reader.past.is_empty() => LOOK_FOR_MISSING,
                _ => LOOK_AGAIN,
            };
            look_at = link.at() + pause;
        }
        match consumer.poll(LOOK_EVERY) {
            Some(Ok(message)) => reader.hear(&message),
            Some(Err(error)) => contact::note(&error, "reading totals"),
            None => {}
        }
    }
}

impl Reader<'_> {
    fn hear(&mut self, message: &BorrowedMessage<'_>) {
        let now = self.link.now();
        let past = self.past.get_mut(&message.partition());
        let read = past.map_or(0, |past| past.read(message.offset()));
        let mut node = self.link.node();
        node.hear_total(message.payload().unwrap_or_default(), now);
        node.past_read(read);
        drop(node);
        if read > 0 && self.left() == 0 {
            self.say_what_is_left();
        }
    }

    fn left(&self) -> u64 {
        self.past.values().map(|past| past.left()).sum()
    }

    /// Begins to read partitions that are not read yet, and has clients divided among all.
    fn look(&mut self) -> KafkaResult<()> {
        let looked = self.look_for_partitions();
        if let Err(error) = &looked {
            contact::note(error, "looking for totals");
        }
        self.say_what_is_left();
        looked
    }

    fn look_for_partitions(&mut self) -> KafkaResult<()> {
        let totals = self.count_partitions(&self.topic)?;
        let calls = self.count_partitions(&self.link.settings.calls_topic())?;
        let found = i32::try_from(totals).unwrap_or(i32::MAX);
        let mut begun = Ok(());
        for partition in (self.next..found).chain(0..self.next.min(found)) {
            let goes_on = begun.is_ok() && !self.link.is_stopped();
            if goes_on && !self.past.contains_key(&partition) {
                self.next = partition.saturating_add(1);
                begun = self.begin(partition);
            }
        }
        // Also if not all are read: clients of one that is not are away before long, and others are
        // not.
        if let Some(partitions) = Partitions::among(calls, totals) {
            self.link.node().divide(partitions);
        }
        begun
    }

    fn count_partitions(&self, topic: &str) -> KafkaResult<usize> {
        let metadata = self.consumer.fetch_metadata(Some(topic), PATIENCE)?;
        let found = metadata.topics().first();
        Ok(found.map_or(0, |topic| topic.partitions().len()))
    }

    fn begin(&mut self, partition: i32) -> KafkaResult<()> {
        let (low, end) = self
            .consumer
            .fetch_watermarks(&self.topic, partition, PATIENCE)?;
        let mut list = TopicPartitionList::new();
        list.add_partition(&self.topic, partition);
        let next = match self.look_back {
            LookBack::Everything => low,
            LookBack::For(time) => {
                let now_ms = self.link.now().0 / 1_000;
                let time_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
                let since = i64::try_from(now_ms.saturating_sub(time_ms)).unwrap_or(i64::MAX);
                list.set_all_offsets(Offset::Offset(since))?;
                let found = self.consumer.offsets_for_times(list.clone(), PATIENCE)?;
                first_offset(&found, end)
            }
        };
        list.set_all_offsets(Offset::Offset(next))?;
        self.consumer.incremental_assign(&list)?;
        let past = Backlog { next, end };
        self.link.node().past_found(past.left());
        self.past.insert(partition, past);
        self.is_past_read = false;
        Ok(())
    }

    /// From now on all is read that the topic still has.
    fn begin_anew(&mut self) {
        tracing::info!(
            topic = self.topic,
            "a client of a limit counts for longer than totals were read: all of them are"
        );
        let mut list = TopicPartitionList::new();
        for partition in std::mem::take(&mut self.past).into_keys() {
            list.add_partition(&self.topic, partition);
        }
        if let Err(error) = self.consumer.incremental_unassign(&list) {
            contact::note(&error, "reading totals anew");
        }
        self.look_back = LookBack::Everything;
    }

    /// Until a node has read what was there before it, it counts alone, and then is away.
    fn say_what_is_left(&mut self) {
        if self.is_past_read || self.past.is_empty() {
            return;
        }
        let (topic, left) = (&self.topic, self.left());
        if left > 0 {
            tracing::info!(topic, left, "reading totals of before");
        } else {
            self.is_past_read = true;
            tracing::info!(topic, "all totals of before are read");
        }
    }
}

/// Where reading begins of a partition that was looked up by time. If nothing is so new, at the end
/// as it was *before* that was asked: the library would look for the end only when it begins to
/// read, and leave out what was published meanwhile.
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
    fn a_partition_without_anything_new_is_read_from_where_it_ended_before() {
        for (offset, expected) in [(Offset::End, 7), (Offset::Offset(5), 5)] {
            let mut found = TopicPartitionList::new();
            found.add_partition_offset("t", 0, offset).unwrap();
            assert_eq!(first_offset(&found, 7), expected);
        }
    }

    #[test]
    fn what_lay_there_before_is_read_once_also_where_some_is_gone() {
        let mut past = Backlog { next: 3, end: 10 };
        for (offset, read, left) in [(3, 1, 6), (3, 0, 6), (7, 4, 2), (12, 2, 0), (13, 0, 0)] {
            assert_eq!((past.read(offset), past.left()), (read, left), "{offset}");
        }
    }
}
