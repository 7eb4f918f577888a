//! When should somebody who waits bring its ticket? A hint for whoever listens, and no more: who
//! goes in is decided when the ticket is there.

use anteroom_room::room::{Room, Visit};
use anteroom_room::ticket::{Standing, Ticket};
use anteroom_room::time::Timestamp;

use super::RoomHandle;

impl RoomHandle {
    /// The waiting ticket among the values of a cookie, if there is one. Asks no room.
    #[must_use]
    pub fn waiting_ticket(&self, values: &[&str]) -> Option<Ticket> {
        let now = self.now();
        self.open(values, now)
            .filter(|ticket| ticket.accepted_at.is_none())
            .filter(|ticket| self.standing(ticket, now) == Standing::Waiting)
    }

    /// Of these waiting tickets, which would probably be let in now? One short look at the room for
    /// all of them, which changes nothing in it.
    #[must_use]
    pub fn who_may_come(&self, tickets: &[Ticket]) -> Vec<bool> {
        self.locked(|room, now| {
            let is_open = lets_in(room, now);
            let answers = tickets.iter().map(|ticket| {
                let visit = Visit {
                    visitor: ticket.visitor,
                    ticket: Some(*ticket),
                    may_ask_parent: false,
                    gets_page: false,
                };
                is_open && room.is_eligible(visit)
            });
            answers.collect()
        })
    }
}

/// Whether there seems to be a seat for anybody: one that is free, or lent and unused, here or at
/// another node, which the ledger would have back.
fn lets_in(room: &Room, now: Timestamp) -> bool {
    let rules = room.rules();
    let snapshot = room.snapshot();
    !rules.queue_all
        && rules.opens_at.is_none_or(|opens_at| opens_at <= now)
        && room.has_live_lease(now)
        && room.degraded(now).is_none()
        && (!snapshot.is_dry() || snapshot.lent > 0)
}
