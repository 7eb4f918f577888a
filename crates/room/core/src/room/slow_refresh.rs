//! Visitors who refresh more slowly than the replies say, such as a page in the background does.
//!
//! Such a visitor would never find a free slot: others refresh every two seconds and take each one
//! before it asks. If the queue counted it until it asks, slots would be empty for up to a minute,
//! and in vain if it has left. So its request waits a few seconds for the next slot, which is its
//! own by the order of arrival.

use super::{Room, TurnWait, Visit};
use crate::estimate::{AT_THE_FRONT, refresh_before_turn};
use crate::rules::QueueingMethod;
use crate::ticket::Ticket;
use crate::time::{DurationMs, Timestamp};
use crate::watermark::people_before;

/// Longest wait of a request for its turn: shorter than what clients and proxies allow.
pub const TURN_WAIT_MAX: DurationMs = DurationMs(10_000);

/// Time for which such a request counts at least: a few replies of the parent, and the reports of
/// them to a distant root.
const COUNTS_FOR: DurationMs = DurationMs(2_000);

impl Room {
    /// Whether a visitor with this ticket refreshes so slowly that it would miss its turn.
    pub(super) fn refreshes_slowly(&mut self, ticket: &Ticket, now: Timestamp) -> bool {
        now.since(ticket.last_check_in_at) >= TURN_WAIT_MAX && !self.waiting.is_counted(ticket, now)
    }

    /// Whether the turn of such a visitor is near, or it is the first, so that its request waits.
    /// It counts from now on: the next slot is for the first in line.
    pub(super) fn waits_for_turn(&mut self, visit: Visit, now: Timestamp) -> bool {
        let is_begun = visit.turn_wait == TurnWait::Begun;
        let may_wait = is_begun || visit.turn_wait == TurnWait::Possible;
        let is_open = !self.has_left && self.lease.is_live(now);
        let Some(ticket) = visit.ticket.filter(|_| may_wait && is_open) else {
            return false;
        };
        if !is_begun && self.waiting.is_counted(&ticket, now) {
            // A copy of the ticket waits already.
            return false;
        }
        let rank = self.rank(visit, ticket.bucket);
        let is_near = match self.rules.queueing_method {
            QueueingMethod::Fifo => self.is_turn_near(rank),
            // Where the queue has no order, only a free slot is near: a distant root sends it later
            // than others wait.
            _ => self.is_eligible(visit) && self.snapshot.seats_free > 0,
        };
        if !is_near {
            return false;
        }
        // It may hang up at any time, so it counts from one reply of the parent to the next.
        if !self.waiting.is_counted(&ticket, now + COUNTS_FOR) {
            self.waiting.handle_refresh(&ticket, rank, COUNTS_FOR, now);
        }
        true
    }

    /// Whether the turn of a visitor of this rank may come while its request waits.
    fn is_turn_near(&self, rank: Timestamp) -> bool {
        let ahead = people_before(&self.snapshot.queue, rank);
        let free = self.snapshot.seats_free;
        // A free slot is kept for those ahead. They may not come, and then it is this visitor's:
        // several in a row may be as slow as it is.
        (free > 0 && ahead < free.saturating_add(AT_THE_FRONT))
            || ahead == 0
            || refresh_before_turn(ahead, &self.snapshot.slots_ahead) <= TURN_WAIT_MAX
    }
}
