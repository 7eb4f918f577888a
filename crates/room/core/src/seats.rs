//! Counts of active visitors without their identities: seats counted by the interval in which they
//! end.
//!
//! A check-in *moves* a seat (minus one at the old end, plus one at the new one), an admission adds
//! one, and an interval that has passed frees its seats. A room costs O(intervals). Only the ticket
//! records who has a seat.

use alloc::vec::Vec;

use crate::rules::Rules;
use crate::time::{DurationMs, Timestamp};

/// Changes that one node made to the seats of a room: signed totals by end.
///
/// A node may move a seat that another node gave, so single counts may be negative; the sum over
/// all rows may not. A row replaces the earlier one of its node, and is never added to it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SeatRow {
    /// Sorted by end, none of them zero. A list and not a map: rows travel with every message, are
    /// summed for every reply, and have some sixty entries.
    counts: Vec<(Timestamp, i64)>,
}

impl SeatRow {
    /// Counts a new seat that ends at `end`.
    pub fn add(&mut self, end: Timestamp) {
        self.change(end, 1);
    }

    /// Counts new seats that end at `end`.
    pub fn add_many(&mut self, end: Timestamp, count: u32) {
        self.change(end, i64::from(count));
    }

    /// Counts a seat that was freed before its end at `end`.
    pub fn remove(&mut self, end: Timestamp) {
        self.change(end, -1);
    }

    /// Counts an extended seat. A move to an earlier end is a bug of the caller: it would free a
    /// seat that a newer ticket still has.
    pub fn shift(&mut self, from: Timestamp, to: Timestamp) {
        debug_assert!(from < to, "a seat never moves to an earlier end");
        self.change(from, -1);
        self.change(to, 1);
    }

    /// Moves the `count` seats that end first to `to`, or fewer if not so many end before.
    pub fn extend_first(&mut self, count: u32, to: Timestamp) {
        let mut left = i64::from(count);
        let mut moved = 0;
        for (_, seats) in self.counts.iter_mut().take_while(|(end, _)| *end < to) {
            let part = left.min((*seats).max(0));
            *seats -= part;
            left -= part;
            moved += part;
        }
        self.counts.retain(|(_, seats)| *seats != 0);
        self.change(to, moved);
    }

    /// Adds all counts of another row to this one.
    pub fn absorb(&mut self, other: &Self) {
        self.merge(&other.counts, 1);
    }

    /// Subtracts all counts of another row from this one.
    pub fn subtract(&mut self, other: &Self) {
        self.merge(&other.counts, -1);
    }

    /// Removes the intervals that ended at or before `closed_through`, and returns them.
    pub fn take_through(&mut self, closed_through: Timestamp) -> Self {
        let ended = self
            .counts
            .partition_point(|(end, _)| *end <= closed_through);
        Self {
            counts: self.counts.drain(..ended).collect(),
        }
    }

    /// Removes the intervals that ended at or before `closed_through`.
    pub fn drop_through(&mut self, closed_through: Timestamp) {
        if self.first_end() <= closed_through {
            self.take_through(closed_through);
        }
    }

    /// Returns the earliest end; [`Timestamp::NEVER`] if the row is empty.
    #[must_use]
    pub fn first_end(&self) -> Timestamp {
        self.counts
            .first()
            .map_or(Timestamp::NEVER, |(end, _)| *end)
    }

    /// Returns the sum of the counts that end after `closed_through`.
    #[must_use]
    pub fn total_after(&self, closed_through: Timestamp) -> i64 {
        self.between(closed_through, Timestamp::NEVER)
    }

    /// Returns the sum of the counts that end after `after` and at or before `through`.
    #[must_use]
    pub fn between(&self, after: Timestamp, through: Timestamp) -> i64 {
        let from = self.counts.partition_point(|(end, _)| *end <= after);
        let rest = self.counts[from..].iter();
        rest.take_while(|(end, _)| *end <= through)
            .map(|(_, count)| count)
            .sum()
    }

    /// Returns the first end after `after` with seats to free; [`Timestamp::NEVER`] if there is
    /// none.
    #[must_use]
    pub fn next_end(&self, after: Timestamp) -> Timestamp {
        let from = self.counts.partition_point(|(end, _)| *end <= after);
        let frees = self.counts[from..].iter().find(|(_, count)| *count > 0);
        frees.map_or(Timestamp::NEVER, |(end, _)| *end)
    }

    /// Iterates over all counts, by end.
    pub fn iter(&self) -> impl Iterator<Item = (Timestamp, i64)> + '_ {
        self.counts.iter().copied()
    }

    /// Whether the row has no counts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    fn change(&mut self, end: Timestamp, by: i64) {
        match self.counts.binary_search_by_key(&end, |(end, _)| *end) {
            Ok(at) => {
                // A damaged record may have any counts; the reader rejects it once all of it is
                // read.
                self.counts[at].1 = self.counts[at].1.saturating_add(by);
                if self.counts[at].1 == 0 {
                    self.counts.remove(at);
                }
            }
            Err(at) if by != 0 => self.counts.insert(at, (end, by)),
            Err(_) => {}
        }
    }

    fn merge(&mut self, others: &[(Timestamp, i64)], sign: i64) {
        let mut at = 0;
        let mut missing = 0;
        let mut has_zeros = false;
        for &(end, count) in others {
            while self.counts.get(at).is_some_and(|(own, _)| *own < end) {
                at += 1;
            }
            match self.counts.get_mut(at) {
                Some((own, sum)) if *own == end => {
                    *sum += sign * count;
                    has_zeros |= *sum == 0;
                }
                _ => missing += 1,
            }
        }
        if missing > 0 {
            self.insert_missing(others, sign, missing);
        }
        if has_zeros {
            self.counts.retain(|(_, count)| *count != 0);
        }
    }

    /// Inserts those counts of others whose ends are not here. Works from the back, so that nothing
    /// is moved twice.
    fn insert_missing(&mut self, others: &[(Timestamp, i64)], sign: i64, missing: usize) {
        let mut own = self.counts.len();
        let mut to = own + missing;
        self.counts.resize(to, (Timestamp::ZERO, 0));
        for &(end, count) in others.iter().rev() {
            while own > 0 && self.counts[own - 1].0 > end {
                own -= 1;
                to -= 1;
                self.counts[to] = self.counts[own];
            }
            let is_known = own > 0 && self.counts[own - 1].0 == end;
            if !is_known {
                to -= 1;
                self.counts[to] = (end, sign * count);
            }
        }
    }
}

impl FromIterator<(Timestamp, i64)> for SeatRow {
    fn from_iter<I: IntoIterator<Item = (Timestamp, i64)>>(iter: I) -> Self {
        let mut row = Self::default();
        for (end, count) in iter {
            row.change(end, count);
        }
        row
    }
}

/// Shortest interval in which seats end.
pub const SHORTEST_INTERVAL: DurationMs = DurationMs(1_000);

/// Length of the seats that a node gives at present.
///
/// It is not part of [`Rules`]: a node may shorten its seats at once, but lengthen them only
/// after its parent has agreed: phantom seats are computed from the longest one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SeatTerms {
    /// Length of the promised session.
    pub session: DurationMs,
    /// Width of the intervals in which seats end.
    pub grid: DurationMs,
}

impl SeatTerms {
    /// Returns the terms that follow from a room's rules.
    #[must_use]
    pub const fn of(rules: &Rules) -> Self {
        Self {
            session: rules.session_duration,
            grid: rules.seat_grid(),
        }
    }

    /// Returns the upper bound of every seat under these terms.
    #[must_use]
    pub fn longest_seat(self) -> DurationMs {
        self.session + self.grid.times(2)
    }

    /// Returns the end of a seat that check-ins extend: an edge between session + g and session + 2
    /// g after `now`, so that a visitor who checks in only every g still gets its whole session.
    #[must_use]
    pub fn renewable_end(self, now: Timestamp) -> Timestamp {
        (now + self.session + self.grid).ceil_to(self.grid)
    }

    /// Returns the end of a seat that nothing extends: the first edge at or after the session's
    /// end.
    #[must_use]
    pub fn fixed_end(self, now: Timestamp) -> Timestamp {
        (now + self.session).ceil_to(self.grid)
    }

    /// Returns these terms, or shorter ones under which no seat is longer than `most`.
    ///
    /// A seat is the session and two intervals long, an interval a sixtieth of the session and at
    /// least a second; solved for the session.
    #[must_use]
    pub fn with_seats_up_to(self, most: DurationMs) -> Self {
        if self.longest_seat() <= most {
            return self;
        }
        let session = DurationMs(most.0 / 62 * 60 + most.0 % 62 * 60 / 62);
        let session = session.min(most.less(SHORTEST_INTERVAL.times(2)));
        Self {
            session,
            grid: DurationMs(session.0 / 60).max(SHORTEST_INTERVAL),
        }
    }

    /// Returns these terms with a session of at most `most`.
    #[must_use]
    pub fn at_most(self, most: DurationMs) -> Self {
        Self {
            session: self.session.min(most),
            grid: self.grid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(session: u64) -> SeatTerms {
        SeatTerms::of(&Rules {
            session_duration: DurationMs(session),
            ..Rules::default()
        })
    }

    #[test]
    fn a_seat_ends_between_one_and_two_intervals_after_its_session() {
        for session in [1_000, 30_000, 300_000, 86_400_000] {
            let terms = terms(session);
            for now in [0, 1, 999, 1_000, 1_699_999_999_999] {
                let now = Timestamp(now);
                let end = terms.renewable_end(now);
                assert!(end >= now + terms.session + terms.grid);
                assert!(end < now + terms.session + terms.grid.times(2));
                assert_eq!(end.0 % terms.grid.0, 0);
            }
        }
    }

    #[test]
    fn an_interval_is_a_sixtieth_of_the_session_or_a_second() {
        assert_eq!(terms(300_000).grid, DurationMs(5_000));
        assert_eq!(terms(10_000).grid, DurationMs(1_000));
    }

    #[test]
    fn shortened_terms_issue_no_seat_longer_than_allowed() {
        for most in [
            0, 1_999, 3_000, 12_000, 61_000, 62_000, 310_000, 310_061, 90_000_000,
        ] {
            let most = DurationMs(most);
            let cut = terms(86_400_000_000).with_seats_up_to(most);
            // Nothing fits into less than two intervals: a node with such a lease gives no seats.
            let longest = most.max(SHORTEST_INTERVAL.times(2));
            assert!(cut.longest_seat() <= longest, "{most:?}: {cut:?}");
            assert!(
                cut.longest_seat() + DurationMs(130) >= most.min(longest),
                "{cut:?}"
            );
        }
        let five_minutes = terms(300_000);
        let allowed = five_minutes.longest_seat();
        assert_eq!(terms(3_600_000).with_seats_up_to(allowed), five_minutes);
        assert_eq!(
            five_minutes.with_seats_up_to(DurationMs(1 << 40)),
            five_minutes
        );
    }

    #[test]
    fn a_move_keeps_the_total_and_a_passed_interval_gives_back() {
        let mut row = SeatRow::default();
        row.add(Timestamp(10));
        row.add(Timestamp(10));
        row.shift(Timestamp(10), Timestamp(20));
        assert_eq!(row.total_after(Timestamp(0)), 2);
        assert_eq!(row.total_after(Timestamp(10)), 1);
        row.drop_through(Timestamp(10));
        assert_eq!(row.iter().collect::<Vec<_>>(), [(Timestamp(20), 1)]);
    }

    #[test]
    fn possibly_extended_seats_are_counted_once_at_the_latest_end() {
        let seats =
            || SeatRow::from_iter([(Timestamp(10), 2), (Timestamp(20), 3), (Timestamp(90), 1)]);
        let check = |count, expected: &[(u64, i64)]| {
            let mut row = seats();
            row.extend_first(count, Timestamp(50));
            let found: Vec<_> = row.iter().map(|(end, seats)| (end.0, seats)).collect();
            assert_eq!(found, expected, "{count}");
        };
        check(0, &[(10, 2), (20, 3), (90, 1)]);
        check(3, &[(20, 2), (50, 3), (90, 1)]);
        check(100, &[(50, 5), (90, 1)]);
    }

    #[test]
    fn rows_of_two_nodes_add_up_although_one_is_negative() {
        let mut giver = SeatRow::default();
        giver.add(Timestamp(10));
        let mut mover = SeatRow::default();
        mover.shift(Timestamp(10), Timestamp(20));
        giver.absorb(&mover);
        assert_eq!(giver.between(Timestamp(0), Timestamp(10)), 0);
        assert_eq!(giver.total_after(Timestamp(0)), 1);
    }
}
