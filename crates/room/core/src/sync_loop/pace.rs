//! How often may a room bother a store that others need as well?
//!
//! Whoever finds no slot at its node makes it sync; a crowd must not turn into a crowd of messages.

use crate::time::{DurationMs, Timestamp};

/// Between two syncs on average, of two messages each; a little less than the busiest period.
const INTERVAL: DurationMs = DurationMs(225);
/// Syncs at once, after a quiet time: as many as one visitor may wait for.
const BURST: u64 = 4;

/// A generic cell rate: each sync moves the time at which the allowance would be whole again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    interval: DurationMs,
    whole_at: Timestamp,
}

impl Pace {
    pub(super) fn new(is_paced: bool, now: Timestamp) -> Self {
        Self {
            interval: if is_paced { INTERVAL } else { DurationMs::ZERO },
            whole_at: now,
        }
    }

    /// A sync begins.
    pub(super) fn note_round(&mut self, now: Timestamp) {
        self.whole_at = self.whole_at.max(now) + self.interval;
    }

    /// When the next one may begin.
    pub(super) fn next_at(&self, now: Timestamp) -> Timestamp {
        let ahead = self.interval.times(BURST);
        let owed = self.whole_at.since(now) + self.interval;
        now + owed.less(ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp(1_000_000);

    /// Syncs that a crowd in a hurry gets within `time`.
    fn syncs_within(pace: &mut Pace, time: DurationMs) -> u32 {
        let mut now = START;
        let mut syncs = 0;
        while now < START + time && syncs < 10_000 {
            pace.note_round(now);
            syncs += 1;
            now = pace.next_at(now);
        }
        syncs
    }

    #[test]
    fn a_crowd_gets_four_syncs_at_once_then_nine_in_two_seconds() {
        let mut pace = Pace::new(true, START);
        assert_eq!(pace.next_at(START), START);
        assert_eq!(syncs_within(&mut pace, DurationMs::from_secs(9)), 43);
    }

    #[test]
    fn a_node_that_syncs_every_quarter_of_a_second_never_waits() {
        let mut pace = Pace::new(true, START);
        for round in 0..100 {
            let now = START + DurationMs(250 * round);
            assert_eq!(pace.next_at(now), now);
            pace.note_round(now);
        }
    }

    #[test]
    fn a_store_that_nobody_else_needs_may_be_asked_at_any_time() {
        let mut pace = Pace::new(false, START);
        for _ in 0..100 {
            pace.note_round(START);
            assert_eq!(pace.next_at(START), START);
        }
    }
}
