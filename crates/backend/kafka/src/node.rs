//! What does a node do that counts over a log? Without the log: what it hears is brought to it, and
//! what it says is fetched from it, so tests lose, double and delay all of it.
//!
//! - A **call** is decided at once, by what is known here, and charged to this node's own figure.
//! - Changed figures are **told** to the topic of calls. Whoever aggregates a partition of it joins
//!   what it reads there and **publishes** totals, which every node joins.
//! - What does not come back in a total is told again, so a message, or an aggregator, that is lost
//!   is made good.

mod charging;
#[cfg(test)]
mod tests;

use std::time::Duration;

use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit_store::CallKey;

use crate::beats::Heartbeats;
use crate::board::{CounterTable, ReportSource};
use crate::partitions::Partitions;
use crate::stats::{Name, NodeCount, NodeId, SlotId, SlotReport};
use crate::{message, names};

/// The stretches of time that beats are told in. What a node that has ended leaves behind is
/// forgotten after two.
const BEATS_WIDTH: DurationUs = DurationUs::from_secs(60);

/// A node, without its connections.
#[derive(Debug)]
pub(crate) struct Node {
    id: NodeId,
    /// `None` until it is known how many there are.
    partitions: Option<Partitions>,
    board: CounterTable,
    beats: Heartbeats,
    /// By lane.
    beat_names: Vec<Name>,
    event_counts: Tally,
}

/// What it has counted of itself.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    told: u64,
    calls_heard: u64,
    totals_published: u64,
    totals_heard: u64,
    past_found: u64,
    past_read: u64,
    unreadable: u64,
    crowded: u64,
}

impl Node {
    pub(crate) fn new(id: NodeId, slots_max: usize) -> Self {
        Self {
            id,
            partitions: None,
            board: CounterTable::new(id, slots_max),
            beats: Heartbeats::default(),
            beat_names: beat_names(id, Partitions::ONE),
            event_counts: Tally::default(),
        }
    }

    /// From now on clients are divided so.
    pub(crate) fn divide(&mut self, partitions: Partitions) {
        if self.partitions != Some(partitions) {
            self.partitions = Some(partitions);
            self.beats.divide(partitions);
            self.beat_names = beat_names(self.id, partitions);
        }
    }

    /// How clients are divided, if that is known.
    pub(crate) fn partitions(&self) -> Option<Partitions> {
        self.partitions
    }

    /// Whether what it tells of a client would not have come back for too long.
    pub(crate) fn is_away(&self, limit: &str, key: CallKey, at: Duration) -> bool {
        if !self.beats.may_be_away(at) {
            return false;
        }
        let partitions = self.partitions.unwrap_or(Partitions::ONE);
        let is_away = |name| self.beats.is_away(partitions.partition(name), at);
        // The lane does not hang on the width.
        let width = DurationUs::ZERO;
        is_away(names::client(limit, width, key))
            || self.board.is_full() && is_away(names::crowd(limit, width, key))
    }

    /// In how many lanes that is so, and how many there are.
    pub(crate) fn partitions_away(&self, at: Duration) -> (usize, usize) {
        (self.beats.count_away(at), self.beat_names.len())
    }

    /// What is to be done again and again, a portion of it. Says whether there is more. `at` is any
    /// time that only goes forward.
    pub(crate) fn tick(&mut self, now: TimestampUs, at: Duration) -> bool {
        let portions = [self.board.sweep(now), self.board.look_after_awaited(at)];
        if let Some(taken) = self.beats.due(at) {
            let index = now.0 / BEATS_WIDTH.0;
            let until = TimestampUs(index.saturating_add(2).saturating_mul(BEATS_WIDTH.0));
            let beat = NodeCount {
                taken,
                given_back: 0,
            };
            for name in self.beat_names.iter().copied() {
                self.board.put(SlotId { name, index }, until, beat);
            }
        }
        portions.contains(&true)
    }

    /// The next of at most so many messages for the topic of calls.
    pub(crate) fn calls_to_tell(&mut self, count_max: usize, at: Duration) -> Vec<SlotReport> {
        let next = std::iter::from_fn(|| self.board.next_to_tell(at));
        next.take(count_max).collect()
    }

    /// The next of at most so many messages for the topic of totals.
    pub(crate) fn totals_to_publish(&mut self, count_max: usize) -> Vec<SlotReport> {
        let next = std::iter::from_fn(|| self.board.next_to_publish());
        next.take(count_max).collect()
    }

    /// So many calls were sent.
    pub(crate) fn told(&mut self, count: u64) {
        self.event_counts.told += count;
    }

    /// So many totals were sent.
    pub(crate) fn published(&mut self, count: u64) {
        self.event_counts.totals_published += count;
    }

    /// It could not be sent.
    pub(crate) fn not_told(&mut self, id: SlotId) {
        self.board.tell(id);
    }

    /// It could not be sent, or did not arrive.
    pub(crate) fn publish_again(&mut self, id: SlotId) {
        self.board.publish(id);
    }

    /// A message from a partition of calls that this node aggregates.
    pub(crate) fn hear_call(&mut self, bytes: &[u8], now: TimestampUs) {
        self.event_counts.calls_heard += 1;
        self.hear(bytes, ReportSource::Call, now);
    }

    /// A message from the topic of totals.
    pub(crate) fn hear_total(&mut self, bytes: &[u8], now: TimestampUs) {
        self.event_counts.totals_heard += 1;
        let told = self.hear(bytes, ReportSource::Total, now);
        let Some(told) = told else {
            return;
        };
        let partition = self
            .partitions
            .unwrap_or(Partitions::ONE)
            .partition(told.id.name);
        if self.beat_names.get(usize::from(partition)) == Some(&told.id.name) {
            for (_, beat) in &told.stats {
                self.beats.heard(partition, beat.taken);
            }
        }
    }

    /// So many totals lay there before it began to read.
    pub(crate) fn past_found(&mut self, count: u64) {
        self.event_counts.past_found += count;
    }

    /// It has read so many of them.
    pub(crate) fn past_read(&mut self, count: u64) {
        self.event_counts.past_read += count;
    }

    fn hear(&mut self, bytes: &[u8], heard: ReportSource, now: TimestampUs) -> Option<SlotReport> {
        let told = message::decode(bytes);
        let is_ours = |told: &SlotReport| self.board.hear(told, heard, now);
        let told = told.filter(is_ours);
        self.event_counts.unreadable += u64::from(told.is_none());
        told
    }

    /// What it has counted of itself, each by a fixed word.
    pub(crate) fn events(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("published", self.event_counts.told),
            ("republished", self.board.told_again()),
            ("message_read", self.event_counts.calls_heard),
            ("total_published", self.event_counts.totals_published),
            ("total_read", self.event_counts.totals_heard),
            ("backlog_found", self.event_counts.past_found),
            ("backlog_read", self.event_counts.past_read),
            ("unreadable", self.event_counts.unreadable),
            ("overflow", self.event_counts.crowded),
            ("dropped", self.board.without_place()),
        ]
    }
}

/// Under which names a node tells that it lives, by lane.
fn beat_names(id: NodeId, partitions: Partitions) -> Vec<Name> {
    let each = 0..partitions.count();
    each.map(|partition| names::beat(id, partitions, partition))
        .collect()
}
