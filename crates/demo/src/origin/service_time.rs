//! Time of a page, as a function of the number of active visitors.
//!
//! Not a queueing model: a formula that is flat up to a capacity and quadratic beyond it, like a
//! shop whose visitors start to wait for each other.

use std::time::Duration;

/// Longest time of a page. Without it, an overloaded shop would still be busy when the demo is
/// over.
const LONGEST: Duration = Duration::from_secs(10);

/// Time of pages under load.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ServiceTime {
    /// Time of a page while no more than `capacity` visitors are active.
    pub base: Duration,
    /// Number of visitors that the shop can serve at full speed.
    pub capacity: u32,
}

impl ServiceTime {
    /// Returns the time of a page while `load` visitors are active: `base` times the square of
    /// `load / capacity`, never below `base` and never above 10 s.
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
