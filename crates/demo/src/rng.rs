//! Random choices of the demo's visitors.
//!
//! The same seed gives the same choices. The bias of the ranges (below one in 2^32 here) does not
//! matter.

use std::ops::RangeInclusive;
use std::time::Duration;

use anteroom_room::split_mix::SplitMix;

/// Seeded random number generator of one visitor.
#[derive(Clone, Debug)]
pub(crate) struct ChoiceRng(SplitMix);

impl ChoiceRng {
    /// Creates the generator of a visitor: same seed and number, same choices.
    pub(crate) const fn new(seed: u64, visitor: u32) -> Self {
        // The odd constant spreads neighbouring numbers over the whole state.
        let spread = (visitor as u64).wrapping_mul(0xD1B5_4A32_D192_ED03);
        Self(SplitMix(seed ^ spread))
    }

    /// Returns a number within `range`, both ends included; the low end if the range is empty.
    pub(crate) fn number(&mut self, range: &RangeInclusive<u32>) -> u32 {
        let (low, high) = (*range.start(), *range.end());
        let width = u64::from(high.saturating_sub(low)) + 1;
        let offset = self.0.next_u64() % width;
        low + u32::try_from(offset).expect("offset is at most high - low, a u32")
    }

    /// Returns a duration within `range`, to the microsecond; the low end if the range is empty.
    pub(crate) fn duration(&mut self, range: &RangeInclusive<Duration>) -> Duration {
        let width = range.end().saturating_sub(*range.start());
        let micros = u64::try_from(width.as_micros()).unwrap_or(u64::MAX);
        let offset = self.0.next_u64() % micros.saturating_add(1);
        *range.start() + Duration::from_micros(offset)
    }

    /// Whether something with a probability of `percent` happens.
    pub(crate) fn happens(&mut self, percent: u32) -> bool {
        self.number(&(1..=100)) <= percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_and_visitor_choose_the_same() {
        let choices = |visitor| {
            let mut rng = ChoiceRng::new(7, visitor);
            (0..8)
                .map(|_| rng.number(&(0..=1_000_000)))
                .collect::<Vec<_>>()
        };
        assert_eq!(choices(1), choices(1));
        assert_ne!(choices(1), choices(2));
    }

    #[test]
    fn choices_stay_within_their_range_and_reach_both_ends() {
        let mut rng = ChoiceRng::new(1, 1);
        let numbers: Vec<u32> = (0..200).map(|_| rng.number(&(3..=5))).collect();
        assert_eq!(numbers.iter().min(), Some(&3));
        assert_eq!(numbers.iter().max(), Some(&5));
        let range = Duration::from_millis(10)..=Duration::from_millis(20);
        assert!((0..200).all(|_| range.contains(&rng.duration(&range))));
        assert_eq!(rng.number(&RangeInclusive::new(9, 4)), 9);
    }

    #[test]
    fn zero_percent_never_happens_and_a_hundred_always_does() {
        let mut rng = ChoiceRng::new(1, 1);
        assert!((0..200).all(|_| !rng.happens(0) && rng.happens(100)));
    }
}
