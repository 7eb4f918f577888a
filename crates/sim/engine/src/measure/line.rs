//! Who in line has been there longest?

use anteroom_room::time::{DurationMs, Timestamp};

/// Width of a cohort: what a ticket tells of an arrival.
const COHORT: DurationMs = DurationMs(1_000);

/// How many are in line, by the second of their arrival.
#[derive(Debug)]
pub(super) struct Line {
    starts_at: Timestamp,
    cohorts: Vec<u32>,
    /// No cohort before this one has anybody in it.
    oldest: usize,
    len: u32,
}

impl Line {
    pub(super) fn new(starts_at: Timestamp) -> Self {
        Self {
            starts_at,
            cohorts: Vec::new(),
            oldest: 0,
            len: 0,
        }
    }

    pub(super) fn join(&mut self, arrived_at: Timestamp) {
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

    pub(super) fn part(&mut self, arrived_at: Timestamp) {
        let at = self.cohort(arrived_at);
        self.cohorts[at] -= 1;
        self.len -= 1;
        while self.cohorts.get(self.oldest) == Some(&0) {
            self.oldest += 1;
        }
    }

    /// When those came who have been there longest.
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
    fn the_oldest_is_whoever_came_first_and_has_not_left() {
        let mut line = Line::new(Timestamp(1_000));
        assert_eq!(line.oldest(), None);
        for at in [5_500, 3_200, 9_000, 3_900] {
            line.join(Timestamp(at));
        }
        assert_eq!(line.oldest(), Some(Timestamp(3_000)));
        line.part(Timestamp(3_200));
        assert_eq!(line.oldest(), Some(Timestamp(3_000)));
        line.part(Timestamp(3_900));
        assert_eq!(line.oldest(), Some(Timestamp(5_000)));
        line.part(Timestamp(5_500));
        line.part(Timestamp(9_000));
        assert_eq!((line.oldest(), line.len()), (None, 0));
    }
}
