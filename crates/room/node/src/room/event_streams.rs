//! Hints for event streams: which waiting visitors the room would probably admit. The decision is
//! made when a visitor sends its ticket.

use anteroom_room::room::{Room, TurnWait, Visit};
use anteroom_room::ticket::{Standing, Ticket};
use anteroom_room::time::Timestamp;

use super::RoomHandle;

impl RoomHandle {
    /// Returns the waiting ticket among the values of a cookie, if there is one. Takes no lock of
    /// the room.
    #[must_use]
    pub fn waiting_ticket(&self, values: &[&str]) -> Option<Ticket> {
        let now = self.now();
        self.open(values, now)
            .filter(|ticket| ticket.accepted_at.is_none())
            .filter(|ticket| self.standing(ticket, now) == Standing::Waiting)
    }

    /// Returns for each waiting ticket whether the room would probably admit it now. Locks the room
    /// once for all of them, and changes nothing.
    #[must_use]
    pub fn who_may_come(&self, tickets: &[Ticket]) -> Vec<bool> {
        self.locked(|room, now| {
            let is_open = may_have_seat(room, now);
            let eligible = tickets.iter().map(|ticket| {
                let visit = Visit {
                    is_poll: true,
                    visitor: ticket.visitor,
                    ticket: Some(*ticket),
                    may_sync: false,
                    turn_wait: TurnWait::No,
                    gets_page: false,
                };
                is_open && room.is_eligible(visit)
            });
            eligible.collect()
        })
    }
}

/// Whether there may be a seat: a free one, or one that is leased to a node here or elsewhere and
/// not used, which the ledger could get back.
fn may_have_seat(room: &Room, now: Timestamp) -> bool {
    let rules = room.rules();
    let snapshot = room.snapshot();
    !rules.queue_all
        && rules.opening_ahead(now).is_none()
        && room.has_live_lease(now)
        && room.degraded(now).is_none()
        && (!snapshot.is_exhausted(now) || snapshot.leased > 0)
}
