//! Counters that nodes with different clocks keep together.
//!
//! A node dates a request by its own clock. A node whose clock is ahead adds to an interval that
//! has not begun here. So a node reads those intervals as well, as far ahead as clocks may differ,
//! and a request must fit there too. Callers provide the largest difference and read the counters.

use crate::cost::Cost;
use crate::counters::{AddThenRead, CounterIndex, Counters};
use crate::time::{DurationUs, TimestampUs};
use crate::verdict::{Outcome, Verdict};

impl AddThenRead {
    /// Returns the times of a request that is added and read at once.
    #[must_use]
    pub const fn at_once(now: TimestampUs) -> Self {
        Self {
            added_at: now,
            read_at: now,
        }
    }

    /// Returns the times of a request that is added by this node's clock and read before any clock
    /// that is ahead by less than `by` shows more.
    #[must_use]
    pub fn ahead(now: TimestampUs, by: DurationUs) -> Self {
        Self {
            added_at: now,
            read_at: now + by,
        }
    }
}

impl Counters {
    /// Returns the time from which on a counter matters to no node whose clock agrees with this
    /// one.
    #[must_use]
    pub fn ends_at(&self, index: CounterIndex) -> TimestampUs {
        let begins_at = TimestampUs(index.0.saturating_mul(self.width().0));
        begins_at + self.valid_for()
    }

    /// Returns how many of [`Self::to_read`] have not begun by the clock that dated the request.
    /// They come first.
    #[must_use]
    pub fn not_begun(&self, times: AddThenRead) -> usize {
        self.to_read(times).len() - self.to_read(AddThenRead::at_once(times.added_at)).len()
    }

    /// Decides by this node's clock. `known` are the counters that have begun, newest first.
    #[must_use]
    pub fn decide_now(&self, now: TimestampUs, cost: Cost, known: &[u32]) -> Verdict {
        self.decide(AddThenRead::at_once(now), cost, known)
    }

    /// Decides by this node's clock, and by all clocks that may have reached `times.read_at`.
    /// `counts` are those of [`Self::to_read`]. The other values of the verdict follow this node's
    /// clock.
    #[must_use]
    pub fn decide_by_all_clocks(&self, times: AddThenRead, cost: Cost, counts: &[u32]) -> Verdict {
        let now = times.added_at;
        let (not_begun, known) = counts.split_at(self.not_begun(times).min(counts.len()));
        let verdict = self.decide_now(now, cost, known);
        if !verdict.is_allowed() || not_begun.iter().all(|count| *count == 0) {
            return verdict;
        }
        if self.decide(times, cost, counts).is_allowed() {
            return verdict;
        }
        // It fits by this clock, but not in an interval that has begun by another.
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

    /// Returns the counters of ten requests a minute, counted in four parts.
    fn strict() -> Counters {
        SubWindows::strict(a_minute(10), 4).unwrap().counters()
    }

    fn ahead(now: &str) -> AddThenRead {
        AddThenRead::ahead(at(now), DurationUs::from_secs(1))
    }

    #[test]
    fn intervals_that_have_not_begun_here_come_first() {
        assert_eq!(strict().not_begun(ahead("07:10:13.9")), 0);
        assert_eq!(strict().not_begun(ahead("07:10:14")), 1);
        let times = AddThenRead::ahead(at("07:10:14"), MINUTE.times(60));
        assert_eq!(strict().not_begun(times), 4);
        assert_eq!(strict().to_read(times).len(), 9);
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
    fn a_request_must_fit_where_a_clock_ahead_has_counted() {
        let minute = SlidingWindow::new(a_minute(10)).counters();
        let times = ahead("07:10:59.5");
        let judge = |counts: &[u32]| minute.decide_by_all_clocks(times, Cost::ONE, counts);
        // Order: the next minute, this one with this request in it, the one before.
        assert!(judge(&[0, 10, 0]).is_allowed());
        assert!(judge(&[0, 5, 0]).is_allowed());
        assert!(judge(&[5, 5, 0]).is_allowed());
        let verdict = judge(&[6, 5, 0]);
        let retry_after = Some(DurationUs(500_000));
        assert_eq!(verdict.outcome, Outcome::Reject { retry_after });
        assert_eq!(verdict.remaining, 0);
        // Over the limit by this node's own clock, which determines the retry time.
        let own = minute.decide_now(times.added_at, Cost::ONE, &[11, 0]);
        assert_eq!(judge(&[6, 11, 0]), own);
        assert!(!own.is_allowed());
    }

    #[test]
    fn counts_that_are_missing_count_nothing() {
        let counts: [u32; 0] = [];
        assert!(
            strict()
                .decide_by_all_clocks(ahead("07:10:14"), Cost::ONE, &counts)
                .is_allowed()
        );
    }
}
