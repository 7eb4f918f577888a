//! Statistics of inversions: how much later an admitted visitor arrived than another one who still
//! waits.
//!
//! They decide nothing. A node knows the queue as it was a moment ago, and within the watermark the
//! first to refresh is the first to enter. The statistics show what that costs in fairness.

use crate::time::DurationMs;

/// Upper bounds of the classes by which admissions are counted; one more class is for all above.
/// From "in order" to the refresh interval at the back of a long queue.
pub const INVERSION_BOUNDS: [DurationMs; 9] = [
    DurationMs(0),
    DurationMs(500),
    DurationMs(1_000),
    DurationMs(2_000),
    DurationMs(5_000),
    DurationMs(10_000),
    DurationMs(20_000),
    DurationMs(60_000),
    DurationMs(300_000),
];

/// Counts of admissions, by inversion: how much later the admitted visitor arrived than the
/// earliest one who still waited.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Inversions {
    counts: [u64; INVERSION_BOUNDS.len() + 1],
    /// Sum of all inversions, in milliseconds.
    pub sum_ms: u64,
    /// Largest inversion.
    pub largest: DurationMs,
}

impl Inversions {
    /// Counts an admission.
    pub fn note(&mut self, inversion: DurationMs) {
        let class = INVERSION_BOUNDS
            .iter()
            .position(|bound| inversion <= *bound);
        self.counts[class.unwrap_or(INVERSION_BOUNDS.len())] += 1;
        self.sum_ms = self.sum_ms.saturating_add(inversion.0);
        self.largest = self.largest.max(inversion);
    }

    /// Returns the number of admissions in each class: those of [`INVERSION_BOUNDS`], then all
    /// above.
    pub fn classes(&self) -> impl Iterator<Item = (Option<DurationMs>, u64)> + '_ {
        let bounds = INVERSION_BOUNDS.iter().copied().map(Some).chain([None]);
        bounds.zip(self.counts)
    }

    /// Returns the number of counted admissions.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_admission_counts_in_the_lowest_class_that_covers_it() {
        let mut inversions = Inversions::default();
        for ms in [0, 1, 500, 501, 299_999, 300_001] {
            inversions.note(DurationMs(ms));
        }
        let counts: alloc::vec::Vec<u64> = inversions.classes().map(|(_, count)| count).collect();
        assert_eq!(counts, [1, 2, 1, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!((inversions.total(), inversions.sum_ms), (6, 601_002));
        assert_eq!(inversions.largest, DurationMs(300_001));
    }
}
