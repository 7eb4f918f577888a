//! Checker of invariant 5, second half: a child returns a slot that it does not use within two of
//! its periods.
//!
//! Used are slots that it granted or was requested for lately; a child that syncs may keep that
//! many.

use anteroom_room::time::{DurationMs, Timestamp};

use super::Checkers;
use crate::outcome::Invariant;

/// Number of periods that count as lately. A child counts by two periods of its own clock, which
/// overlap three of another clock. Requests in one of them lead to grants in the next.
const PERIODS_COUNTED: usize = 4;

/// Slots that a child took, granted or was requested for, by period.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uses {
    period: DurationMs,
    /// Slots since its last sync. A sync requests the slots that were missing.
    unreported: u32,
    newest: u64,
    /// Slots by period of their sync, newest period first.
    counts: [u32; PERIODS_COUNTED],
}

impl Uses {
    pub(crate) fn new(period: DurationMs) -> Self {
        Self {
            period,
            unreported: 0,
            newest: 0,
            counts: [0; PERIODS_COUNTED],
        }
    }

    pub(crate) fn note(&mut self, count: u32) {
        self.unreported = self.unreported.saturating_add(count);
    }

    /// Ends the present sync interval and returns the slots used in the last two periods, or
    /// slightly more.
    pub(crate) fn take_recent(&mut self, now: Timestamp) -> u32 {
        let index = now.0 / self.period.0;
        let steps = usize::try_from(index.saturating_sub(self.newest)).unwrap_or(usize::MAX);
        let steps = steps.min(PERIODS_COUNTED);
        self.counts.rotate_right(steps);
        self.counts[..steps].fill(0);
        self.newest = self.newest.max(index);
        let unreported = std::mem::take(&mut self.unreported);
        self.counts[0] = self.counts[0].saturating_add(unreported);
        let counts = self.counts.iter();
        counts.fold(0u32, |sum, count| sum.saturating_add(*count))
    }
}

impl Checkers {
    /// Checks that a child keeps at most the `used` slots.
    pub(crate) fn check_kept(&mut self, kept: u32, used: u32, now: Timestamp) {
        if kept > used && self.keeps_limits && self.is_calm(now) {
            self.report(Invariant::NoWaste, now, || {
                format!("a child keeps {kept} slots, of which {used} were in use for two periods")
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_slots_count_until_a_fourth_period_begins() {
        let mut uses = Uses::new(DurationMs(250));
        uses.note(3);
        assert_eq!(uses.take_recent(Timestamp(1_000)), 3);
        uses.note(1);
        assert_eq!(uses.take_recent(Timestamp(1_249)), 4);
        assert_eq!(uses.take_recent(Timestamp(1_999)), 4);
        assert_eq!(uses.take_recent(Timestamp(2_249)), 0);
        uses.note(1);
        assert_eq!(uses.take_recent(Timestamp(9_000)), 1);
    }
}
