//! Moving average of a client's requests on this node, in integers.

use crate::exact::{product, saturate_u32};
use crate::time::{DurationUs, TimestampUs};

/// Period of the average. Shorter ones see a burst sooner, but take it for lasting demand.
const PERIOD: DurationUs = DurationUs(250_000);

/// Weight of a period: one eighth. A single request is forgotten after two seconds; new demand is
/// visible after the same time.
const WEIGHT: u64 = 8;

/// Empty periods after which the average is below one request.
const PERIODS_MOST: u64 = 128;

/// Parts of one request a second, the unit of the average.
const PARTS: u64 = 1 << 16;

const SECOND: u64 = 1_000_000;

/// Recent demand of one client on this node.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Demand {
    began_at: TimestampUs,
    count: u32,
    /// Average, in parts of a request a second.
    average: u64,
}

impl Demand {
    /// Counts requests, whether they are allowed or rejected.
    pub(super) fn add(&mut self, now: TimestampUs, count: u32) {
        *self = self.at(now);
        self.count = self.count.saturating_add(count);
    }

    /// Returns how many requests to expect in the next `span`, rounded down.
    pub(super) fn expected(&self, now: TimestampUs, span: DurationUs) -> u32 {
        let here = self.at(now);
        // A second request in this period already indicates more to come.
        let rising = per_second(here.count.saturating_sub(1));
        let expected = product(here.average.max(rising), span.0) / u128::from(PARTS * SECOND);
        saturate_u32(u64::try_from(expected).unwrap_or(u64::MAX))
    }

    /// Returns this average with all finished periods counted in.
    fn at(&self, now: TimestampUs) -> Self {
        let passed = now.since(self.began_at).0 / PERIOD.0;
        if passed == 0 {
            return *self;
        }
        let mut average = self.average - self.average / WEIGHT + per_second(self.count) / WEIGHT;
        for _ in 1..passed.min(PERIODS_MOST) {
            average -= average.div_ceil(WEIGHT);
        }
        Self {
            began_at: self.began_at + PERIOD.times(passed),
            count: 0,
            average,
        }
    }
}

/// Converts `count` requests in each period to parts of a request a second.
fn per_second(count: u32) -> u64 {
    u64::from(count) * PARTS * (SECOND / PERIOD.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_steady(every: u64, times: u64) -> (Demand, TimestampUs) {
        let mut demand = Demand::default();
        for k in 0..times {
            demand.add(TimestampUs(k * every), 1);
        }
        (demand, TimestampUs(times * every))
    }

    #[test]
    fn steady_requests_are_expected_to_continue() {
        for (every, in_a_second) in [(10_000, 100), (100_000, 10), (1_000_000, 1)] {
            let (demand, now) = after_steady(every, 20 * SECOND / every);
            let expected = demand.expected(now, DurationUs::from_secs(10));
            assert!(
                expected.abs_diff(10 * in_a_second) <= 2 * in_a_second,
                "{expected}"
            );
        }
    }

    #[test]
    fn a_single_request_is_no_demand() {
        let (demand, now) = after_steady(1, 1);
        for later in [0, 250_000, 500_000, 60 * SECOND] {
            assert_eq!(
                demand.expected(now + DurationUs(later), DurationUs::from_secs(1)),
                0
            );
        }
    }

    #[test]
    fn a_burst_is_seen_at_once_and_forgotten() {
        let (demand, now) = after_steady(1, 100);
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
