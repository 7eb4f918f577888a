//! Waiting visitors by the second of their arrival, to find the oldest one.

use anteroom_room::time::{DurationMs, Timestamp};

/// Width of a cohort: the precision of an arrival time in a ticket.
const COHORT: DurationMs = DurationMs(1_000);

/// Number of waiting visitors by the second of their arrival.
#[derive(Debug)]
pub(super) struct Cohorts {
    starts_at: Timestamp,
    cohorts: Vec<u32>,
    /// Index of the first cohort that may have visitors.
    oldest: usize,
    len: u32,
}

impl Cohorts {
    pub(super) fn new(starts_at: Timestamp) -> Self {
        Self {
            starts_at,
            cohorts: Vec::new(),
            oldest: 0,
            len: 0,
        }
    }

    pub(super) fn add(&mut self, arrived_at: Timestamp) {
        let at = self.cohort(arrived_at);
        if at >= self.cohorts.len() {
            self.cohorts.resize(at + 1, 0);
        }
        self.cohorts[at] += 1;
        self.oldest = if self.len == 0 {
            at
        } else {
            self.oldest.min(at)
        };
        self.len += 1;
    }

    pub(super) fn remove(&mut self, arrived_at: Timestamp) {
        let at = self.cohort(arrived_at);
        self.cohorts[at] -= 1;
        self.len -= 1;
        while self.cohorts.get(self.oldest) == Some(&0) {
            self.oldest += 1;
        }
    }

    /// Returns the arrival time of the oldest cohort.
    pub(super) fn oldest(&self) -> Option<Timestamp> {
        (self.len > 0).then(|| self.starts_at + COHORT.times(self.oldest as u64))
    }

    pub(super) fn len(&self) -> u32 {
        self.len
    }

    fn cohort(&self, arrived_at: Timestamp) -> usize {
        usize::try_from(arrived_at.since(self.starts_at).0 / COHORT.0).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_cohort_is_the_first_one_that_has_visitors() {
        let mut cohorts = Cohorts::new(Timestamp(1_000));
        assert_eq!(cohorts.oldest(), None);
        for at in [5_500, 3_200, 9_000, 3_900] {
            cohorts.add(Timestamp(at));
        }
        assert_eq!(cohorts.oldest(), Some(Timestamp(3_000)));
        cohorts.remove(Timestamp(3_200));
        assert_eq!(cohorts.oldest(), Some(Timestamp(3_000)));
        cohorts.remove(Timestamp(3_900));
        assert_eq!(cohorts.oldest(), Some(Timestamp(5_000)));
        cohorts.remove(Timestamp(5_500));
        cohorts.remove(Timestamp(9_000));
        assert_eq!((cohorts.oldest(), cohorts.len()), (None, 0));
    }
}
