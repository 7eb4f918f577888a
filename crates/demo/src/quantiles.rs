//! Histogram of durations in milliseconds, and its quantiles.
//!
//! Values are exact to three digits.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::clock::whole_millis;

/// Longest duration in the histogram, in ms: a day, which is longer than any demo.
const LONGEST_MS: u64 = 86_400_000;

/// Quantiles of durations, in milliseconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Quantiles {
    /// Number of durations.
    pub count: u64,
    /// Median.
    pub p50_ms: u64,
    /// 90th percentile.
    pub p90_ms: u64,
    /// 99th percentile.
    pub p99_ms: u64,
    /// Longest duration.
    pub max_ms: u64,
}

/// Histogram of durations.
#[derive(Debug)]
pub(crate) struct Durations(Histogram<u64>);

impl Durations {
    /// Creates an empty histogram.
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_MS, 3)
            .expect("three digits between 1 and a day is a valid histogram");
        Self(histogram)
    }

    /// Adds a duration, in whole milliseconds rounded down.
    pub(crate) fn record(&mut self, duration: Duration) {
        self.0.saturating_record(whole_millis(duration));
    }

    /// Returns the quantiles; `None` if there are no durations.
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
    fn an_empty_histogram_has_no_quantiles() {
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
