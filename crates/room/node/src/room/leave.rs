//! End of a wait by the visitor.

use anteroom_room::ticket::Standing;

use super::RoomHandle;

/// Result of a request to leave the queue.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Leave {
    /// The visitor does not wait: it left now or before, or never waited.
    Left,
    /// The visitor is active. Its session goes on.
    Active,
}

impl RoomHandle {
    /// Ends the wait of the visitor with the best of these tickets. Its position is free at once,
    /// as far as this node counts it, and the parent knows with the next report.
    pub fn leave(&self, tickets: &[&str]) -> Leave {
        let now = self.now();
        let Some(ticket) = self.open(tickets, now) else {
            return Leave::Left;
        };
        let is_active = matches!(self.standing(&ticket, now), Standing::Active { .. });
        if is_active && !self.view.load().is_revoked(ticket.visitor) {
            return Leave::Active;
        }
        self.locked(|room, now| room.handle_leave(&ticket, now));
        Leave::Left
    }

    /// Whether a valid ticket is among these, of a visitor who did not leave the queue here.
    #[must_use]
    pub fn has_ticket(&self, tickets: &[&str]) -> bool {
        let visitor = self.visitor_of(tickets);
        visitor
            .is_some_and(|(visitor, _)| self.locked(|room, now| !room.has_left_queue(visitor, now)))
    }
}
