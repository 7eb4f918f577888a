//! By how much did somebody go in before another one who had come earlier and still waits?
//!
//! A figure, not a decision: nodes know the line as it was a moment ago, and within the watermark
//! whoever asks first goes first. What that costs in fairness is counted here.

use crate::time::DurationMs;

/// Upper bounds of the classes by which admissions are counted; one more class is for all above.
/// From "in order" to the interval after which the last in a long line ask again.
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

/// Admissions of visitors who had waited, by how much later they had come than the one who had come
/// first of those who still waited.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Inversions {
    counts: [u64; INVERSION_BOUNDS.len() + 1],
    /// The sum of all, in milliseconds.
    pub sum_ms: u64,
    /// The largest.
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

    /// How many admissions there were in each class: those of [`INVERSION_BOUNDS`], then all above.
    pub fn classes(&self) -> impl Iterator<Item = (Option<DurationMs>, u64)> + '_ {
        let bounds = INVERSION_BOUNDS.iter().copied().map(Some).chain([None]);
        bounds.zip(self.counts)
    }

    /// How many admissions were counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_admission_counts_in_the_first_class_that_holds_it() {
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
