//! Points in time and lengths of time, both in whole milliseconds.
//!
//! Deliberately absent: any way to read a clock.

use core::fmt;
use core::ops::{Add, Sub};

/// Point in time: milliseconds since the Unix epoch on the room's clock.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Timestamp(pub u64);

/// Length of time in milliseconds.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct DurationMs(pub u64);

/// Calendar minute: whole minutes since the Unix epoch on the room's clock.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Minute(pub u64);

impl Timestamp {
    /// The Unix epoch.
    pub const ZERO: Self = Self(0);
    /// Point that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// Returns the time since `earlier`; zero if that has not come yet.
    #[must_use]
    pub const fn since(self, earlier: Self) -> DurationMs {
        DurationMs(self.0.saturating_sub(earlier.0))
    }

    /// Returns the minute of this point.
    #[must_use]
    pub const fn minute(self) -> Minute {
        Minute(self.0 / 60_000)
    }

    /// Returns the time until the next minute begins; never zero.
    #[must_use]
    pub const fn until_next_minute(self) -> DurationMs {
        DurationMs(60_000 - self.0 % 60_000)
    }

    /// Returns the first edge of a grid of width `grid` at or after this point.
    #[must_use]
    pub const fn ceil_to(self, grid: DurationMs) -> Self {
        Self(self.0.div_ceil(grid.0).saturating_mul(grid.0))
    }

    /// Returns the last edge of a grid of width `grid` at or before this point.
    #[must_use]
    pub const fn floor_to(self, grid: DurationMs) -> Self {
        Self(self.0 - self.0 % grid.0)
    }
}

impl DurationMs {
    /// Length of zero.
    pub const ZERO: Self = Self(0);

    /// Returns a length of whole seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000)
    }

    /// Returns whole seconds, rounded up.
    #[must_use]
    pub const fn secs_ceil(self) -> u64 {
        self.0.div_ceil(1_000)
    }

    /// Returns this length `times` over, saturating.
    #[must_use]
    pub const fn times(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }

    /// Returns this length without `other`; zero if `other` is longer.
    #[must_use]
    pub const fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Minute {
    /// Returns the first millisecond of this minute.
    #[must_use]
    pub const fn starts_at(self) -> Timestamp {
        Timestamp(self.0.saturating_mul(60_000))
    }

    /// Returns the minute before this one.
    #[must_use]
    pub const fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    /// Returns the minute after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl Add<DurationMs> for Timestamp {
    type Output = Self;

    fn add(self, rhs: DurationMs) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl Sub<DurationMs> for Timestamp {
    type Output = Self;

    fn sub(self, rhs: DurationMs) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl Add for DurationMs {
    type Output = Self;

    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl fmt::Display for DurationMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 1_000 {
            write!(f, "{} ms", self.0)
        } else if self.0.is_multiple_of(1_000) {
            write!(f, "{} s", self.0 / 1_000)
        } else {
            write!(f, "{}.{:03} s", self.0 / 1_000, self.0 % 1_000)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_of_a_grid_are_multiples_of_its_width() {
        let grid = DurationMs(5_000);
        assert_eq!(Timestamp(10_000).ceil_to(grid), Timestamp(10_000));
        assert_eq!(Timestamp(10_001).ceil_to(grid), Timestamp(15_000));
        assert_eq!(Timestamp(14_999).floor_to(grid), Timestamp(10_000));
    }

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Timestamp(1) - DurationMs(2), Timestamp(0));
        assert_eq!(Timestamp::NEVER + DurationMs(1), Timestamp::NEVER);
        assert_eq!(Timestamp(1).since(Timestamp(5)), DurationMs(0));
    }
}
