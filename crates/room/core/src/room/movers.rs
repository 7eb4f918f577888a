//! Active visitors who have a seat in another data center and find no free one here.
//!
//! Each passes unrenewed. The parent keeps the next free seat for such a visitor, with priority
//! over waiting ones. With its next request the visitor gets that seat at any node of the data
//! center: the ledger keeps it, without a name on it.

use alloc::collections::BTreeMap;

use super::demand::Missing;
use crate::id::VisitorId;
use crate::sync_loop::WAIT_TIMEOUT;
use crate::time::{DurationMs, Timestamp};

/// Most visitors with seats reserved at one node. Others find a seat only if one happens to be
/// free.
const MOVING_MAX: usize = 1 << 16;
/// Shortest time for which a seat is kept: the parent needs a moment to find one.
const KEEP_MIN: DurationMs = DurationMs::from_secs(2);

/// Visitors who lack a seat here.
#[derive(Clone, Debug, Default)]
pub(super) struct Moving {
    expected: BTreeMap<VisitorId, Expected>,
    /// Visitors who wait for the parent's reply now.
    pending: Missing,
    /// Latest end of their seats elsewhere.
    pending_ends_at: Timestamp,
    /// Seats of the lease that are for them.
    kept: u32,
    /// Seats for them in the newest request, on top of `kept`.
    requested: u32,
}

/// Visitor who is expected to come again.
#[derive(Clone, Copy, Debug)]
struct Expected {
    /// End of its seat elsewhere.
    seat_ends_at: Timestamp,
    /// Time until which it is expected.
    until: Timestamp,
}

impl Moving {
    /// Notes a visitor who found no seat. Its seat in another data center runs until `ends_at`, and
    /// was extended last at `extended_at`. It is expected again within twice the time since then,
    /// and within half a session. A request just before the end may wait beyond it.
    pub(super) fn note(
        &mut self,
        visitor: VisitorId,
        (extended_at, ends_at): (Timestamp, Timestamp),
        session: DurationMs,
        now: Timestamp,
    ) {
        let elapsed = now.since(extended_at).times(2);
        let keep_for = elapsed.min(DurationMs(session.0 / 2)).max(KEEP_MIN);
        let until = (ends_at + WAIT_TIMEOUT).min(now + keep_for);
        let has_capacity = self.expected.len() < MOVING_MAX;
        if has_capacity || self.expected.contains_key(&visitor) {
            let expected = Expected {
                seat_ends_at: ends_at,
                until,
            };
            self.expected.insert(visitor, expected);
        }
    }

    /// Whether one of `seats` is for this visitor, whose seat elsewhere ends at `ends_at`: those
    /// whose seats end earlier have lost more if they find none.
    pub(super) fn is_served(
        &self,
        visitor: VisitorId,
        ends_at: Timestamp,
        seats: u32,
        now: Timestamp,
    ) -> bool {
        let earlier = self.expected.iter().filter(|(other, expected)| {
            **other != visitor && expected.seat_ends_at < ends_at && expected.until > now
        });
        earlier.take(seats as usize).count() < seats as usize
    }

    /// Notes that one of them, whose seat elsewhere ends at `ends_at`, waits for the parent's
    /// reply.
    pub(super) fn note_pending(&mut self, ends_at: Timestamp) {
        self.pending.note();
        self.pending_ends_at = self.pending_ends_at.max(ends_at);
    }

    /// Notes that a visitor has got a seat here.
    pub(super) fn handle_seated(&mut self, visitor: VisitorId) {
        self.kept = self.kept.saturating_sub(1);
        if self.expected.remove(&visitor).is_some() {
            self.pending.note_taken();
        }
    }

    /// Whether no visitor is known to lack a seat.
    pub(super) fn is_empty(&self) -> bool {
        self.expected.is_empty()
    }

    /// Returns the seats of the lease that are only for visitors who waited for them. Seats for
    /// expected visitors stay at the parent.
    pub(super) fn kept(&self) -> u32 {
        self.kept
    }

    /// Notes a request: `kept` seats are for these visitors, and it demands `requested` more.
    pub(super) fn note_request(&mut self, kept: u32, requested: u32) {
        self.kept = kept;
        self.requested = requested;
    }

    /// Notes the seats in the reply to that request. These visitors have priority.
    pub(super) fn handle_granted(&mut self, seats: u32) {
        self.kept += core::mem::take(&mut self.requested).min(seats);
    }

    fn count(&self) -> u32 {
        u32::try_from(self.expected.len()).unwrap_or(u32::MAX)
    }

    /// Returns for a request how many wait now, and how many are expected. Who waits gets no seat
    /// before those whose seats elsewhere end earlier, and the parent may have one for everybody.
    /// So the next ones are those before it.
    pub(super) fn begin_request(&mut self, now: Timestamp) -> Movers {
        self.expected.retain(|_, expected| expected.until > now);
        let count = self.count();
        let waiting = self.pending.begin_request(now).min(count);
        // Only once: a seat that nobody takes is needed elsewhere.
        let last = core::mem::take(&mut self.pending_ends_at);
        let ends = self.expected.values().map(|expected| expected.seat_ends_at);
        let first = ends.filter(|ends_at| *ends_at <= last).count();
        let first = u32::try_from(first).unwrap_or(u32::MAX);
        let next = first.saturating_sub(waiting);
        Movers {
            waiting,
            next,
            later: count - waiting - next,
        }
    }
}

/// Visitors who lack a seat at the time of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Movers {
    /// Those who wait for the parent's reply.
    pub(super) waiting: u32,
    /// Those expected whose seats are needed before.
    pub(super) next: u32,
    /// All others expected.
    pub(super) later: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: DurationMs = DurationMs::from_secs(60);

    fn movers(waiting: u32, next: u32, later: u32) -> Movers {
        Movers {
            waiting,
            next,
            later,
        }
    }

    /// Returns three visitors whose seats elsewhere end at 40, 20 and 30 s.
    fn three_expected(now: Timestamp) -> Moving {
        let mut moving = Moving::default();
        for (id, ends_at) in [(1, 40_000), (2, 20_000), (3, 30_000)] {
            let seat = (Timestamp(0), Timestamp(ends_at));
            moving.note(VisitorId([id; 16]), seat, SESSION, now);
        }
        moving
    }

    #[test]
    fn a_visitor_without_a_seat_is_expected_within_twice_its_pause() {
        let mut moving = Moving::default();
        let seat = (Timestamp(5_000), Timestamp(100_000));
        moving.note(VisitorId([7; 16]), seat, SESSION, Timestamp(10_000));
        moving.note_pending(seat.1);
        assert_eq!(moving.begin_request(Timestamp(10_010)), movers(1, 0, 0));
        assert_eq!(moving.begin_request(Timestamp(12_000)), movers(0, 0, 1));
        assert_eq!(moving.begin_request(Timestamp(19_999)), movers(0, 0, 1));
        assert_eq!(moving.begin_request(Timestamp(20_000)), movers(0, 0, 0));
    }

    #[test]
    fn a_visitor_is_not_expected_beyond_its_seat_or_half_a_session() {
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
        assert_eq!(moving.begin_request(Timestamp(100_000)), movers(0, 0, 2));
        assert_eq!(moving.begin_request(Timestamp(105_000)), movers(0, 0, 1));
        assert_eq!(moving.begin_request(Timestamp(130_000)), movers(0, 0, 0));
    }

    #[test]
    fn a_seat_is_for_the_visitor_whose_own_ends_first() {
        let now = Timestamp(10_000);
        let moving = three_expected(now);
        let served = |id, ends_at, seats, now| {
            moving.is_served(VisitorId([id; 16]), Timestamp(ends_at), seats, now)
        };
        assert!(!served(2, 20_000, 0, now), "there is none");
        assert!(served(2, 20_000, 1, now) && !served(3, 30_000, 1, now));
        assert!(served(3, 30_000, 2, now) && !served(1, 40_000, 2, now));
        assert!(served(1, 40_000, 3, now));
        assert!(
            served(1, 40_000, 1, Timestamp(30_250)),
            "nobody else is expected"
        );
    }

    /// The parent may have seats for all of them, and this one is served if it gets that many.
    #[test]
    fn who_waits_asks_for_the_seats_of_those_before_it_as_well() {
        let now = Timestamp(10_000);
        let mut moving = three_expected(now);
        moving.note_pending(Timestamp(30_000));
        assert_eq!(moving.begin_request(now), movers(1, 1, 1));
        assert!(moving.is_served(VisitorId([3; 16]), Timestamp(30_000), 2, now));
        assert_eq!(moving.begin_request(now), movers(1, 0, 2), "only once");
        moving.handle_seated(VisitorId([3; 16]));
        assert_eq!(moving.begin_request(now), movers(0, 0, 2));
    }

    #[test]
    fn only_seats_requested_for_movers_are_kept_for_them() {
        let mut moving = Moving::default();
        moving.note_request(1, 2);
        moving.handle_granted(5);
        assert_eq!(moving.kept(), 3);
        moving.handle_granted(5);
        assert_eq!(moving.kept(), 3, "by one reply");
        moving.handle_seated(VisitorId([1; 16]));
        assert_eq!(moving.kept(), 2);
        moving.note_request(0, 2);
        moving.handle_granted(1);
        assert_eq!(moving.kept(), 1, "as many as came");
    }

    #[test]
    fn a_second_request_counts_once_and_a_seated_visitor_not_at_all() {
        let mut moving = Moving::default();
        for _ in 0..2 {
            moving.note(
                VisitorId([1; 16]),
                (Timestamp(0), Timestamp(9_000)),
                SESSION,
                Timestamp(1_000),
            );
            moving.note_pending(Timestamp(9_000));
        }
        assert_eq!(moving.begin_request(Timestamp(1_001)), movers(1, 0, 0));
        moving.handle_seated(VisitorId([1; 16]));
        assert_eq!(moving.begin_request(Timestamp(1_002)), movers(0, 0, 0));
        assert!(moving.is_empty());
    }
}
