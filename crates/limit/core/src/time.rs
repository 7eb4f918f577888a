//! Points in time and durations, both in whole microseconds.
//!
//! Finer than the milliseconds of rooms, because a limit may allow a million requests a second.
//! Deliberately absent: any clock.

use core::fmt;
use core::ops::{Add, Sub};

/// Point in time: microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TimestampUs(pub u64);

/// Duration in microseconds.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct DurationUs(pub u64);

impl TimestampUs {
    /// Returns the time since `earlier`; zero if it has not come yet.
    #[must_use]
    pub const fn since(self, earlier: Self) -> DurationUs {
        DurationUs(self.0.saturating_sub(earlier.0))
    }
}

impl DurationUs {
    /// Zero duration.
    pub const ZERO: Self = Self(0);

    /// Creates a duration of whole seconds, saturating.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    /// Returns whole seconds, rounded up.
    #[must_use]
    pub const fn secs_ceil(self) -> u64 {
        self.0.div_ceil(1_000_000)
    }

    /// Multiplies by `times`, saturating.
    #[must_use]
    pub const fn times(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

impl Add<DurationUs> for TimestampUs {
    type Output = Self;

    fn add(self, rhs: DurationUs) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl Add for DurationUs {
    type Output = Self;

    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl Sub<DurationUs> for TimestampUs {
    type Output = Self;

    fn sub(self, rhs: DurationUs) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl From<DurationUs> for core::time::Duration {
    fn from(span: DurationUs) -> Self {
        Self::from_micros(span.0)
    }
}

impl fmt::Display for DurationUs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_multiple_of(1_000_000) {
            write!(f, "{} s", self.0 / 1_000_000)
        } else if self.0.is_multiple_of(1_000) {
            write!(f, "{} ms", self.0 / 1_000)
        } else {
            write!(f, "{} us", self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(TimestampUs(1) - DurationUs(2), TimestampUs(0));
        assert_eq!(TimestampUs(u64::MAX) + DurationUs(1), TimestampUs(u64::MAX));
        assert_eq!(TimestampUs(1).since(TimestampUs(5)), DurationUs::ZERO);
        assert_eq!(
            DurationUs::from_secs(u64::MAX).times(2),
            DurationUs(u64::MAX)
        );
    }

    #[test]
    fn seconds_are_rounded_up() {
        assert_eq!(DurationUs(1).secs_ceil(), 1);
        assert_eq!(DurationUs(2_000_000).secs_ceil(), 2);
    }

    #[test]
    fn a_length_is_shown_in_the_largest_unit_that_is_whole() {
        assert_eq!(DurationUs::from_secs(60).to_string(), "60 s");
        assert_eq!(DurationUs(1_500_000).to_string(), "1500 ms");
        assert_eq!(DurationUs(7).to_string(), "7 us");
    }
}
