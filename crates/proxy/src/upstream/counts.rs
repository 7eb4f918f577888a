//! Counters of one origin; they never fall, even across reloads.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use anteroom_room::histogram::{BUCKETS, Histogram, bucket_of};
use anteroom_room::time::DurationMs;
use http::StatusCode;

use crate::striped_counts::StripedCounts;
use crate::upstream::outcome::Outcome;

/// Upper bounds of the buckets of response times, in milliseconds: from a cached response to the
/// usual timeout of an origin.
pub(crate) const CLASSES_MS: [u64; 11] =
    [1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 60_000];

/// Classes of statuses: 1xx to 5xx, and above as 5xx.
pub(crate) const STATUS_CLASSES: usize = 5;

/// Place of the sum after the buckets.
const SUM: usize = CLASSES_MS.len() + 1;

/// Number of responses in the moving mean: enough that one slow response is no alarm, and few
/// enough that a busy shop forgets the previous minute.
const RECENT: u64 = 32;

/// Counters of one origin.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) in_flight: AtomicUsize,
    pub(crate) good_checks: AtomicU64,
    pub(crate) bad_checks: AtomicU64,
    /// Each request reads them, so they are not striped.
    outcomes: [AtomicU64; Outcome::NAMES.len()],
    /// Response times by bucket; the last bucket has no bound. After them, their sum in
    /// microseconds.
    times: StripedCounts<{ SUM + 1 }>,
    /// Response times by bucket of a [`Histogram`], then responses by class of their status.
    history: StripedCounts<{ BUCKETS + STATUS_CLASSES }>,
    /// Moving mean of recent response times, in microseconds; 0 before the first.
    recent_us: AtomicU64,
}

impl Counts {
    /// Counts an outcome and its time.
    pub(crate) fn count(&self, outcome: Outcome, after: Duration) {
        self.outcomes[outcome.index()].fetch_add(1, Relaxed);
        let Outcome::Answered(status) = outcome else {
            return;
        };
        let at = CLASSES_MS.partition_point(|bound| Duration::from_millis(*bound) < after);
        let micros = u64::try_from(after.as_micros()).unwrap_or(u64::MAX);
        self.times.add(at, 1);
        self.times.add(SUM, micros);
        self.history.add(bucket_of(DurationMs(micros / 1_000)), 1);
        let class = usize::from(status.as_u16() / 100).clamp(1, STATUS_CLASSES);
        self.history.add(BUCKETS + class - 1, 1);
        // Concurrent updates may lose one, which is acceptable for a mean.
        let next = match self.recent_us.load(Relaxed) {
            0 => micros,
            mean => mean - mean / RECENT + micros / RECENT,
        };
        self.recent_us.store(next.max(1), Relaxed);
    }

    /// Returns the count of an outcome; the status is ignored beyond its class.
    pub(crate) fn of(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome.index()].load(Relaxed)
    }

    /// Adds the response times to `times`, and the responses by class of their status and those
    /// without a response to `statuses`.
    pub(crate) fn add_to(&self, times: &mut Histogram, statuses: &mut [u64; STATUS_CLASSES + 1]) {
        let counts = self.history.read();
        let (buckets, classes) = counts.split_at(BUCKETS);
        for (bucket, count) in buckets.iter().enumerate() {
            times.change(bucket, count.cast_signed());
        }
        let without = self.outcomes().into_iter().skip(2).map(|(_, count)| count);
        let counts = classes.iter().copied().chain([without.sum()]);
        for (status, count) in statuses.iter_mut().zip(counts) {
            *status += count;
        }
    }

    /// Returns the number of responses with any status.
    pub(crate) fn answers(&self) -> u64 {
        [StatusCode::OK, StatusCode::INTERNAL_SERVER_ERROR]
            .map(|status| self.of(Outcome::Answered(status)))
            .iter()
            .sum()
    }

    pub(crate) fn outcomes(&self) -> [(&'static str, u64); Outcome::NAMES.len()] {
        let mut all = Outcome::NAMES.map(|name| (name, 0));
        for (named, count) in all.iter_mut().zip(&self.outcomes) {
            named.1 = count.load(Relaxed);
        }
        all
    }

    /// Returns the number of responses per bucket; the last one has no bound.
    pub(crate) fn classes(&self) -> Vec<(Option<Duration>, u64)> {
        let bounds = CLASSES_MS.iter().map(|ms| Some(Duration::from_millis(*ms)));
        let counts = self.times.read();
        bounds.chain([None]).zip(counts).collect()
    }

    pub(crate) fn sum(&self) -> Duration {
        Duration::from_micros(self.times.read()[SUM])
    }

    /// Returns the moving mean of recent response times; `None` before the first.
    pub(crate) fn recent(&self) -> Option<Duration> {
        let micros = self.recent_us.load(Relaxed);
        (micros > 0).then(|| Duration::from_micros(micros))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_falls_into_the_first_bucket_that_fits() {
        let counts = Counts::default();
        for ms in [0, 1, 2, 60_000, 60_001] {
            counts.count(Outcome::Answered(StatusCode::OK), Duration::from_millis(ms));
        }
        counts.count(Outcome::TimedOut, Duration::from_secs(60));
        let filled: Vec<_> = counts
            .classes()
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .collect();
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(filled, [(ms(1), 2), (ms(3), 1), (ms(60_000), 1), (None, 1)]);
        assert_eq!(counts.sum(), Duration::from_millis(120_004));
        assert_eq!(counts.outcomes()[0], ("answered", 5));
        assert_eq!(counts.outcomes()[3], ("timed_out", 1));
    }

    #[test]
    fn histories_have_response_times_and_statuses() {
        let counts = Counts::default();
        for (status, ms) in [(200, 5), (204, 7), (503, 5), (999, 1)] {
            let status = StatusCode::from_u16(status).unwrap();
            counts.count(Outcome::Answered(status), Duration::from_millis(ms));
        }
        counts.count(Outcome::TimedOut, Duration::from_secs(60));
        let (mut times, mut statuses) = (Histogram::default(), [0; 6]);
        counts.add_to(&mut times, &mut statuses);
        assert_eq!(statuses, [0, 2, 0, 0, 2, 1]);
        assert_eq!(
            (times.total(), times.percentile(500)),
            (4, Some(DurationMs(5)))
        );
    }

    #[test]
    fn the_moving_mean_follows_recent_times() {
        let counts = Counts::default();
        assert_eq!(counts.recent(), None);
        let count = |ms| {
            counts.count(Outcome::Answered(StatusCode::OK), Duration::from_millis(ms));
        };
        count(100);
        assert_eq!(counts.recent(), Some(Duration::from_millis(100)));
        count(10_000);
        let after_one = counts.recent().unwrap();
        assert!(after_one < Duration::from_millis(500), "{after_one:?}");
        for _ in 0..300 {
            count(10);
        }
        let later = counts.recent().unwrap();
        assert!(later < Duration::from_millis(12), "{later:?}");
    }
}
