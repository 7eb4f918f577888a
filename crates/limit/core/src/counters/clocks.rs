//! What becomes of a call whose counters are kept by nodes with clocks of their own?
//!
//! A node dates a call by its own clock. One whose clock is ahead adds to a stretch of time that
//! has not begun here; so whoever cares reads those stretches as well, as far ahead as clocks may
//! be apart, and a call must fit there, too. By how much that is, and where counters lie, callers
//! say.

use crate::cost::Cost;
use crate::counters::{AddThenRead, CounterIndex, Counters};
use crate::time::{DurationUs, TimestampUs};
use crate::verdict::{Outcome, Verdict};

impl AddThenRead {
    /// Added and read at one moment.
    #[must_use]
    pub const fn at_once(now: TimestampUs) -> Self {
        Self {
            added_at: now,
            read_at: now,
        }
    }

    /// Added by this node's clock, and read before any clock that is ahead by less than `by` shows
    /// more.
    #[must_use]
    pub fn ahead(now: TimestampUs, by: DurationUs) -> Self {
        Self {
            added_at: now,
            read_at: now + by,
        }
    }
}

impl Counters {
    /// From when on a counter matters to nobody whose clock shows this node's time.
    #[must_use]
    pub fn ends_at(&self, index: CounterIndex) -> TimestampUs {
        let begins_at = TimestampUs(index.0.saturating_mul(self.width().0));
        begins_at + self.matters_for()
    }

    /// How many of [`Self::to_read`] have not begun by the clock by which the call was added. They
    /// come first.
    #[must_use]
    pub fn not_begun(&self, call: AddThenRead) -> usize {
        self.to_read(call).len() - self.to_read(AddThenRead::at_once(call.added_at)).len()
    }

    /// Judges by this node's clock: `known` are the counters that have begun, newest first.
    #[must_use]
    pub fn judge_now(&self, now: TimestampUs, cost: Cost, known: &[u32]) -> Verdict {
        self.judge(AddThenRead::at_once(now), cost, known)
    }

    /// Judges by this node's clock, and by all clocks that may have come to `call.read_at`:
    /// `counts` are those of [`Self::to_read`]. What is said besides is by this node's clock.
    #[must_use]
    pub fn judge_by_all_clocks(&self, call: AddThenRead, cost: Cost, counts: &[u32]) -> Verdict {
        let now = call.added_at;
        let (not_begun, known) = counts.split_at(self.not_begun(call).min(counts.len()));
        let verdict = self.judge_now(now, cost, known);
        if !verdict.is_admitted() || not_begun.iter().all(|count| *count == 0) {
            return verdict;
        }
        if self.judge(call, cost, counts).is_admitted() {
            return verdict;
        }
        // Here it would fit, and in a stretch that has begun elsewhere it would not.
        let width = self.width().0;
        let next = DurationUs(width - now.0 % width);
        Verdict {
            outcome: Outcome::Reject {
                retry_after: Some(next),
            },
            remaining: 0,
            full_after: verdict.full_after.max(next),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sliding_window::SlidingWindow;
    use crate::sub_windows::SubWindows;
    use crate::testing::{MINUTE, a_minute, at};

    /// Ten calls a minute, counted in four parts.
    fn strict() -> Counters {
        SubWindows::strict(a_minute(10), 4).unwrap().counters()
    }

    fn ahead(now: &str) -> AddThenRead {
        AddThenRead::ahead(at(now), DurationUs::from_secs(1))
    }

    #[test]
    fn stretches_that_have_not_begun_here_come_first() {
        assert_eq!(strict().not_begun(ahead("07:10:13.9")), 0);
        assert_eq!(strict().not_begun(ahead("07:10:14")), 1);
        let call = AddThenRead::ahead(at("07:10:14"), MINUTE.times(60));
        assert_eq!(strict().not_begun(call), 4);
        assert_eq!(strict().to_read(call).len(), 9);
    }

    #[test]
    fn a_counter_ends_as_long_after_its_beginning_as_it_matters() {
        let index = strict().index_at(at("07:10:14"));
        assert_eq!(strict().ends_at(index), at("07:11:15"));
        assert_eq!(
            strict().ends_at(CounterIndex(u64::MAX)),
            TimestampUs(u64::MAX)
        );
    }

    #[test]
    fn a_call_must_fit_where_a_clock_that_is_ahead_has_counted() {
        let minute = SlidingWindow::new(a_minute(10)).counters();
        let call = ahead("07:10:59.5");
        let judge = |counts: &[u32]| minute.judge_by_all_clocks(call, Cost::ONE, counts);
        // Of the minute that begins, of this one with this call in it, of the one before.
        assert!(judge(&[0, 10, 0]).is_admitted());
        assert!(judge(&[0, 5, 0]).is_admitted());
        assert!(judge(&[5, 5, 0]).is_admitted());
        let verdict = judge(&[6, 5, 0]);
        let retry_after = Some(DurationUs(500_000));
        assert_eq!(verdict.outcome, Outcome::Reject { retry_after });
        assert_eq!(verdict.remaining, 0);
        // Over the limit by this node's own clock: that says when to come again.
        let own = minute.judge_now(call.added_at, Cost::ONE, &[11, 0]);
        assert_eq!(judge(&[6, 11, 0]), own);
        assert!(!own.is_admitted());
    }

    #[test]
    fn counts_that_are_missing_count_nothing() {
        let counts: [u32; 0] = [];
        assert!(
            strict()
                .judge_by_all_clocks(ahead("07:10:14"), Cost::ONE, &counts)
                .is_admitted()
        );
    }
}
