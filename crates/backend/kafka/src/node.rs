//! Node that counts over a log, without its connections: callers pass in what it receives and fetch
//! what it sends, so tests can lose, double and delay messages.
//!
//! - A **request** is decided at once, by what is known here, and added to this node's own count.
//! - Changed counts are **sent** to the topic of calls. The aggregator of a partition joins what it
//!   reads there and **publishes** totals, which every node joins.
//! - A report that does not come back in a total is sent again, which repairs the loss of a message
//!   or of an aggregator.

mod acquire;
#[cfg(test)]
mod tests;

use std::time::Duration;

use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit_store::ClientKey;

use crate::counter_table::{CounterTable, ReportSource};
use crate::heartbeats::Heartbeats;
use crate::partitions::Partitions;
use crate::stats::{Name, NodeCount, NodeId, SlotId, SlotReport};
use crate::{message, names};

/// Width of the slots of beats. Beats of a node that has ended are forgotten after two.
const BEATS_WIDTH: DurationUs = DurationUs::from_secs(60);

/// Node without its connections.
#[derive(Debug)]
pub(crate) struct Node {
    id: NodeId,
    /// Partitions of the topics; `None` until they are known.
    partitions: Option<Partitions>,
    board: CounterTable,
    beats: Heartbeats,
    /// Names of this node's beats, by partition.
    beat_names: Vec<Name>,
    event_counts: EventCounts,
}

/// Event counters of a node.
#[derive(Clone, Copy, Debug, Default)]
struct EventCounts {
    sent: u64,
    reports_received: u64,
    totals_published: u64,
    totals_received: u64,
    backlog_found: u64,
    backlog_read: u64,
    unreadable: u64,
    overflow: u64,
}

impl Node {
    pub(crate) fn new(id: NodeId, slots_max: usize) -> Self {
        Self {
            id,
            partitions: None,
            board: CounterTable::new(id, slots_max),
            beats: Heartbeats::default(),
            beat_names: beat_names(id, Partitions::ONE),
            event_counts: EventCounts::default(),
        }
    }

    /// Sets how clients are divided among partitions.
    pub(crate) fn divide(&mut self, partitions: Partitions) {
        if self.partitions != Some(partitions) {
            self.partitions = Some(partitions);
            self.beats.divide(partitions);
            self.beat_names = beat_names(self.id, partitions);
        }
    }

    /// Returns the partitions, if they are known.
    pub(crate) fn partitions(&self) -> Option<Partitions> {
        self.partitions
    }

    /// Returns whether reports of this client have not come back for too long.
    pub(crate) fn is_away(&self, limit: &str, key: ClientKey, at: Duration) -> bool {
        if !self.beats.may_be_away(at) {
            return false;
        }
        let partitions = self.partitions.unwrap_or(Partitions::ONE);
        let is_away = |name| self.beats.is_away(partitions.partition(name), at);
        // The partition does not depend on the width.
        let width = DurationUs::ZERO;
        is_away(names::client(limit, width, key))
            || self.board.is_full() && is_away(names::overflow(limit, width, key))
    }

    /// Returns the numbers of unavailable partitions and of all partitions.
    pub(crate) fn partitions_away(&self, at: Duration) -> (usize, usize) {
        (self.beats.count_away(at), self.beat_names.len())
    }

    /// Does a portion of the periodic work and returns whether more is left. `at` is monotonic
    /// time.
    pub(crate) fn tick(&mut self, now: TimestampUs, at: Duration) -> bool {
        let portions = [self.board.sweep(now), self.board.resend_overdue(at)];
        if let Some(taken) = self.beats.due(at) {
            let index = now.0 / BEATS_WIDTH.0;
            let until = TimestampUs(index.saturating_add(2).saturating_mul(BEATS_WIDTH.0));
            let beat = NodeCount { taken, refunded: 0 };
            for name in self.beat_names.iter().copied() {
                self.board.put(SlotId { name, index }, until, beat);
            }
        }
        portions.contains(&true)
    }

    /// Returns up to `count_max` messages for the topic of calls.
    pub(crate) fn reports_to_send(&mut self, count_max: usize, at: Duration) -> Vec<SlotReport> {
        let next = std::iter::from_fn(|| self.board.next_to_send(at));
        next.take(count_max).collect()
    }

    /// Returns up to `count_max` messages for the topic of totals.
    pub(crate) fn totals_to_publish(&mut self, count_max: usize) -> Vec<SlotReport> {
        let next = std::iter::from_fn(|| self.board.next_to_publish());
        next.take(count_max).collect()
    }

    /// Counts sent reports.
    pub(crate) fn sent(&mut self, count: u64) {
        self.event_counts.sent += count;
    }

    /// Counts published totals.
    pub(crate) fn published(&mut self, count: u64) {
        self.event_counts.totals_published += count;
    }

    /// Queues a report again that could not be sent.
    pub(crate) fn send_again(&mut self, id: SlotId) {
        self.board.queue_report(id);
    }

    /// Queues a total again that could not be sent, or did not arrive.
    pub(crate) fn publish_again(&mut self, id: SlotId) {
        self.board.queue_total(id);
    }

    /// Handles a message from a partition of calls that this node aggregates.
    pub(crate) fn receive_report(&mut self, bytes: &[u8], now: TimestampUs) {
        self.event_counts.reports_received += 1;
        self.receive(bytes, ReportSource::Call, now);
    }

    /// Handles a message from the topic of totals.
    pub(crate) fn receive_total(&mut self, bytes: &[u8], now: TimestampUs) {
        self.event_counts.totals_received += 1;
        let report = self.receive(bytes, ReportSource::Total, now);
        let Some(report) = report else {
            return;
        };
        let partition = self
            .partitions
            .unwrap_or(Partitions::ONE)
            .partition(report.id.name);
        if self.beat_names.get(usize::from(partition)) == Some(&report.id.name) {
            for (_, beat) in &report.stats {
                self.beats.came_back(partition, beat.taken);
            }
        }
    }

    /// Counts totals that were published before this node began to read.
    pub(crate) fn backlog_found(&mut self, count: u64) {
        self.event_counts.backlog_found += count;
    }

    /// Counts those of them that it has read.
    pub(crate) fn backlog_read(&mut self, count: u64) {
        self.event_counts.backlog_read += count;
    }

    fn receive(
        &mut self,
        bytes: &[u8],
        source: ReportSource,
        now: TimestampUs,
    ) -> Option<SlotReport> {
        let report = message::decode(bytes);
        let is_valid = |report: &SlotReport| self.board.receive(report, source, now);
        let report = report.filter(is_valid);
        self.event_counts.unreadable += u64::from(report.is_none());
        report
    }

    /// Returns the event counters by name.
    pub(crate) fn events(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("published", self.event_counts.sent),
            ("republished", self.board.resent()),
            ("message_read", self.event_counts.reports_received),
            ("total_published", self.event_counts.totals_published),
            ("total_read", self.event_counts.totals_received),
            ("backlog_found", self.event_counts.backlog_found),
            ("backlog_read", self.event_counts.backlog_read),
            ("unreadable", self.event_counts.unreadable),
            ("overflow", self.event_counts.overflow),
            ("dropped", self.board.without_room()),
        ]
    }
}

/// Returns the names of a node's beats, by partition.
fn beat_names(id: NodeId, partitions: Partitions) -> Vec<Name> {
    let each = 0..partitions.count();
    each.map(|partition| names::beat(id, partitions, partition))
        .collect()
}
