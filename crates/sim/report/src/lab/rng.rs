//! Random numbers of the lab: one stream of the simulator for each purpose, so that the same
//! requests come whatever the network does.

use anteroom_limit::time::DurationUs;
use anteroom_room::split_mix::SplitMix;
use anteroom_sim::rng::{self, Draw as _, whole};

/// Purpose of a stream of numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// Arrival times and clients of requests.
    Traffic,
    /// Node of each request.
    Routing,
    /// Delays of messages.
    Network,
    /// Names of epochs.
    Names,
    /// Times of nodes' reports.
    Rounds,
    /// Pauses of writers that were too slow.
    Pauses,
}

/// Stream of numbers for one purpose.
#[derive(Clone, Debug)]
pub(crate) struct LabRng(rng::SimRng);

impl LabRng {
    pub(crate) fn new(seed: u64, purpose: Purpose) -> Self {
        let salt = match purpose {
            Purpose::Traffic => 1,
            Purpose::Routing => 2,
            Purpose::Network => 3,
            Purpose::Names => 4,
            Purpose::Rounds => 5,
            Purpose::Pauses => 6,
        };
        Self(rng::SimRng::salted(seed, salt))
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0.word()
    }

    /// Returns a uniform number in 0..`bound`; 0 if that is empty.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        self.0.below(bound)
    }

    /// Returns a length between half of `most` and all of it.
    pub(crate) fn half_or_more(&mut self, most: DurationUs) -> DurationUs {
        let half = most.0 / 2;
        DurationUs(most.0 - self.whole_below(half + 1))
    }

    /// Returns a length below this one; 0 if it is 0.
    pub(crate) fn part_of(&mut self, length: DurationUs) -> DurationUs {
        DurationUs(self.whole_below(length.0))
    }

    /// Returns an exponential length with this mean.
    pub(crate) fn exponential(&mut self, mean: DurationUs) -> DurationUs {
        DurationUs(self.whole_exponential(mean.0))
    }

    /// Returns an exponential whole number with this mean.
    pub(crate) fn whole_exponential(&mut self, mean: u64) -> u64 {
        whole(self.0.exponential(mean as f64))
    }

    fn whole_below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.word()) * u128::from(bound);
        u64::try_from(product >> 64).unwrap_or(0)
    }
}

/// Mixes a seed, so that adjacent seeds give unrelated words.
pub(crate) fn mixed(seed: u64) -> u64 {
    SplitMix(seed).next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ_by_seed_and_purpose() {
        let first = |seed, purpose| LabRng::new(seed, purpose).word();
        assert_eq!(first(1, Purpose::Traffic), first(1, Purpose::Traffic));
        assert_ne!(first(1, Purpose::Traffic), first(2, Purpose::Traffic));
        assert_ne!(first(1, Purpose::Traffic), first(1, Purpose::Network));
    }

    #[test]
    fn draws_keep_the_requested_means_and_bounds() {
        let mut rng = LabRng::new(7, Purpose::Network);
        let sum: u64 = (0..20_000)
            .map(|_| rng.exponential(DurationUs(5_000)).0)
            .sum();
        assert!((4_850..5_150).contains(&(sum / 20_000)), "{sum}");
        for _ in 0..1_000 {
            assert!(rng.below(3) < 3);
            assert!((5..=10).contains(&rng.half_or_more(DurationUs(10)).0));
        }
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.half_or_more(DurationUs(0)), DurationUs(0));
    }
}
