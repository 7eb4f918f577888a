//! Visitors who refresh more slowly than the replies say, such as a page in the background does.
//!
//! Such a visitor would never find a free slot: others refresh every two seconds and take each one
//! before it asks. If the queue counted it until it asks, slots would be empty for up to a minute,
//! and in vain if it has left. So its request waits a few seconds for the next slot, which is its
//! own by the order of arrival.
//!
//! A page in the background asks for that with each poll, and polls again at once: browsers delay
//! timers, and no responses. So it always has a request that waits.

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
        let is_overdue = match ticket.counted_until {
            Some(until) => until <= now,
            // It did not count, so nothing says when it was to ask.
            None => now.since(ticket.last_check_in_at) >= TURN_WAIT_MAX,
        };
        is_overdue && !self.waiting.is_counted(ticket, now)
    }

    /// Whether the next request of a visitor, which waited for its turn, is to follow at once.
    pub(super) fn asks_at_once(&self, visit: Visit) -> bool {
        let polls_on = visit.turn_wait == TurnWait::InVain { polls_on: true };
        polls_on && self.rules.queueing_method == QueueingMethod::Fifo
    }

    /// Whether a visitor was late, and will be: it is to refresh sooner than it does. It has no
    /// slot meanwhile, and ends no wait of others behind it.
    pub(super) fn is_late_again(
        &mut self,
        visit: Visit,
        ask_after: DurationMs,
        now: Timestamp,
    ) -> bool {
        let Some(ticket) = visit.ticket.filter(|_| !visit.gets_page) else {
            return false;
        };
        let is_late = match visit.turn_wait {
            TurnWait::InVain { .. } => true,
            // A punctual poll may have asked for the wait, or a copy of the ticket may wait.
            TurnWait::Possible => {
                let has_order = self.rules.queueing_method == QueueingMethod::Fifo;
                has_order && self.refreshes_slowly(&ticket, now)
            }
            TurnWait::No | TurnWait::Begun => false,
        };
        is_late && (DurationMs(1)..TURN_WAIT_MAX).contains(&ask_after)
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
        if !is_begun && self.waiting.is_counted_anew(&ticket, now) {
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
        if !is_begun || !self.waiting.is_counted(&ticket, now + COUNTS_FOR) {
            self.waiting.handle_refresh(&ticket, rank, COUNTS_FOR, now);
        }
        true
    }

    /// Records that a client has hung up while its request waited for the turn. Its visitor does
    /// not count until its next request.
    pub fn handle_hang_up(&mut self, visit: Visit, now: Timestamp) {
        if let Some(ticket) = visit.ticket {
            let rank = self.rank(visit, ticket.bucket);
            self.pause(&ticket, rank, now);
        }
    }

    /// Stops counting a visitor until its next request.
    pub(super) fn pause(&mut self, ticket: &Ticket, rank: Timestamp, now: Timestamp) {
        if self.waiting.handle_pause(ticket, rank, now) {
            self.snapshot.take_waiting(rank);
        }
    }

    /// Whether the turn of a visitor of this rank may come while its request waits. Those ahead may
    /// not come, if they are as slow as it is. Then a slot that is free, or comes free, is its own.
    fn is_turn_near(&self, rank: Timestamp) -> bool {
        let ahead = people_before(&self.snapshot.queue, rank);
        ahead < self.snapshot.seats_free.saturating_add(AT_THE_FRONT)
            || refresh_before_turn(ahead, &self.snapshot.slots_ahead) <= TURN_WAIT_MAX
    }
}
