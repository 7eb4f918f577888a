//! Points in time between two microseconds.
//!
//! At seven requests a minute, one takes 8,571,428 4/7 microseconds. A limit that rounds gains or
//! loses requests all day. So the fraction is kept, in parts of a microsecond, of which there are
//! as many as the rate has requests. Each request then takes a whole number of parts, and sums are
//! exact.

use crate::exact::{div_ceil, product};
use crate::rate::Rate;
use crate::time::{DurationUs, TimestampUs};

/// A point in time between two microseconds.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct FineTimestamp {
    /// Microsecond in which the point lies.
    pub micros: TimestampUs,
    /// Offset into it, in parts of a microsecond. There are as many parts as the rate has requests.
    pub fraction: u32,
}

/// Distance between two requests of a rate.
///
/// In the methods, a *part* is one of `rate.calls()` parts of a microsecond. So one request takes
/// as many parts as the window has microseconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Pace {
    pub(crate) rate: Rate,
    /// Time that one request takes. Cached, so that the usual request costs no division.
    one: FineTimestamp,
}

impl FineTimestamp {
    /// Returns the first whole microsecond at or after this point.
    #[must_use]
    pub fn ceil(self) -> TimestampUs {
        self.micros + DurationUs(u64::from(self.fraction > 0))
    }
}

impl Pace {
    pub(crate) fn new(rate: Rate) -> Self {
        let mut pace = Self {
            rate,
            one: FineTimestamp::default(),
        };
        pace.one = pace.later(pace.one, u128::from(rate.window().0));
        pace
    }

    /// Returns the parts that `calls` requests take.
    pub(crate) fn parts(&self, calls: u64) -> u128 {
        product(calls, self.rate.window().0)
    }

    /// Reads a point that another rate may have written. A rate with fewer requests has fewer
    /// parts. A fraction out of range is rounded up, so that no spent request is lost.
    pub(crate) fn read(&self, point: FineTimestamp) -> FineTimestamp {
        if point.fraction == 0 || point.fraction < self.rate.requests() {
            return point;
        }
        FineTimestamp {
            micros: point.ceil(),
            fraction: 0,
        }
    }

    /// Returns how many parts `point` lies after `now`; zero if it does not.
    pub(crate) fn parts_after(&self, now: TimestampUs, point: FineTimestamp) -> u128 {
        if point.micros < now {
            return 0;
        }
        let whole = product(point.micros.since(now).0, u64::from(self.rate.requests()));
        whole + u128::from(point.fraction)
    }

    /// Returns the duration of `parts`, rounded up to a whole microsecond.
    pub(crate) fn span(&self, parts: u128) -> DurationUs {
        DurationUs(match self.rate.requests() {
            0 => u64::MAX,
            calls => div_ceil(parts, u64::from(calls)),
        })
    }

    /// Returns the point `calls` requests after `point`.
    pub(crate) fn after(&self, point: FineTimestamp, calls: u32) -> FineTimestamp {
        if calls == 1 {
            let fraction = u64::from(point.fraction) + u64::from(self.one.fraction);
            let micros = point.micros + DurationUs(self.one.micros.0);
            return self.carry(micros, fraction);
        }
        self.later(point, self.parts(calls.into()))
    }

    /// Returns the point `calls` requests before `point`, but not before `floor`. A `point` before
    /// `floor` stays as it is.
    pub(crate) fn before(
        &self,
        point: FineTimestamp,
        calls: u32,
        floor: TimestampUs,
    ) -> FineTimestamp {
        let ahead = self.parts_after(floor, point);
        let left = ahead.saturating_sub(self.parts(calls.into()));
        if ahead == 0 || self.rate.requests() == 0 {
            return point;
        }
        let start = FineTimestamp {
            micros: floor,
            fraction: 0,
        };
        self.later(start, left)
    }

    fn later(&self, point: FineTimestamp, parts: u128) -> FineTimestamp {
        let calls = u128::from(self.rate.requests());
        if calls == 0 {
            return point;
        }
        let sum = parts + u128::from(point.fraction);
        let (whole, fraction) = match u64::try_from(sum) {
            Ok(sum) => {
                let calls = u64::from(self.rate.requests());
                (sum / calls, sum % calls)
            }
            Err(_) => (
                u64::try_from(sum / calls).unwrap_or(u64::MAX),
                u64::try_from(sum % calls).unwrap_or(0),
            ),
        };
        self.carry(point.micros + DurationUs(whole), fraction)
    }

    /// Carries a full microsecond over. `fraction` is below twice the number of requests.
    fn carry(&self, micros: TimestampUs, fraction: u64) -> FineTimestamp {
        let calls = u64::from(self.rate.requests());
        let (micros, fraction) = if fraction >= calls {
            (micros + DurationUs(1), fraction.saturating_sub(calls))
        } else {
            (micros, fraction)
        };
        FineTimestamp {
            micros,
            fraction: u32::try_from(fraction).unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(calls: u32) -> Pace {
        Pace::new(Rate::new(calls, DurationUs::from_secs(60)).unwrap())
    }

    fn fine(micros: u64, fraction: u32) -> FineTimestamp {
        FineTimestamp {
            micros: TimestampUs(micros),
            fraction,
        }
    }

    #[test]
    fn seven_requests_a_minute_take_exactly_a_minute() {
        let pace = pace(7);
        assert_eq!(pace.after(fine(0, 0), 1), fine(8_571_428, 4));
        let mut point = fine(0, 0);
        for _ in 0..7 {
            point = pace.after(point, 1);
        }
        assert_eq!(point, fine(60_000_000, 0));
        assert_eq!(pace.after(fine(0, 0), 7), point);
    }

    #[test]
    fn before_undoes_after_and_stops_at_the_floor() {
        let pace = pace(7);
        let start = fine(1_000, 3);
        let later = pace.after(start, 5);
        assert_eq!(pace.before(later, 5, TimestampUs(1_000)), start);
        assert_eq!(pace.before(later, 6, TimestampUs(1_000)), fine(1_000, 0));
        assert_eq!(pace.before(start, 1, TimestampUs(1_001)), start);
    }

    #[test]
    fn a_fraction_that_is_out_of_range_is_carried_up() {
        assert_eq!(pace(7).read(fine(5, 6)), fine(5, 6));
        assert_eq!(pace(5).read(fine(5, 6)), fine(6, 0));
        assert_eq!(pace(0).read(fine(5, 0)), fine(5, 0));
        assert_eq!(pace(0).read(fine(5, 1)), fine(6, 0));
    }

    #[test]
    fn a_span_in_parts_is_rounded_up() {
        let pace = pace(7);
        assert_eq!(pace.parts_after(TimestampUs(10), fine(12, 3)), 17);
        assert_eq!(pace.span(17), DurationUs(3));
        assert_eq!(pace.parts_after(TimestampUs(13), fine(12, 3)), 0);
    }
}
