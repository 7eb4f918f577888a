//! How much does a call count, and does it count at all?

use core::num::NonZeroU32;

/// What is asked of a limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cost {
    /// To charge a call that counts so much, or nothing of it.
    Take(NonZeroU32),
    /// To say what a call that counts one would be told, and to charge nothing.
    Peek,
    /// To undo so much of what was charged, newest first as far as the algorithm can tell. A
    /// refund is never refused; what cannot be found any more is nothing.
    Refund(NonZeroU32),
}

impl Cost {
    /// A call that counts one.
    pub const ONE: Self = Self::Take(NonZeroU32::MIN);

    /// A call that counts `calls`; a peek if that is nothing.
    #[must_use]
    pub const fn take(calls: u32) -> Self {
        match NonZeroU32::new(calls) {
            Some(calls) => Self::Take(calls),
            None => Self::Peek,
        }
    }

    /// A refund of `calls`; a peek if that is nothing.
    #[must_use]
    pub const fn refund(calls: u32) -> Self {
        match NonZeroU32::new(calls) {
            Some(calls) => Self::Refund(calls),
            None => Self::Peek,
        }
    }
}

/// What is counted as a number: zero is a peek, below zero is a refund. What is beyond 32 bits
/// counts as the largest cost.
impl From<i64> for Cost {
    fn from(count: i64) -> Self {
        let calls = u32::try_from(count.unsigned_abs()).unwrap_or(u32::MAX);
        if count < 0 {
            Self::refund(calls)
        } else {
            Self::take(calls)
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
