//! Histograms of lengths of time whose percentiles are right to a tenth, and that can be added.
//!
//! Two neighbouring buckets begin a factor of 1.2 apart, so the middle of a bucket differs from
//! each of its values by less than 10 % (√1.2 = 1.095). Below 10 ms whole milliseconds are further
//! apart than that, and each has a bucket of its own.

use crate::time::DurationMs;

/// Number of buckets: up to two days, which no wait, session or response exceeds by much.
pub const BUCKETS: usize = 104;

/// First value of each bucket, in milliseconds. The last bucket has no end.
const BEGINS: [u64; BUCKETS] = begins();

const fn begins() -> [u64; BUCKETS] {
    let mut begins = [0; BUCKETS];
    let mut at = 1;
    while at < BUCKETS {
        let before = begins[at - 1];
        let apart = before * 6 / 5;
        begins[at] = if apart > before { apart } else { before + 1 };
        at += 1;
    }
    begins
}

/// Returns the bucket of a length of time, below [`BUCKETS`].
#[must_use]
pub fn bucket_of(length: DurationMs) -> usize {
    BEGINS.partition_point(|begin| *begin <= length.0) - 1
}

/// Returns a value that differs from each one of a bucket by less than 10 %. The last bucket is
/// without an end, and has its first value.
#[must_use]
pub fn middle_of(bucket: usize) -> DurationMs {
    let begin = BEGINS.get(bucket).copied();
    let begin = begin.unwrap_or(BEGINS[BUCKETS - 1]);
    let Some(next) = BEGINS.get(bucket + 1) else {
        return DurationMs(begin);
    };
    // The geometric mean of the first and the last value, rounded to the nearest.
    DurationMs((4 * begin * (next - 1)).isqrt().div_ceil(2))
}

/// Counts of lengths of time by bucket.
///
/// A count may be negative: a node subtracts what another one has added, and the sum over all nodes
/// is right.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Histogram {
    counts: [i64; BUCKETS],
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: [0; BUCKETS],
        }
    }
}

impl Histogram {
    /// Counts a length of time.
    pub fn note(&mut self, length: DurationMs) {
        self.change(bucket_of(length), 1);
    }

    /// Adds to the count of a bucket. Sums wrap at 2^63, so that their order never matters.
    ///
    /// # Panics
    ///
    /// If `bucket` is not below [`BUCKETS`].
    pub fn change(&mut self, bucket: usize, by: i64) {
        self.counts[bucket] = self.counts[bucket].wrapping_add(by);
    }

    /// Adds all counts of another histogram.
    pub fn add(&mut self, other: &Self) {
        for (own, more) in self.counts.iter_mut().zip(&other.counts) {
            *own = own.wrapping_add(*more);
        }
    }

    /// Returns the counts, by bucket.
    #[must_use]
    pub const fn counts(&self) -> &[i64; BUCKETS] {
        &self.counts
    }

    /// Returns the number of counted lengths.
    #[must_use]
    pub fn total(&self) -> u64 {
        let counts = self.counts.iter().map(|count| count.max(&0).unsigned_abs());
        counts.fold(0, u64::saturating_add)
    }

    /// Returns the length that this part of all does not exceed, within 10 %; `None` without any.
    /// `per_mille`: 500 for the median, 1,000 for the longest.
    #[must_use]
    pub fn percentile(&self, per_mille: u32) -> Option<DurationMs> {
        let total = u128::from(self.total());
        let rank = (total * u128::from(per_mille.min(1_000)))
            .div_ceil(1_000)
            .max(1);
        let mut below = 0_u128;
        let mut counts = self.counts.iter().enumerate();
        let found = counts.find(|(_, count)| {
            below += u128::from(count.max(&&0).unsigned_abs());
            below >= rank
        });
        found.map(|(bucket, _)| middle_of(bucket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_begin_at_most_a_factor_apart_and_reach_two_days() {
        for (at, pair) in BEGINS.windows(2).enumerate() {
            let is_close = pair[1] * 5 <= pair[0] * 6 || pair[1] == pair[0] + 1;
            assert!(is_close, "bucket {at}: {pair:?}");
        }
        assert_eq!(BEGINS[..12], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12]);
        let last = BEGINS[BUCKETS - 1];
        assert!((172_800_000..2 * 172_800_000).contains(&last), "{last}");
    }

    #[test]
    fn the_middle_of_a_bucket_is_within_a_tenth_of_its_values() {
        for (at, pair) in BEGINS.windows(2).enumerate() {
            for value in [pair[0], pair[1] - 1] {
                let apart = middle_of(at).0.abs_diff(value);
                assert!(apart * 10 <= value, "bucket {at}: {value}");
                assert_eq!(bucket_of(DurationMs(value)), at);
            }
        }
        assert_eq!(bucket_of(DurationMs(u64::MAX)), BUCKETS - 1);
    }

    #[test]
    fn percentiles_go_by_rank() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(500), None);
        for ms in [1, 2, 3, 4] {
            histogram.note(DurationMs(ms));
        }
        let percentiles = [0, 250, 251, 500, 1_000].map(|part| histogram.percentile(part));
        assert_eq!(percentiles, [1, 1, 2, 2, 4].map(|ms| Some(DurationMs(ms))));
    }

    #[test]
    fn what_one_node_subtracts_is_missing_in_the_sum_alone() {
        let (mut one, mut other) = (Histogram::default(), Histogram::default());
        one.note(DurationMs(5));
        other.change(bucket_of(DurationMs(5)), -1);
        assert_eq!((other.total(), other.percentile(500)), (0, None));
        one.add(&other);
        assert_eq!(one, Histogram::default());
    }
}
