//! Cost of a request: what it takes from a limit, gives back, or only looks at.

use core::num::NonZeroU32;

/// Cost of one request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cost {
    /// Takes this much if all of it fits, and nothing otherwise.
    Take(NonZeroU32),
    /// Returns what a request of cost one would get, and takes nothing.
    Peek,
    /// Gives back this much, newest first as far as the algorithm can tell. A refund is always
    /// allowed. It ignores what the state no longer remembers.
    Refund(NonZeroU32),
}

impl Cost {
    /// Cost of one.
    pub const ONE: Self = Self::Take(NonZeroU32::MIN);

    /// Returns the cost of `requests` requests; a peek if that is zero.
    #[must_use]
    pub const fn take(requests: u32) -> Self {
        match NonZeroU32::new(requests) {
            Some(requests) => Self::Take(requests),
            None => Self::Peek,
        }
    }

    /// Returns a refund of `requests` requests; a peek if that is zero.
    #[must_use]
    pub const fn refund(requests: u32) -> Self {
        match NonZeroU32::new(requests) {
            Some(requests) => Self::Refund(requests),
            None => Self::Peek,
        }
    }
}

/// Reads a count: zero is a peek, below zero is a refund. Counts beyond 32 bits become the largest
/// cost.
impl From<i64> for Cost {
    fn from(count: i64) -> Self {
        let requests = u32::try_from(count.unsigned_abs()).unwrap_or(u32::MAX);
        if count < 0 {
            Self::refund(requests)
        } else {
            Self::take(requests)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_of_zero_peeks_and_a_negative_one_refunds() {
        for (count, cost) in [
            (0, Cost::Peek),
            (1, Cost::ONE),
            (7, Cost::take(7)),
            (-7, Cost::refund(7)),
            (i64::MAX, Cost::take(u32::MAX)),
            (i64::MIN, Cost::refund(u32::MAX)),
        ] {
            assert_eq!(Cost::from(count), cost, "{count}");
        }
    }
}
