//! End of a wait by the visitor: its position is free at once, and its ticket is worthless here.

use super::Room;
use crate::figures::{FirstAnnouncement, WaitEnd};
use crate::id::VisitorId;
use crate::order;
use crate::ticket::{Standing, Ticket};
use crate::time::Timestamp;

impl Room {
    /// Ends the wait of a ticket. Returns whether that was new.
    ///
    /// This node subtracts what it counts itself. If another one counts the visitor, that count
    /// runs out as if the visitor had left without a word. Limits do not change: a waiting visitor
    /// has no seat.
    pub fn handle_leave(&mut self, ticket: &Ticket, now: Timestamp) -> bool {
        let visitor = ticket.visitor;
        let standing = ticket.standing(now, self.snapshot.closed_through, &self.rules);
        let has_seat = self.newest_seat(visitor, now).is_some();
        let is_over = self.is_revoked(visitor) || self.waiting.has_left(visitor, now);
        if standing != Standing::Waiting || has_seat || is_over {
            return false;
        }
        let key = &self.identity.lottery_key;
        let rank = order::rank(ticket.bucket, visitor, &self.rules, key);
        let before = self.wait_end(ticket);
        let leaves = WaitEnd {
            at: now,
            announced: FirstAnnouncement::of(&ticket.announced, ticket.bucket),
        };
        self.figures.move_wait(before, Some(leaves), now);
        if self.waiting.handle_leave(ticket, rank, now) {
            self.snapshot.take_waiting(rank);
        }
        self.demand.handle_left(visitor);
        self.assert_sound();
        true
    }

    /// Whether this visitor left the queue a short time ago, so that a request with its ticket is
    /// one of a new visitor. Such a request was on its way when the visitor left.
    pub fn has_left_queue(&mut self, visitor: VisitorId, now: Timestamp) -> bool {
        self.waiting.has_left(visitor, now)
    }
}
