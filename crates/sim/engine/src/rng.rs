//! Repeatable random numbers: the same seed gives the same numbers on every platform.
//!
//! Each purpose has its own stream, so that the same visitors come whatever the network does.
//! Logarithms come from `libm`: the standard library's differ between platforms.

use anteroom_room::split_mix::SplitMix;
use anteroom_room::time::DurationMs;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Purpose of a stream of numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// Behaviour and arrival times of visitors: one stream for each stream of arrivals.
    Arrivals(u32),
    /// Delay and loss of messages.
    Network,
    /// Names of processes, and the start of each node's first sync.
    NodeStarts,
    /// Deployment of a seed.
    Deployment,
    /// Promises of a seed's stores, and how they come back.
    Comebacks,
    /// Windows of a seed's limit of admissions.
    Windows,
    /// Turns that are held in some seeds.
    Turns,
    /// Browsers that throttle pages in some seeds.
    Throttled,
    /// Crowds that wait in some seeds.
    Crowds,
    /// Stores that lose their last moments again and again in some seeds.
    Flickers,
    /// Scheduled events of some seeds.
    Events,
}

/// Random draws from a stream of random words.
pub trait Draw {
    /// Returns the next word: all values are equally likely.
    fn word(&mut self) -> u64;

    /// Returns a uniform number in 0..1.
    fn unit(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1u64 << 53) as f64;
        (self.word() >> 11) as f64 * STEP
    }

    /// Returns true in `share` of all cases.
    fn chance(&mut self, share: f64) -> bool {
        // Without a draw where nothing depends on it: most shares are 0.
        share > 0.0 && self.unit() < share
    }

    /// Returns a uniform number in 0..`bound`; 0 if that is empty.
    fn below(&mut self, bound: u32) -> u32 {
        (((self.word() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// Returns a uniform length between two lengths, both included.
    fn between(&mut self, from: DurationMs, to: DurationMs) -> DurationMs {
        let width = to.less(from).0;
        if width == 0 {
            return from;
        }
        let width = u32::try_from(width).unwrap_or(u32::MAX - 1);
        DurationMs(from.0 + u64::from(self.below(width + 1)))
    }

    /// Returns an exponential number with this mean.
    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.unit())
    }

    /// Returns an exponential length of time with this mean.
    fn exponential_span(&mut self, mean: DurationMs) -> DurationMs {
        DurationMs(whole(self.exponential(mean.0 as f64)))
    }

    /// Returns a geometric number of tries with this mean, at least 1.
    fn geometric(&mut self, mean: f64) -> u32 {
        if mean <= 1.0 {
            return 1;
        }
        let failures = libm::log(1.0 - self.unit()) / libm::log(1.0 - 1.0 / mean);
        u32::try_from(whole(failures)).map_or(u32::MAX, |failures| failures.saturating_add(1))
    }
}

/// Converts a number that is not negative to whole units; saturates.
#[expect(
    clippy::cast_possible_truncation,
    reason = "conversions of floats saturate; fractions are meant to be cut off"
)]
#[must_use]
pub fn whole(number: f64) -> u64 {
    number as u64
}

/// Long stream for one purpose.
#[derive(Clone, Debug)]
pub struct SimRng(Pcg64Mcg);

impl SimRng {
    pub(crate) fn new(seed: u64, purpose: Purpose) -> Self {
        let salt = match purpose {
            Purpose::Network => 1,
            Purpose::NodeStarts => 2,
            Purpose::Deployment => 3,
            Purpose::Comebacks => 4,
            Purpose::Windows => 5,
            Purpose::Crowds => 6,
            Purpose::Flickers => 7,
            Purpose::Turns => 8,
            Purpose::Throttled => 9,
            Purpose::Events => 10,
            Purpose::Arrivals(stream) => 16 + u64::from(stream),
        };
        Self::salted(seed, salt)
    }

    /// Creates stream `salt` of a seed; each salt is for one purpose.
    #[must_use]
    pub fn salted(seed: u64, salt: u64) -> Self {
        let [seed, salt] = [seed, salt].map(|word| SplitMix(word).next_u64());
        Self(Pcg64Mcg::seed_from_u64(seed ^ salt))
    }
}

impl Draw for SimRng {
    fn word(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// Short stream of one visitor, so that its behaviour depends on no other visitor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VisitorRng(SplitMix);

impl VisitorRng {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(SplitMix(seed))
    }
}

impl Draw for VisitorRng {
    fn word(&mut self) -> u64 {
        self.0.next_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ_by_seed_and_purpose() {
        let first = |seed, purpose| SimRng::new(seed, purpose).word();
        let one = first(1, Purpose::Network);
        assert_eq!(one, first(1, Purpose::Network));
        assert_ne!(one, first(2, Purpose::Network));
        assert_ne!(one, first(1, Purpose::NodeStarts));
        assert_ne!(one, first(1, Purpose::Arrivals(0)));
    }

    #[test]
    fn draws_have_the_requested_means() {
        let mut rng = SimRng::new(7, Purpose::Network);
        let mean = |draw: &mut dyn FnMut() -> f64| (0..20_000).map(|_| draw()).sum::<f64>() / 2e4;
        let exponential = mean(&mut || rng.exponential(50.0));
        assert!((48.0..52.0).contains(&exponential), "{exponential}");
        let geometric = mean(&mut || f64::from(rng.geometric(4.0)));
        assert!((3.9..4.1).contains(&geometric), "{geometric}");
        let between = mean(&mut || rng.between(DurationMs(10), DurationMs(20)).0 as f64);
        assert!((14.9..15.1).contains(&between), "{between}");
    }

    #[test]
    fn bounds_are_kept() {
        let mut rng = VisitorRng::new(3);
        for _ in 0..1_000 {
            assert!(rng.below(3) < 3);
            assert!(
                (DurationMs(2)..=DurationMs(4))
                    .contains(&rng.between(DurationMs(2), DurationMs(4)))
            );
        }
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.geometric(1.0), 1);
    }
}
