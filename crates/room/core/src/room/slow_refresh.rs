//! Visitors who refresh more slowly than the replies say, such as a page in the background does.
//!
//! Such a visitor would never find a free slot: others refresh every two seconds and take each one
//! before it asks. If the queue counted it until it asks, slots would be empty for up to a minute.
//! So in a busy room its request waits a few seconds for the next slot, which is its own by the
//! order of arrival. In a room that admits few, the slot waits for the visitor.

use super::{Room, Visit};
use crate::estimate::{REFRESH_AFTER_LAST, refresh_before_turn};
use crate::queue_position::WaitRange;
use crate::rules::QueueingMethod;
use crate::ticket::Ticket;
use crate::time::{DurationMs, Timestamp};
use crate::waiting::overdue_after;
use crate::watermark::people_before;

/// Longest wait of a request for its turn: shorter than what clients and proxies allow.
pub const TURN_WAIT_MAX: DurationMs = DurationMs(10_000);

impl Room {
    /// Whether a visitor with this ticket sends requests so seldom that it would miss its turn.
    pub(super) fn refreshes_slowly(&mut self, ticket: &Ticket, now: Timestamp) -> bool {
        now.since(ticket.last_check_in_at) >= TURN_WAIT_MAX
            && self.rules.queueing_method == QueueingMethod::Fifo
            && !self.waiting.is_counted(ticket, now)
    }

    /// Whether the turn of such a visitor is near, so that its request waits. It counts from now
    /// on: the next slot is for the first in line.
    pub(super) fn waits_for_turn(&mut self, visit: Visit, now: Timestamp) -> bool {
        let Some(ticket) = visit.ticket.filter(|_| visit.may_wait && !self.has_left) else {
            return false;
        };
        let rank = self.rank(visit, ticket.bucket);
        if !self.is_snapshot_fresh(now) || self.turn_within(rank) > TURN_WAIT_MAX {
            return false;
        }
        if !self.waiting.is_counted(&ticket, now) {
            self.waiting
                .handle_refresh(&ticket, rank, TURN_WAIT_MAX, now);
        }
        true
    }

    /// Returns the interval for which a visitor counts who is to refresh after `interval`, with
    /// `ahead` people before it and this wait: what it really keeps, if that is longer and no slot
    /// comes free meanwhile, or if it is the first and no slot came while it waited.
    pub(super) fn interval_kept(
        &self,
        ticket: &Ticket,
        interval: DurationMs,
        (ahead, wait): (u32, Option<WaitRange>),
        now: Timestamp,
    ) -> DurationMs {
        let kept = now.since(ticket.last_check_in_at).min(REFRESH_AFTER_LAST);
        let is_slow = kept > overdue_after(interval);
        let is_far = wait.is_some_and(|wait| wait.low > kept);
        // A node that is out of touch reports nobody: no other one would count the visitor.
        let is_in_touch = self.lease.is_live(now) && self.is_snapshot_fresh(now);
        if is_slow && is_in_touch && (is_far || ahead == 0) {
            kept
        } else {
            interval
        }
    }

    /// Returns the time within which the turn of a visitor may come.
    fn turn_within(&self, rank: Timestamp) -> DurationMs {
        let ahead = people_before(&self.snapshot.queue, rank);
        refresh_before_turn(ahead, &self.snapshot.slots_ahead)
    }
}
