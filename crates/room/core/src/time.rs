//! What is a point in time, and what a length of time? Both in whole milliseconds.
//!
//! Deliberately absent: any way to learn what time it is.

use core::fmt;
use core::ops::{Add, Sub};

/// A point in time: milliseconds since the Unix epoch on the room's clock.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Millis(pub u64);

/// A length of time in milliseconds.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Span(pub u64);

/// A calendar minute: whole minutes since the Unix epoch on the room's clock.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Minute(pub u64);

impl Millis {
    /// The Unix epoch.
    pub const ZERO: Self = Self(0);
    /// A point that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// How long ago `earlier` was; zero if it has not come yet.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// The minute that this point lies in.
    #[must_use]
    pub const fn minute(self) -> Minute {
        Minute(self.0 / 60_000)
    }

    /// How long until the next minute begins; never nothing.
    #[must_use]
    pub const fn until_next_minute(self) -> Span {
        Span(60_000 - self.0 % 60_000)
    }

    /// The first edge of a grid of width `grid` at or after this point.
    #[must_use]
    pub const fn ceil_to(self, grid: Span) -> Self {
        Self(self.0.div_ceil(grid.0).saturating_mul(grid.0))
    }

    /// The last edge of a grid of width `grid` at or before this point.
    #[must_use]
    pub const fn floor_to(self, grid: Span) -> Self {
        Self(self.0 - self.0 % grid.0)
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A length of whole seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000)
    }

    /// Whole seconds, rounded up.
    #[must_use]
    pub const fn secs_ceil(self) -> u64 {
        self.0.div_ceil(1_000)
    }

    /// This length `times` over, saturating.
    #[must_use]
    pub const fn times(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }

    /// This length without `other`; zero if `other` is longer.
    #[must_use]
    pub const fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Minute {
    /// The first millisecond of this minute.
    #[must_use]
    pub const fn starts_at(self) -> Millis {
        Millis(self.0.saturating_mul(60_000))
    }

    /// The minute before this one.
    #[must_use]
    pub const fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    /// The minute after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl Add<Span> for Millis {
    type Output = Self;

    fn add(self, rhs: Span) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl Sub<Span> for Millis {
    type Output = Self;

    fn sub(self, rhs: Span) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl Add for Span {
    type Output = Self;

    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl fmt::Display for Span {
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
        let grid = Span(5_000);
        assert_eq!(Millis(10_000).ceil_to(grid), Millis(10_000));
        assert_eq!(Millis(10_001).ceil_to(grid), Millis(15_000));
        assert_eq!(Millis(14_999).floor_to(grid), Millis(10_000));
    }

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Millis(1) - Span(2), Millis(0));
        assert_eq!(Millis::NEVER + Span(1), Millis::NEVER);
        assert_eq!(Millis(1).since(Millis(5)), Span(0));
    }
}
