//! Visitors who see others enter who came after them.

use anteroom_room::time::{DurationMs, Timestamp};

/// Time between two arrivals that count as one: the precision of an arrival time in a ticket.
const SAME_ARRIVAL: DurationMs = DurationMs(1_000);

/// Latest arrivals among those admitted so far: each entry is later than the one before, by arrival
/// and by admission.
#[derive(Debug, Default)]
pub(super) struct LatestEntries(Vec<(Timestamp, Timestamp)>);

impl LatestEntries {
    /// Records the admission of a visitor who arrived at that time.
    pub(super) fn add(&mut self, arrived_at: Timestamp, now: Timestamp) {
        if self.0.last().is_none_or(|(latest, _)| *latest < arrived_at) {
            self.0.push((arrived_at, now));
        }
    }

    /// Returns for how long visitors who came later than this one have been admitted.
    pub(super) fn passed_over(&self, arrived_at: Timestamp, now: Timestamp) -> DurationMs {
        let same = arrived_at + SAME_ARRIVAL;
        let first = self.0.partition_point(|(arrival, _)| *arrival <= same);
        self.0
            .get(first)
            .map_or(DurationMs::ZERO, |(_, admitted_at)| now.since(*admitted_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visitor_is_passed_over_from_the_first_admission_of_one_who_came_later() {
        let mut entries = LatestEntries::default();
        let passed_over = |entries: &LatestEntries, arrived_at| {
            entries
                .passed_over(Timestamp(arrived_at), Timestamp(60_000))
                .0
        };
        assert_eq!(passed_over(&entries, 5_000), 0);
        entries.add(Timestamp(5_900), Timestamp(20_000));
        assert_eq!(passed_over(&entries, 5_000), 0, "within a second");
        entries.add(Timestamp(9_000), Timestamp(30_000));
        entries.add(Timestamp(8_000), Timestamp(40_000));
        entries.add(Timestamp(12_000), Timestamp(50_000));
        assert_eq!(passed_over(&entries, 5_000), 30_000);
        assert_eq!(passed_over(&entries, 9_000), 10_000);
        assert_eq!(passed_over(&entries, 12_000), 0);
    }
}
