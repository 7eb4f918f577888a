//! How long does a page take, given how many are inside?
//!
//! Not a queueing model: one formula that is flat up to a capacity and quadratic beyond it, as a
//! shop is whose visitors start to wait for each other.

use std::time::Duration;

/// The longest that a page ever takes. Without an end, a shop that was overrun would still be
/// answering when the demo is over.
const LONGEST: Duration = Duration::from_secs(10);

/// How long pages take.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ServiceTime {
    /// Time of a page while no more than `capacity` are inside.
    pub base: Duration,
    /// How many the shop can bear.
    pub capacity: u32,
}

impl ServiceTime {
    /// Time of a page while `load` are inside: `base` times the square of `load / capacity`,
    /// never below `base` and never above 10 s.
    #[must_use]
    pub fn of(&self, load: usize) -> Duration {
        let load = u32::try_from(load).unwrap_or(u32::MAX);
        let ratio = f64::from(load) / f64::from(self.capacity.max(1));
        let factor = ratio.max(1.0);
        let seconds = self.base.as_secs_f64() * factor * factor;
        Duration::from_secs_f64(seconds.min(LONGEST.as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_gets_quadratically_slower_beyond_the_capacity() {
        let time = ServiceTime {
            base: Duration::from_millis(20),
            capacity: 50,
        };
        for (load, ms) in [
            (0, 20),
            (50, 20),
            (100, 80),
            (500, 2_000),
            (usize::MAX, 10_000),
        ] {
            assert_eq!(time.of(load), Duration::from_millis(ms), "load {load}");
        }
    }
}
