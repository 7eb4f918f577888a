//! Reports of nodes: increments are collected until the next interval, so that one message reports
//! many requests.

use std::collections::BTreeMap;

use anteroom_limit::counters::CounterIndex;
use anteroom_limit::time::{DurationUs, TimestampUs};

use crate::lab::rng::{LabRng, Purpose};
use crate::lab::run::Plan;

/// Number of requests of a client that a node allowed in a part of the window.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Increment {
    pub(crate) writer: u32,
    pub(crate) client: u32,
    pub(crate) index: CounterIndex,
    pub(crate) requests: u32,
    /// Arrival time of the first of them.
    pub(crate) since: TimestampUs,
}

/// Increments for the next report.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    interval: DurationUs,
    /// Offset of reports from multiples of the interval; it differs between nodes.
    offset: DurationUs,
    gathered: BTreeMap<(u32, CounterIndex, u32), Increment>,
}

/// Time of the next report.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Due {
    /// Due at once, without an interval.
    Now,
    /// Due at this time: the increment is the first of a report.
    At(TimestampUs),
    /// The report is already planned.
    Planned,
}

impl Outbox {
    /// Creates the outboxes of `count` senders.
    pub(crate) fn of(plan: &Plan, count: u32) -> Vec<Self> {
        let mut rng = LabRng::new(plan.seed, Purpose::Rounds);
        let outbox = |_| Self {
            interval: plan.interval,
            offset: rng.part_of(plan.interval),
            gathered: BTreeMap::new(),
        };
        (0..count).map(outbox).collect()
    }

    /// Adds an increment to the next report.
    pub(crate) fn gather(&mut self, increment: Increment, now: TimestampUs) -> Due {
        let is_first = self.gathered.is_empty();
        let pending = self
            .gathered
            .entry((increment.client, increment.index, increment.writer))
            .or_insert(Increment {
                requests: 0,
                ..increment
            });
        pending.requests = pending.requests.saturating_add(increment.requests);
        pending.since = pending.since.min(increment.since);
        match (self.interval.0, is_first) {
            (0, _) => Due::Now,
            (_, true) => Due::At(self.next(now)),
            (_, false) => Due::Planned,
        }
    }

    /// Returns all increments, by client.
    pub(crate) fn take(&mut self) -> Vec<Increment> {
        std::mem::take(&mut self.gathered).into_values().collect()
    }

    fn next(&self, now: TimestampUs) -> TimestampUs {
        let into = (now.0 + self.interval.0 - self.offset.0) % self.interval.0;
        now + DurationUs(self.interval.0 - into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outbox(interval: u64) -> Outbox {
        Outbox {
            interval: DurationUs(interval),
            offset: DurationUs(interval / 4),
            gathered: BTreeMap::new(),
        }
    }

    fn increment(client: u32, since: u64) -> Increment {
        Increment {
            writer: 0,
            client,
            index: CounterIndex(7),
            requests: 1,
            since: TimestampUs(since),
        }
    }

    #[test]
    fn increments_wait_for_the_next_report_and_are_merged() {
        let mut outbox = outbox(100);
        assert_eq!(
            outbox.gather(increment(1, 130), TimestampUs(130)),
            Due::At(TimestampUs(225))
        );
        assert_eq!(
            outbox.gather(increment(1, 140), TimestampUs(140)),
            Due::Planned
        );
        assert_eq!(
            outbox.gather(increment(2, 150), TimestampUs(150)),
            Due::Planned
        );
        let sent = outbox.take();
        assert_eq!(
            sent,
            [
                Increment {
                    requests: 2,
                    ..increment(1, 130)
                },
                increment(2, 150)
            ]
        );
        assert_eq!(
            outbox.gather(increment(1, 225), TimestampUs(225)),
            Due::At(TimestampUs(325))
        );
        assert_eq!(outbox.gather(increment(1, 3), TimestampUs(3)), Due::Planned);
        assert_eq!(outbox.take()[0].since, TimestampUs(3));
        assert_eq!(
            outbox.gather(increment(1, 3), TimestampUs(3)),
            Due::At(TimestampUs(25))
        );
    }

    #[test]
    fn no_increment_waits_without_an_interval() {
        let mut outbox = outbox(0);
        assert_eq!(outbox.gather(increment(1, 130), TimestampUs(130)), Due::Now);
        assert_eq!(outbox.take().len(), 1);
    }
}
