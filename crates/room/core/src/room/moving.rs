//! Visitors who are inside by a seat in another data center and find no free one here.
//!
//! Each passes unrenewed, and the parent keeps the next free seat for it, ahead of those who wait.
//! When it comes again it asks for that seat, at whichever node of the data center it is: what is
//! kept lies at the ledger, and nobody is told for whom.

use alloc::collections::BTreeMap;

use super::demand::Missing;
use crate::id::VisitorId;
use crate::time::{DurationMs, Timestamp};

/// Most visitors for whom a seat is kept on behalf of one node. Others ask again all the same, and
/// find one if it happens to be free.
const MOVING_MAX: usize = 1 << 16;
/// Shortest time for which a seat is kept: the parent needs a moment to find one.
const KEPT_AT_LEAST: DurationMs = DurationMs::from_secs(2);

/// Who lacks a seat here.
#[derive(Clone, Debug, Default)]
pub(super) struct Moving {
    /// Until when each is waited for.
    expected: BTreeMap<VisitorId, Timestamp>,
    /// Those who are asking at this moment.
    asking: Missing,
    /// Seats of the lease that are for them.
    held: u32,
    /// How many more were asked for with the newest request.
    fetched: u32,
}

impl Moving {
    /// Somebody asks in vain whose seat elsewhere runs until `ends_at`, and was prolonged last at
    /// `prolonged_at`. It is expected again within twice the time since then: whoever comes often
    /// is waited for briefly, and nobody for longer than half a session.
    pub(super) fn note(
        &mut self,
        visitor: VisitorId,
        (prolonged_at, ends_at): (Timestamp, Timestamp),
        session: DurationMs,
        now: Timestamp,
    ) {
        let away = now.since(prolonged_at).times(2);
        let patience = away.min(DurationMs(session.0 / 2)).max(KEPT_AT_LEAST);
        let until = ends_at.min(now + patience);
        let has_room = self.expected.len() < MOVING_MAX;
        if has_room || self.expected.contains_key(&visitor) {
            self.expected.insert(visitor, until);
        }
    }

    /// One of them waits for what the parent says.
    pub(super) fn note_asking(&mut self) {
        self.asking.note();
    }

    /// Somebody has got a seat here.
    pub(super) fn handle_seated(&mut self, visitor: VisitorId) {
        self.held = self.held.saturating_sub(1);
        if self.expected.remove(&visitor).is_some() {
            self.asking.note_taken();
        }
    }

    /// Whether nobody is known to lack a seat.
    pub(super) fn is_empty(&self) -> bool {
        self.expected.is_empty()
    }

    /// How many seats of the lease are for nobody else: those that were fetched for visitors who
    /// asked. What is kept for those who are expected lies at the parent.
    pub(super) fn held(&self) -> u32 {
        self.held
    }

    /// A request is made: so many seats are held for those who ask, and `fetched` more asked for.
    pub(super) fn note_request(&mut self, held: u32, fetched: u32) {
        self.held = held;
        self.fetched = fetched;
    }

    /// The answer to that request brought seats. Those who are inside come first.
    pub(super) fn handle_granted(&mut self, seats: u32) {
        self.held += core::mem::take(&mut self.fetched).min(seats);
    }

    fn count(&self) -> u32 {
        u32::try_from(self.expected.len()).unwrap_or(u32::MAX)
    }

    /// For a request: how many ask now, and how many more are expected.
    pub(super) fn begin_request(&mut self, now: Timestamp) -> (u32, u32) {
        self.expected.retain(|_, until| *until > now);
        self.asking.begin_request(now);
        let asking = self.asking.told().min(self.count());
        (asking, self.count() - asking)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: DurationMs = DurationMs::from_secs(60);

    #[test]
    fn whoever_asks_in_vain_is_expected_for_as_long_again_twice() {
        let mut moving = Moving::default();
        let seat = (Timestamp(5_000), Timestamp(100_000));
        moving.note(VisitorId([7; 16]), seat, SESSION, Timestamp(10_000));
        moving.note_asking();
        assert_eq!(moving.begin_request(Timestamp(10_010)), (1, 0));
        assert_eq!(moving.begin_request(Timestamp(12_000)), (0, 1));
        assert_eq!(moving.begin_request(Timestamp(19_999)), (0, 1));
        assert_eq!(moving.begin_request(Timestamp(20_000)), (0, 0));
    }

    #[test]
    fn nobody_is_expected_beyond_a_seat_or_half_a_session() {
        let mut moving = Moving::default();
        moving.note(
            VisitorId([1; 16]),
            (Timestamp(0), Timestamp(101_000)),
            SESSION,
            Timestamp(100_000),
        );
        moving.note(
            VisitorId([2; 16]),
            (Timestamp(0), Timestamp(900_000)),
            SESSION,
            Timestamp(100_000),
        );
        assert_eq!(moving.begin_request(Timestamp(100_000)), (0, 2));
        assert_eq!(moving.begin_request(Timestamp(105_000)), (0, 1));
        assert_eq!(moving.begin_request(Timestamp(130_000)), (0, 0));
    }

    #[test]
    fn only_what_was_fetched_for_those_who_asked_is_held_for_them() {
        let mut moving = Moving::default();
        moving.note_request(1, 2);
        moving.handle_granted(5);
        assert_eq!(moving.held(), 3);
        moving.handle_granted(5);
        assert_eq!(moving.held(), 3, "by one answer");
        moving.handle_seated(VisitorId([1; 16]));
        assert_eq!(moving.held(), 2);
        moving.note_request(0, 2);
        moving.handle_granted(1);
        assert_eq!(moving.held(), 1, "as many as came");
    }

    #[test]
    fn asking_twice_counts_once_and_a_seated_visitor_not_at_all() {
        let mut moving = Moving::default();
        for _ in 0..2 {
            moving.note(
                VisitorId([1; 16]),
                (Timestamp(0), Timestamp(9_000)),
                SESSION,
                Timestamp(1_000),
            );
            moving.note_asking();
        }
        assert_eq!(moving.begin_request(Timestamp(1_001)), (1, 0));
        moving.handle_seated(VisitorId([1; 16]));
        assert_eq!(moving.begin_request(Timestamp(1_002)), (0, 0));
        assert!(moving.is_empty());
    }
}
