//! Promise 5, its other half: a slot that nobody uses where it lies is back at the parent within
//! two of its periods.
//!
//! In use is what was taken or asked for lately; a child that speaks to its parent may keep that
//! much.

use anteroom_room::time::{DurationMs, Timestamp};

use super::Checkers;
use crate::outcome::Promise;

/// Stretches that are looked back at. A child counts by two periods of its own clock, which overlap
/// three of anybody else's; and what was asked for in one of them comes in the next.
const LOOKED_AT: usize = 4;

/// What a child took, handed on or was asked for, by periods.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uses {
    period: DurationMs,
    /// Since it spoke last. It asks for what these lacked when it speaks.
    untold: u32,
    newest: u64,
    /// By when it spoke, the newest stretch first.
    counts: [u32; LOOKED_AT],
}

impl Uses {
    pub(crate) fn new(period: DurationMs) -> Self {
        Self {
            period,
            untold: 0,
            newest: 0,
            counts: [0; LOOKED_AT],
        }
    }

    pub(crate) fn note(&mut self, count: u32) {
        self.untold = self.untold.saturating_add(count);
    }

    /// It speaks: how many there were lately, as far as two periods go back, or a little further.
    pub(crate) fn tell(&mut self, now: Timestamp) -> u32 {
        let index = now.0 / self.period.0;
        let steps = usize::try_from(index.saturating_sub(self.newest)).unwrap_or(usize::MAX);
        let steps = steps.min(LOOKED_AT);
        self.counts.rotate_right(steps);
        self.counts[..steps].fill(0);
        self.newest = self.newest.max(index);
        let untold = std::mem::take(&mut self.untold);
        self.counts[0] = self.counts[0].saturating_add(untold);
        let counts = self.counts.iter();
        counts.fold(0u32, |sum, count| sum.saturating_add(*count))
    }
}

impl Checkers {
    /// A child has told its parent what it keeps, and had use for no more than `used` of it.
    pub(crate) fn check_kept(&mut self, kept: u32, used: u32, now: Timestamp) {
        if kept > used && self.has_promised_limits && self.is_calm(now) {
            self.report(Promise::NoWaste, now, || {
                format!("{kept} slots are kept where {used} were in use for two periods")
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_in_use_counts_until_a_fourth_period_begins() {
        let mut uses = Uses::new(DurationMs(250));
        uses.note(3);
        assert_eq!(uses.tell(Timestamp(1_000)), 3);
        uses.note(1);
        assert_eq!(uses.tell(Timestamp(1_249)), 4);
        assert_eq!(uses.tell(Timestamp(1_999)), 4);
        assert_eq!(uses.tell(Timestamp(2_249)), 0);
        uses.note(1);
        assert_eq!(uses.tell(Timestamp(9_000)), 1);
    }
}
