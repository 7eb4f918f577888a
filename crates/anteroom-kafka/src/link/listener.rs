//! Reads all totals, from when on they matter.

use std::time::Duration;

use rdkafka::Message as _;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::{LOOK_EVERY, Link};
use crate::contact::{self, Contact};
use crate::lanes::Lanes;
use crate::settings::LookBack;

/// How long brokers may take to say what there is. Nothing is read meanwhile.
const PATIENCE: Duration = Duration::from_secs(1);
/// After how long is looked again where nothing was found.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// How often is looked whether a topic has more partitions by now. Whoever finds them first tells there what others do
/// not hear before they have looked, too.
const LOOK_FOR_MORE: Duration = Duration::from_secs(10);

/// Until the link is stopped.
pub(super) fn run(link: &Link, consumer: &BaseConsumer<Contact>) {
    let mut partitions = 0;
    let mut look_at = Duration::ZERO;
    while !link.is_stopped() {
        if link.at() >= look_at {
            match look(link, consumer, partitions) {
                Ok(found) => partitions = found,
                Err(error) => contact::note(&error, "looking for totals"),
            }
            let pause = match link.node().lanes() {
                None => LOOK_AGAIN,
                Some(_) => LOOK_FOR_MORE,
            };
            look_at = link.at() + pause;
        }
        match consumer.poll(LOOK_EVERY) {
            Some(Ok(message)) => {
                let now = link.now();
                link.node()
                    .hear_total(message.payload().unwrap_or_default(), now);
            }
            Some(Err(error)) => contact::note(&error, "reading totals"),
            None => {}
        }
    }
}

/// Begins to read partitions that are not read yet, and has clients divided among all. Says how many are read.
fn look(link: &Link, consumer: &BaseConsumer<Contact>, known: i32) -> KafkaResult<i32> {
    let topic = link.settings.totals_topic();
    let totals = count_partitions(consumer, &topic)?;
    let found = i32::try_from(totals).unwrap_or(i32::MAX);
    if found > known {
        let begin = first_offsets(link, consumer, &topic, (known, found))?;
        consumer.incremental_assign(&begin)?;
    }
    let calls = count_partitions(consumer, &link.settings.calls_topic());
    if let Some(lanes) = Lanes::among(calls?, totals) {
        link.node().divide(lanes);
    }
    Ok(known.max(found))
}

fn count_partitions(consumer: &BaseConsumer<Contact>, topic: &str) -> KafkaResult<usize> {
    let metadata = consumer.fetch_metadata(Some(topic), PATIENCE)?;
    let found = metadata.topics().first();
    Ok(found.map_or(0, |topic| topic.partitions().len()))
}

/// Where each of the partitions `from..to` is to be read from.
fn first_offsets(
    link: &Link,
    consumer: &BaseConsumer<Contact>,
    topic: &str,
    (from, to): (i32, i32),
) -> Result<TopicPartitionList, KafkaError> {
    let mut list = TopicPartitionList::new();
    list.add_partition_range(topic, from, to - 1);
    match link.settings.look_back {
        // A partition that was added while this node ran has nothing that is too old.
        LookBack::For(time) if from == 0 => {
            let now_ms = link.now().0 / 1_000;
            let time_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            let since = i64::try_from(now_ms.saturating_sub(time_ms)).unwrap_or(i64::MAX);
            list.set_all_offsets(Offset::Offset(since))?;
            let mut ends = Vec::new();
            for partition in from..to {
                ends.push(consumer.fetch_watermarks(topic, partition, PATIENCE)?.1);
            }
            let mut found = consumer.offsets_for_times(list, PATIENCE)?;
            begin_at_ends(&mut found, &ends)?;
            Ok(found)
        }
        LookBack::For(_) | LookBack::Everything => {
            list.set_all_offsets(Offset::Beginning)?;
            Ok(list)
        }
    }
}

/// Where nothing is so new, reading begins at the end as it was *before* that was asked. The library would look for the
/// end only when it begins to read, and leave out what was published meanwhile.
fn begin_at_ends(found: &mut TopicPartitionList, ends: &[i64]) -> KafkaResult<()> {
    for (mut partition, end) in found.elements().into_iter().zip(ends) {
        if partition.offset() == Offset::End {
            partition.set_offset(Offset::Offset(*end))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_without_anything_new_are_read_from_where_they_ended_before() {
        let mut found = TopicPartitionList::new();
        found.add_partition_range("t", 0, 2);
        for (partition, offset) in [(0, Offset::End), (1, Offset::Offset(5)), (2, Offset::End)] {
            found.set_partition_offset("t", partition, offset).unwrap();
        }
        begin_at_ends(&mut found, &[7, 9, 0]).unwrap();
        let offsets = found
            .elements()
            .into_iter()
            .map(|partition| partition.offset());
        let expected = [7, 5, 0].map(Offset::Offset);
        assert_eq!(offsets.collect::<Vec<Offset>>(), expected);
    }
}
