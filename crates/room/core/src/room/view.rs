//! View of a room that decides about active visitors without the room.

use super::Room;
use super::revoked_visitors::RevokedVisitors;
use crate::id::{DataCenterId, Epoch, VisitorId};
use crate::rules::Rules;
use crate::seats::SeatTerms;
use crate::ticket::{Standing, Ticket};
use crate::time::Timestamp;

/// Copy of what changes seldom, replaced as a whole after every change. With it a node decides
/// about most requests of active visitors without a lock, a lookup or a round trip, whether its
/// lease runs or not.
#[derive(Clone, Debug)]
pub struct View {
    rules: Rules,
    seat_terms: SeatTerms,
    closed_through: Timestamp,
    data_center: DataCenterId,
    epoch: Epoch,
    revoked: RevokedVisitors,
    accepts_tickets_until: Timestamp,
}

impl View {
    /// Makes a view of the room as it is now.
    #[must_use]
    pub fn of(room: &Room) -> Self {
        Self {
            rules: room.rules,
            seat_terms: room.seat_terms,
            closed_through: room.snapshot.closed_through,
            data_center: room.identity.data_center,
            epoch: room.snapshot.epoch,
            revoked: room.revoked(),
            accepts_tickets_until: room.accepts_tickets_until(),
        }
    }

    /// Whether the session of this visitor was revoked, as far as known here.
    #[must_use]
    pub fn is_revoked(&self, visitor: VisitorId) -> bool {
        self.revoked.contains(visitor)
    }

    /// Returns the standing of a ticket at `now`.
    #[must_use]
    pub fn standing(&self, ticket: &Ticket, now: Timestamp) -> Standing {
        ticket.standing(now, self.closed_through, &self.rules)
    }

    /// Returns the end of the session of this ticket, if there is nothing else to decide.
    #[must_use]
    pub fn pass_without_room(
        &self,
        ticket: &Ticket,
        is_navigation: bool,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let Standing::Active { ends_at } = self.standing(ticket, now) else {
            return None;
        };
        let seat = ticket.seats.of(self.data_center)?;
        // An extension would not lengthen a seat that is longer than those of now.
        let is_longer = self.seat_terms.renewable_end(now) > seat.ends_at;
        let is_renewable = self.rules.session_renewal && is_longer;
        let is_due = (ticket.first_seat.is_some() || is_renewable)
            && ticket.is_check_in_due(now, self.seat_terms.grid, is_navigation);
        let is_plain = now < self.accepts_tickets_until
            && seat.epoch == self.epoch
            && !is_due
            && !ticket.is_from_the_future(now)
            && !self.is_revoked(ticket.visitor);
        is_plain.then_some(ends_at)
    }
}
