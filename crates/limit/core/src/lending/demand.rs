//! How many calls will come in the next moments? A moving figure, in integers.

use crate::exact::{calls, product};
use crate::time::{DurationUs, TimestampUs};

/// Calls are counted by such periods. Shorter ones see a burst sooner, and take it for lasting.
const PERIOD: DurationUs = DurationUs(250_000);

/// Each period weighs an eighth: a single call is forgotten after two seconds, and demand that has
/// begun is known after as long.
const WEIGHT: u64 = 8;

/// After so many empty periods nothing is left of the figure that would be worth a call.
const PERIODS_MOST: u64 = 128;

/// The figure is kept in so many parts of a call a second.
const PARTS: u64 = 1 << 16;

const SECOND: u64 = 1_000_000;

/// How often one client has called here lately.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Demand {
    began_at: TimestampUs,
    count: u32,
    /// In parts of a call a second.
    figure: u64,
}

impl Demand {
    /// Counts calls, whatever becomes of them.
    pub(super) fn add(&mut self, now: TimestampUs, count: u32) {
        *self = self.at(now);
        self.count = self.count.saturating_add(count);
    }

    /// How many calls are expected in the next `span`, rounded down.
    pub(super) fn expected(&self, now: TimestampUs, span: DurationUs) -> u32 {
        let here = self.at(now);
        // Calls of this period that are not the only one say that there is more to come.
        let rising = per_second(here.count.saturating_sub(1));
        let expected = product(here.figure.max(rising), span.0) / u128::from(PARTS * SECOND);
        calls(u64::try_from(expected).unwrap_or(u64::MAX))
    }

    /// This figure, with the periods that are over counted in.
    fn at(&self, now: TimestampUs) -> Self {
        let passed = now.since(self.began_at).0 / PERIOD.0;
        if passed == 0 {
            return *self;
        }
        let mut figure = self.figure - self.figure / WEIGHT + per_second(self.count) / WEIGHT;
        for _ in 1..passed.min(PERIODS_MOST) {
            figure -= figure.div_ceil(WEIGHT);
        }
        Self {
            began_at: self.began_at + PERIOD.times(passed),
            count: 0,
            figure,
        }
    }
}

/// In parts of a call a second, if there are as many in each period.
fn per_second(count: u32) -> u64 {
    u64::from(count) * PARTS * (SECOND / PERIOD.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(every: u64, times: u64) -> (Demand, TimestampUs) {
        let mut demand = Demand::default();
        for k in 0..times {
            demand.add(TimestampUs(k * every), 1);
        }
        (demand, TimestampUs(times * every))
    }

    #[test]
    fn steady_calls_are_expected_as_they_came() {
        for (every, in_a_second) in [(10_000, 100), (100_000, 10), (1_000_000, 1)] {
            let (demand, now) = called(every, 20 * SECOND / every);
            let expected = demand.expected(now, DurationUs::from_secs(10));
            assert!(
                expected.abs_diff(10 * in_a_second) <= 2 * in_a_second,
                "{expected}"
            );
        }
    }

    #[test]
    fn a_single_call_is_no_demand() {
        let (demand, now) = called(1, 1);
        for later in [0, 250_000, 500_000, 60 * SECOND] {
            assert_eq!(
                demand.expected(now + DurationUs(later), DurationUs::from_secs(1)),
                0
            );
        }
    }

    #[test]
    fn a_burst_is_seen_at_once_and_forgotten() {
        let (demand, now) = called(1, 100);
        assert!(demand.expected(now, DurationUs::from_secs(1)) >= 300);
        let later = now + DurationUs::from_secs(20);
        assert_eq!(demand.expected(later, DurationUs::from_secs(5)), 0);
    }

    #[test]
    fn nothing_overflows() {
        let mut demand = Demand::default();
        demand.add(TimestampUs(0), u32::MAX);
        demand.add(TimestampUs(1), u32::MAX);
        assert_eq!(
            demand.expected(TimestampUs(2), DurationUs(u64::MAX)),
            u32::MAX
        );
        demand.add(TimestampUs(u64::MAX), 1);
    }
}
