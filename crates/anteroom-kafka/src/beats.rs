//! Does what this node tells still come back?
//!
//! Once a second it tells a number under a name of its own, as if a client had called. If one does not come back in a
//! total within [`AWAY_AFTER`], then something between here and whoever aggregates it is away, and totals of others do
//! not arrive either, as far as is known.

use std::collections::VecDeque;
use std::time::Duration;

/// For how long a node goes on by itself, from what it has heard and what it counts. Longer than a node takes to take
/// over from one that crashed (a session of 6 s, and some seconds for all to agree), or each crash would stop the
/// calls of all; and each second longer is one in which nodes let through what each knows nothing of.
pub const AWAY_AFTER: Duration = Duration::from_secs(15);
const BEAT_EVERY: Duration = Duration::from_secs(1);
/// Beats that are remembered. More than come in [`AWAY_AFTER`], so that the oldest of them tells.
const UNHEARD_MAX: usize = 64;

/// What was told, and when.
#[derive(Debug, Default)]
pub(crate) struct Beats {
    next_at: Duration,
    last: u32,
    unheard: VecDeque<(u32, Duration)>,
}

impl Beats {
    /// The number to be told now, if it is time.
    pub(crate) fn due(&mut self, at: Duration) -> Option<u32> {
        if at < self.next_at {
            return None;
        }
        self.next_at = at + BEAT_EVERY;
        // At one a second it takes a century to get there.
        self.last = self.last.saturating_add(1);
        if self.unheard.len() < UNHEARD_MAX {
            self.unheard.push_back((self.last, at));
        }
        Some(self.last)
    }

    /// This one came back, so all before it did, or do not matter any more.
    pub(crate) fn heard(&mut self, beat: u32) {
        while self.unheard.front().is_some_and(|(told, _)| *told <= beat) {
            self.unheard.pop_front();
        }
    }

    /// Whether one has been missed for too long.
    pub(crate) fn is_away(&self, at: Duration) -> bool {
        let oldest = self.unheard.front();
        oldest.is_some_and(|(_, told_at)| *told_at + AWAY_AFTER <= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn whoever_hears_nothing_of_itself_for_long_is_away_until_it_does() {
        let mut beats = Beats::default();
        for at in 0..100 {
            assert_eq!(beats.is_away(secs(at)), at >= 15, "{at}");
            assert!(beats.due(secs(at)).is_some());
            assert_eq!(beats.due(secs(at)), None, "once a second");
        }
        // Old ones that come at last do not say that the newest do.
        beats.heard(50);
        assert!(beats.is_away(secs(100)));
        beats.heard(100);
        assert!(!beats.is_away(secs(100)));
        assert_eq!(beats.due(secs(100)), Some(101));
        assert!(!beats.is_away(secs(114)) && beats.is_away(secs(115)));
    }

    #[test]
    fn whoever_hears_itself_late_but_in_time_is_not_away() {
        let mut beats = Beats::default();
        for at in 0..60 {
            beats.due(secs(at));
            if at >= 14 {
                beats.heard(u32::try_from(at).unwrap() - 13);
            }
            assert!(!beats.is_away(secs(at)), "{at}");
        }
    }
}
