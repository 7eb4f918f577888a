//! Does what this node tells still come back?
//!
//! Once a second it tells a number in each [partition](crate::partitions), under a name of its own,
//! as if a client had called. If one does not come back in a total within [`AWAY_AFTER`], then
//! something between here and whoever aggregates that lane is away, and totals of the clients there
//! do not arrive either, as far as is known.

use std::collections::VecDeque;
use std::time::Duration;

use crate::partitions::Partitions;

/// For how long a node goes on by itself, from what it has heard and what it counts. Longer than a
/// node takes to take over from one that crashed (a session of 6 s, and some seconds for all to
/// agree), or each crash would stop the calls of all; and each second longer is one in which nodes
/// let through what each knows nothing of.
pub const AWAY_AFTER: Duration = Duration::from_secs(15);
const BEAT_EVERY: Duration = Duration::from_secs(1);
/// Beats that must come back of a lane that was away before it is there again. What others counted
/// alone they tell again within [`TELL_AGAIN_AFTER`](crate::board::TELL_AGAIN_AFTER) of its being
/// there, so a beat that is told later comes back after that.
const BEATS_TO_RETURN: u32 = 4;

/// What was told and when, and what came back of it.
#[derive(Debug)]
pub(crate) struct Heartbeats {
    next_at: Duration,
    last: u32,
    /// Numbers and when they were told: the newest that should have come back, and all after it.
    told: VecDeque<(u32, Duration)>,
    partitions: Vec<Lane>,
    /// What came back of all lanes.
    heard_of_all: u32,
    /// What must come back of the lane that waits for most.
    returns_last: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    /// The newest that came back.
    heard: u32,
    /// It was away, and is until this one has come back.
    returns_with: u32,
}

impl Default for Heartbeats {
    fn default() -> Self {
        Self {
            next_at: Duration::ZERO,
            last: 0,
            told: VecDeque::new(),
            partitions: vec![Lane::default()],
            heard_of_all: 0,
            returns_last: 0,
        }
    }
}

impl Heartbeats {
    /// From now on there are so many lanes. One that is new has heard what all others have, and no
    /// more.
    pub(crate) fn divide(&mut self, partitions: Partitions) {
        let partition = Lane {
            heard: self.heard_of_all,
            returns_with: self.returns_last,
        };
        self.partitions = vec![partition; usize::from(partitions.count())];
    }

    /// The number to be told now in each lane, if it is time.
    pub(crate) fn due(&mut self, at: Duration) -> Option<u32> {
        if at < self.next_at {
            return None;
        }
        self.next_at = at + BEAT_EVERY;
        // At one a second it takes a century to get there.
        self.last = self.last.saturating_add(1);
        self.told.push_back((self.last, at));
        while self.told.get(1).is_some_and(|told| is_late(told, at)) {
            self.told.pop_front();
        }
        let awaited = self.awaited(at);
        for partition in self
            .partitions
            .iter_mut()
            .filter(|partition| partition.heard < awaited)
        {
            partition.returns_with = self.last.saturating_add(BEATS_TO_RETURN);
            self.returns_last = partition.returns_with;
        }
        Some(self.last)
    }

    /// This one came back, so all before it did, or do not matter any more.
    pub(crate) fn heard(&mut self, partition: u16, beat: u32) {
        if let Some(partition) = self.partitions.get_mut(usize::from(partition)) {
            partition.heard = beat.max(partition.heard);
            let heard = self.partitions.iter().map(|partition| partition.heard);
            self.heard_of_all = heard.min().unwrap_or(0);
        }
    }

    /// `false` if no lane is away. Quick: each call asks that.
    pub(crate) fn may_be_away(&self, at: Duration) -> bool {
        self.is_still(at) || self.heard_of_all < self.awaited(at).max(self.returns_last)
    }

    /// Whether one has been missed for too long in this lane.
    pub(crate) fn is_away(&self, partition: u16, at: Duration) -> bool {
        let partition = self.partitions.get(usize::from(partition));
        let awaited = self.awaited(at);
        self.is_still(at) || partition.is_none_or(|partition| partition.is_away(awaited))
    }

    /// How many lanes are away.
    pub(crate) fn count_away(&self, at: Duration) -> usize {
        let awaited = self.awaited(at);
        let is_away = |partition: &&Lane| partition.is_away(awaited);
        self.partitions.iter().filter(is_away).count()
    }

    /// Whether nobody tells beats any more: what is not told is not missed either.
    fn is_still(&self, at: Duration) -> bool {
        self.next_at + AWAY_AFTER <= at
    }

    /// The newest that should have come back by now.
    fn awaited(&self, at: Duration) -> u32 {
        let late = self.told.iter().take_while(|told| is_late(told, at));
        late.last().map_or(0, |(beat, _)| *beat)
    }
}

impl Lane {
    const fn is_away(self, awaited: u32) -> bool {
        self.heard < awaited || self.heard < self.returns_with
    }
}

fn is_late(told: &(u32, Duration), at: Duration) -> bool {
    told.1 + AWAY_AFTER <= at
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
    fn whoever_hears_nothing_of_itself_for_long_is_away_until_it_does() {
        let mut beats = Heartbeats::default();
        for at in 0..100 {
            assert_eq!(beats.is_away(0, secs(at)), at >= 15, "{at}");
            assert_eq!(beats.may_be_away(secs(at)), at >= 15, "{at}");
            assert!(beats.due(secs(at)).is_some());
            assert_eq!(beats.due(secs(at)), None, "once a second");
        }
        assert!(beats.told.len() < 20, "what was told long ago is forgotten");
        // Old ones that come at last do not say that the newest do.
        beats.heard(0, 50);
        assert!(beats.is_away(0, secs(100)));
        // Nor are others done with telling what they counted meanwhile.
        for at in 100..105 {
            let beat = beats.due(secs(at)).unwrap();
            assert_eq!(beat, u32::try_from(at).unwrap() + 1);
            beats.heard(0, beat);
            beats.heard(0, 50);
            assert_eq!(beats.is_away(0, secs(at)), at < 104, "{at}");
        }
        assert!(!beats.may_be_away(secs(104)));
        beats.due(secs(105));
        assert!(!beats.is_away(0, secs(119)) && beats.is_away(0, secs(120)));
    }

    #[test]
    fn whoever_hears_itself_late_but_in_time_is_not_away() {
        let mut beats = Heartbeats::default();
        for at in 0..60 {
            beats.due(secs(at));
            if at >= 14 {
                beats.heard(0, u32::try_from(at).unwrap() - 13);
            }
            assert!(!beats.may_be_away(secs(at)), "{at}");
        }
    }

    #[test]
    fn who_tells_no_beats_any_more_is_away() {
        let mut beats = divided(2);
        let beat = beats.due(secs(0)).unwrap();
        for partition in [0, 1] {
            beats.heard(partition, beat);
        }
        for (at, is_away) in [(15, false), (16, true)] {
            assert_eq!(beats.may_be_away(secs(at)), is_away);
            assert_eq!(beats.is_away(1, secs(at)), is_away);
        }
    }

    #[test]
    fn a_partition_that_is_silent_is_away_and_the_others_are_not() {
        let mut beats = divided(3);
        for at in 0..20 {
            let beat = beats.due(secs(at)).unwrap();
            for partition in [0, 2, 7] {
                beats.heard(partition, beat);
            }
            let is_away = at >= 15;
            assert_eq!(beats.may_be_away(secs(at)), is_away, "{at}");
            let away = [0, 1, 2].map(|partition| beats.is_away(partition, secs(at)));
            assert_eq!(away, [false, is_away, false], "{at}");
            assert_eq!(beats.count_away(secs(at)), usize::from(is_away));
        }
        for _ in 0..2 {
            beats.heard(1, 20 + BEATS_TO_RETURN);
            assert_eq!(beats.count_away(secs(20)), 0);
        }
    }

    /// Whoever was away before it knew the partitions has not heard of any of them.
    #[test]
    fn new_partitions_are_unavailable_until_something_came_back() {
        let mut beats = Heartbeats::default();
        for at in 0..16 {
            beats.due(secs(at));
        }
        beats.divide(Partitions::among(2, 2).unwrap());
        let away = |beats: &Heartbeats| [0, 1].map(|partition| beats.is_away(partition, secs(16)));
        assert_eq!(away(&beats), [true, true]);
        beats.heard(1, 16 + BEATS_TO_RETURN);
        assert_eq!(away(&beats), [true, false]);
        beats.divide(Partitions::among(4, 4).unwrap());
        assert_eq!(beats.count_away(secs(16)), 4);
    }
}
