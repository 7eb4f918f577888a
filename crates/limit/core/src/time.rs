//! What is a point in time, and what a length of time? Both in whole microseconds.
//!
//! Finer than the milliseconds of rooms: a limit of a million calls a second is a limit too.
//! Deliberately absent: any way to learn what time it is.

use core::fmt;
use core::ops::{Add, Sub};

/// A point in time: microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Micros(pub u64);

/// A length of time in microseconds.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct MicroSpan(pub u64);

impl Micros {
    /// How long ago `earlier` was; zero if it has not come yet.
    #[must_use]
    pub const fn since(self, earlier: Self) -> MicroSpan {
        MicroSpan(self.0.saturating_sub(earlier.0))
    }
}

impl MicroSpan {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A length of whole seconds, saturating.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    /// Whole seconds, rounded up.
    #[must_use]
    pub const fn secs_ceil(self) -> u64 {
        self.0.div_ceil(1_000_000)
    }

    /// This length `times` over, saturating.
    #[must_use]
    pub const fn times(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

impl Add<MicroSpan> for Micros {
    type Output = Self;

    fn add(self, rhs: MicroSpan) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl Add for MicroSpan {
    type Output = Self;

    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl Sub<MicroSpan> for Micros {
    type Output = Self;

    fn sub(self, rhs: MicroSpan) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl From<MicroSpan> for core::time::Duration {
    fn from(span: MicroSpan) -> Self {
        Self::from_micros(span.0)
    }
}

impl fmt::Display for MicroSpan {
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
        assert_eq!(Micros(1) - MicroSpan(2), Micros(0));
        assert_eq!(Micros(u64::MAX) + MicroSpan(1), Micros(u64::MAX));
        assert_eq!(Micros(1).since(Micros(5)), MicroSpan::ZERO);
        assert_eq!(MicroSpan::from_secs(u64::MAX).times(2), MicroSpan(u64::MAX));
    }

    #[test]
    fn seconds_are_rounded_up() {
        assert_eq!(MicroSpan(1).secs_ceil(), 1);
        assert_eq!(MicroSpan(2_000_000).secs_ceil(), 2);
    }

    #[test]
    fn a_length_is_shown_in_the_largest_unit_that_is_whole() {
        assert_eq!(MicroSpan::from_secs(60).to_string(), "60 s");
        assert_eq!(MicroSpan(1_500_000).to_string(), "1500 ms");
        assert_eq!(MicroSpan(7).to_string(), "7 us");
    }
}
