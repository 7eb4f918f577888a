//! Heartbeats: whether this node's messages still come back.
//!
//! Once a second a node sends a number to each [partition](crate::partitions), under a name of its
//! own, as if a client had sent requests. If a number does not come back in a total within
//! [`UNAVAILABLE_AFTER`], the path to the aggregator of that partition is broken. Then totals of
//! the clients there do not arrive either, as far as is known.

use std::collections::VecDeque;
use std::time::Duration;

use crate::partitions::Partitions;

/// Time for which a node decides alone, by what it has received and what it counts. It must be
/// longer than a takeover from a crashed node (a session of 6 s, and some seconds to rebalance), or
/// each crash would reject the requests of all. Each further second is one in which nodes admit
/// requests that the others do not know of.
pub const UNAVAILABLE_AFTER: Duration = Duration::from_secs(15);
const BEAT_EVERY: Duration = Duration::from_secs(1);
/// Beats that must come back from an unavailable partition before it counts as available. Other
/// nodes resend what they counted alone within [`RESEND_AFTER`](crate::counter_table::RESEND_AFTER)
/// of its return, so a later beat comes back after that.
const BEATS_TO_RETURN: u32 = 4;

/// Sent beats and those that came back.
#[derive(Debug)]
pub(crate) struct Heartbeats {
    next_at: Duration,
    last: u32,
    /// Beats and their times: the newest that should have come back, and all after it.
    sent: VecDeque<(u32, Duration)>,
    partitions: Vec<PartitionState>,
    /// Newest beat that came back from all partitions.
    newest_of_all: u32,
    /// Beat that the partition with the longest wait needs to come back.
    available_from_last: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct PartitionState {
    /// Newest beat that came back.
    newest: u32,
    /// Beat that must come back before the partition is available again.
    available_from: u32,
}

impl Default for Heartbeats {
    fn default() -> Self {
        Self {
            next_at: Duration::ZERO,
            last: 0,
            sent: VecDeque::new(),
            partitions: vec![PartitionState::default()],
            newest_of_all: 0,
            available_from_last: 0,
        }
    }
}

impl Heartbeats {
    /// Sets the number of partitions. A new one starts with the state that all others have reached.
    pub(crate) fn divide(&mut self, partitions: Partitions) {
        let partition = PartitionState {
            newest: self.newest_of_all,
            available_from: self.available_from_last,
        };
        self.partitions = vec![partition; usize::from(partitions.count())];
    }

    /// Returns the beat to send to each partition, if one is due.
    pub(crate) fn due(&mut self, at: Duration) -> Option<u32> {
        if at < self.next_at {
            return None;
        }
        self.next_at = at + BEAT_EVERY;
        // At one a second it takes a century to overflow.
        self.last = self.last.saturating_add(1);
        self.sent.push_back((self.last, at));
        while self.sent.get(1).is_some_and(|beat| is_late(beat, at)) {
            self.sent.pop_front();
        }
        let awaited = self.awaited(at);
        for partition in self
            .partitions
            .iter_mut()
            .filter(|partition| partition.newest < awaited)
        {
            partition.available_from = self.last.saturating_add(BEATS_TO_RETURN);
            self.available_from_last = partition.available_from;
        }
        Some(self.last)
    }

    /// Records a beat that came back. Earlier ones came back, too, or do not matter any more.
    pub(crate) fn came_back(&mut self, partition: u16, beat: u32) {
        if let Some(partition) = self.partitions.get_mut(usize::from(partition)) {
            partition.newest = beat.max(partition.newest);
            let newest = self.partitions.iter().map(|partition| partition.newest);
            self.newest_of_all = newest.min().unwrap_or(0);
        }
    }

    /// Returns `false` if all partitions are available. Fast, as each request checks it.
    pub(crate) fn may_be_away(&self, at: Duration) -> bool {
        self.has_stopped(at) || self.newest_of_all < self.awaited(at).max(self.available_from_last)
    }

    /// Returns whether a beat of this partition is overdue.
    pub(crate) fn is_away(&self, partition: u16, at: Duration) -> bool {
        let partition = self.partitions.get(usize::from(partition));
        let awaited = self.awaited(at);
        self.has_stopped(at) || partition.is_none_or(|partition| partition.is_away(awaited))
    }

    /// Returns the number of unavailable partitions.
    pub(crate) fn count_away(&self, at: Duration) -> usize {
        let awaited = self.awaited(at);
        let is_away = |partition: &&PartitionState| partition.is_away(awaited);
        self.partitions.iter().filter(is_away).count()
    }

    /// Returns whether beats have stopped: unsent beats cannot be missed.
    fn has_stopped(&self, at: Duration) -> bool {
        self.next_at + UNAVAILABLE_AFTER <= at
    }

    /// Returns the newest beat that should have come back by now.
    fn awaited(&self, at: Duration) -> u32 {
        let late = self.sent.iter().take_while(|beat| is_late(beat, at));
        late.last().map_or(0, |(beat, _)| *beat)
    }
}

impl PartitionState {
    const fn is_away(self, awaited: u32) -> bool {
        self.newest < awaited || self.newest < self.available_from
    }
}

fn is_late(beat: &(u32, Duration), at: Duration) -> bool {
    beat.1 + UNAVAILABLE_AFTER <= at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn divided(partitions: usize) -> Heartbeats {
        let mut beats = Heartbeats::default();
        beats.divide(Partitions::among(partitions, partitions).unwrap());
        beats
    }

    #[test]
    fn a_partition_without_beats_is_unavailable_until_they_come_back() {
        let mut beats = Heartbeats::default();
        for at in 0..100 {
            assert_eq!(beats.is_away(0, secs(at)), at >= 15, "{at}");
            assert_eq!(beats.may_be_away(secs(at)), at >= 15, "{at}");
            assert!(beats.due(secs(at)).is_some());
            assert_eq!(beats.due(secs(at)), None, "once a second");
        }
        assert!(beats.sent.len() < 20, "old beats are forgotten");
        // A late old beat does not stand for the newest one.
        beats.came_back(0, 50);
        assert!(beats.is_away(0, secs(100)));
        // The others still resend what they counted meanwhile.
        for at in 100..105 {
            let beat = beats.due(secs(at)).unwrap();
            assert_eq!(beat, u32::try_from(at).unwrap() + 1);
            beats.came_back(0, beat);
            beats.came_back(0, 50);
            assert_eq!(beats.is_away(0, secs(at)), at < 104, "{at}");
        }
        assert!(!beats.may_be_away(secs(104)));
        beats.due(secs(105));
        assert!(!beats.is_away(0, secs(119)) && beats.is_away(0, secs(120)));
    }

    #[test]
    fn late_beats_within_the_timeout_keep_a_partition_available() {
        let mut beats = Heartbeats::default();
        for at in 0..60 {
            beats.due(secs(at));
            if at >= 14 {
                beats.came_back(0, u32::try_from(at).unwrap() - 13);
            }
            assert!(!beats.may_be_away(secs(at)), "{at}");
        }
    }

    #[test]
    fn a_node_that_stops_sending_beats_is_cut_off() {
        let mut beats = divided(2);
        let beat = beats.due(secs(0)).unwrap();
        for partition in [0, 1] {
            beats.came_back(partition, beat);
        }
        for (at, is_away) in [(15, false), (16, true)] {
            assert_eq!(beats.may_be_away(secs(at)), is_away);
            assert_eq!(beats.is_away(1, secs(at)), is_away);
        }
    }

    #[test]
    fn only_the_partition_without_beats_is_unavailable() {
        let mut beats = divided(3);
        for at in 0..20 {
            let beat = beats.due(secs(at)).unwrap();
            for partition in [0, 2, 7] {
                beats.came_back(partition, beat);
            }
            let is_away = at >= 15;
            assert_eq!(beats.may_be_away(secs(at)), is_away, "{at}");
            let away = [0, 1, 2].map(|partition| beats.is_away(partition, secs(at)));
            assert_eq!(away, [false, is_away, false], "{at}");
            assert_eq!(beats.count_away(secs(at)), usize::from(is_away));
        }
        for _ in 0..2 {
            beats.came_back(1, 20 + BEATS_TO_RETURN);
            assert_eq!(beats.count_away(secs(20)), 0);
        }
    }

    /// A node that was cut off before it knew the partitions has received beats from none of them.
    #[test]
    fn new_partitions_are_unavailable_until_a_beat_came_back() {
        let mut beats = Heartbeats::default();
        for at in 0..16 {
            beats.due(secs(at));
        }
        beats.divide(Partitions::among(2, 2).unwrap());
        let away = |beats: &Heartbeats| [0, 1].map(|partition| beats.is_away(partition, secs(16)));
        assert_eq!(away(&beats), [true, true]);
        beats.came_back(1, 16 + BEATS_TO_RETURN);
        assert_eq!(away(&beats), [true, false]);
        beats.divide(Partitions::among(4, 4).unwrap());
        assert_eq!(beats.count_away(secs(16)), 4);
    }
}
