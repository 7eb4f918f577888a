//! Pace of the syncs of one room with a store that others use as well.
//!
//! A visitor who finds no slot at its node makes it sync; many visitors must not cause many
//! messages.

use crate::time::{DurationMs, Timestamp};

/// Average time between two syncs, of two messages each; a little less than the shortest period.
const INTERVAL: DurationMs = DurationMs(225);
/// Syncs at once, after a quiet time: as many as one visitor may wait for.
const BURST: u64 = 4;

/// Generic cell rate: each sync moves the time at which the allowance would be whole again.
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

    /// Records that a sync begins.
    pub(super) fn note_sync(&mut self, now: Timestamp) {
        self.whole_at = self.whole_at.max(now) + self.interval;
    }

    /// Returns the time at which the next sync may begin.
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

    /// Counts the syncs within `time` if each begins as soon as it may.
    fn syncs_within(pace: &mut Pace, time: DurationMs) -> u32 {
        let mut now = START;
        let mut syncs = 0;
        while now < START + time && syncs < 10_000 {
            pace.note_sync(now);
            syncs += 1;
            now = pace.next_at(now);
        }
        syncs
    }

    #[test]
    fn a_hurry_gets_four_syncs_at_once_then_nine_in_two_seconds() {
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
            pace.note_sync(now);
        }
    }

    #[test]
    fn an_exclusive_store_has_no_pace() {
        let mut pace = Pace::new(false, START);
        for _ in 0..100 {
            pace.note_sync(START);
            assert_eq!(pace.next_at(START), START);
        }
    }
}
