//! Histogram of durations, and its quantiles.
//!
//! Values are exact to three digits.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Longest duration: a minute, in nanoseconds.
const LONGEST_NS: u64 = 60_000_000_000;

/// Collection of durations.
#[derive(Clone, Debug)]
pub(crate) struct Durations(Histogram<u64>);

impl Default for Durations {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, 3)
            .expect("three digits between 1 ns and a minute is a valid histogram");
        Self(histogram)
    }
}

/// Quantiles of durations, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Quantiles {
    /// Number of durations.
    pub(crate) count: u64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
    pub(crate) max_us: f64,
}

impl Durations {
    pub(crate) fn record(&mut self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.0.saturating_record(nanos);
    }

    /// Returns the quantiles; all zero if there are no durations.
    pub(crate) fn quantiles(&self) -> Quantiles {
        let at = |quantile| micros(self.0.value_at_quantile(quantile));
        Quantiles {
            count: self.0.len(),
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: micros(self.0.max()),
        }
    }
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_measured_is_all_zero() {
        assert_eq!(Durations::default().quantiles(), Quantiles::default());
    }

    #[test]
    fn quantiles_of_one_to_a_thousand_microseconds_are_right_to_three_digits() {
        let mut durations = Durations::default();
        for micros in 1..=1_000 {
            durations.record(Duration::from_micros(micros));
        }
        let found = durations.quantiles();
        assert_eq!(found.count, 1_000);
        let check = |found: f64, expected: f64| {
            assert!((found / expected - 1.0).abs() < 0.001, "{found} {expected}");
        };
        check(found.p50_us, 500.0);
        check(found.p99_us, 990.0);
        check(found.p999_us, 999.0);
        check(found.max_us, 1_000.0);
    }

    #[test]
    fn durations_over_a_minute_count_as_a_minute() {
        let mut durations = Durations::default();
        durations.record(Duration::from_secs(600));
        assert!(durations.quantiles().max_us >= 59_900_000.0);
    }
}
