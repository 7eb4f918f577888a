//! How long did things take? A histogram of milliseconds and what a summary says of it.
//!
//! Values are exact to three digits. Nothing here knows what was measured.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::clock::whole_millis;

/// The longest duration told apart from longer ones: a day. Longer than any demo.
const LONGEST_MS: u64 = 86_400_000;

/// Durations, as a summary says them. All in milliseconds, all of them measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Quantiles {
    /// How many were measured.
    pub count: u64,
    /// Half were no longer than this.
    pub p50_ms: u64,
    /// Nine of ten were no longer than this.
    pub p90_ms: u64,
    /// Ninety-nine of a hundred were no longer than this.
    pub p99_ms: u64,
    /// The longest.
    pub max_ms: u64,
}

/// Collects durations.
#[derive(Debug)]
pub(crate) struct Durations(Histogram<u64>);

impl Durations {
    /// Nothing measured yet.
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_MS, 3)
            .expect("three digits between 1 and a day is a valid histogram");
        Self(histogram)
    }

    /// Adds one, in whole milliseconds rounded down.
    pub(crate) fn record(&mut self, duration: Duration) {
        self.0.saturating_record(whole_millis(duration));
    }

    /// What was measured; `None` if nothing was.
    pub(crate) fn quantiles(&self) -> Option<Quantiles> {
        (!self.0.is_empty()).then(|| Quantiles {
            count: self.0.len(),
            p50_ms: self.0.value_at_quantile(0.5),
            p90_ms: self.0.value_at_quantile(0.9),
            p99_ms: self.0.value_at_quantile(0.99),
            max_ms: self.0.max(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_measured_has_no_quantiles() {
        assert_eq!(Durations::new().quantiles(), None);
    }

    #[test]
    fn quantiles_of_one_to_a_hundred_milliseconds() {
        let mut durations = Durations::new();
        for ms in 1..=100 {
            durations.record(Duration::from_millis(ms));
        }
        let quantiles = durations.quantiles().unwrap();
        assert_eq!((quantiles.p50_ms, quantiles.p90_ms), (50, 90));
        assert_eq!((quantiles.p99_ms, quantiles.max_ms), (99, 100));
        assert_eq!(quantiles.count, 100);
    }
}
