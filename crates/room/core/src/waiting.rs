//! Waiting visitors of a room that one node counts.
//!
//! A count is a lease on the visitor, written in its ticket: the node that receives a request
//! counts the visitor until its next request is overdue, and writes that time into the ticket. The
//! next node counts it from then on. So each visitor is counted once, whatever node it asks, and
//! the counts of a node that is lost run out by themselves.
//!
//! A visitor counts from the first time that it *brings its ticket back*, so that clients without
//! cookies do not block the queue.

mod forecast;
mod schedule;
mod visitors;

use crate::id::VisitorId;
use crate::ticket::Ticket;
use crate::time::{DurationMs, Timestamp};
use crate::watermark::WaitingCounts;
pub use forecast::{COUNTED_MAX, ForecastCounts, NOBODY, ReportedWaiting, WaitingForecast};
pub use schedule::COUNT_GRAIN;
use schedule::Schedule;
use visitors::Visitors;

/// Time after which a late refresh frees the visitor's slot for those behind. Two round trips of a
/// slow phone; longer, and the slots of visitors who left stay empty for longer.
pub const OVERDUE: DurationMs = DurationMs(1_000);

/// Divisor of the refresh interval by which a refresh may be late besides: timers of pages in the
/// background are late by a share of what they wait.
const LATE_DIVISOR: u64 = 4;

/// Waiting visitors of one room that one node counts.
#[derive(Clone, Debug)]
pub struct WaitingBook {
    /// Newest end of each visitor's count, as far as this node knows. It keeps copies of a ticket
    /// from being counted twice here.
    entries: Visitors<Entry>,
    capacity: usize,
    sweep_at: usize,
    swept_at: Timestamp,
    schedule: Schedule,
    /// Counts in tickets from before this time do not hold: the queue got another order.
    cleared_at: Timestamp,
}

/// Waiting visitor. There may be a million of them.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Time until which it is counted, at any node.
    counted_until: Timestamp,
    /// Whether it was admitted: its count up to that time has been subtracted.
    is_admitted: bool,
}

const _: () = assert!(
    size_of::<(VisitorId, Entry)>() == 32,
    "with its index in the table, a million of these fit into 64 MiB"
);

/// Returns the longest time until a visitor's next refresh is overdue.
fn overdue_after(interval: DurationMs) -> DurationMs {
    interval + DurationMs(interval.0 / LATE_DIVISOR) + OVERDUE
}

impl WaitingBook {
    /// Makes an empty book that remembers at most `capacity` visitors. Copies of the tickets of
    /// others may be counted more than once.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            entries: Visitors::new(),
            capacity,
            sweep_at: SWEEP_FIRST,
            swept_at: Timestamp::ZERO,
            schedule: Schedule::default(),
            cleared_at: Timestamp::ZERO,
        }
    }

    /// Counts a visitor who brought this ticket back, and who will refresh after `interval`.
    /// Returns the time until which it is counted, for its new ticket.
    pub fn handle_refresh(
        &mut self,
        ticket: &Ticket,
        rank: Timestamp,
        interval: DurationMs,
        now: Timestamp,
    ) -> Timestamp {
        self.schedule.advance(now);
        self.sweep(now);
        let from = self.counted_until(ticket, now).max(now);
        let after = overdue_after(interval);
        let grain = forecast::grain_of(after);
        let due = now + after.min(COUNTED_MAX.less(grain));
        let until = due.ceil_to(grain).max(from);
        self.schedule.add(rank, (from, until), 1, now);
        self.remember(ticket.visitor, until, false);
        until
    }

    /// Subtracts a visitor with this ticket, who was admitted, for as long as it is still counted
    /// somewhere. Returns whether it is.
    pub fn handle_departure(&mut self, ticket: &Ticket, rank: Timestamp, now: Timestamp) -> bool {
        self.schedule.advance(now);
        let until = self.counted_until(ticket, now);
        let is_counted = until > now;
        if is_counted {
            self.schedule.add(rank, (now, until), -1, now);
            self.remember(ticket.visitor, until, true);
        }
        is_counted
    }

    /// Forgets all visitors, for a change of the queue's order. Their tickets bring them back with
    /// their next refreshes.
    pub fn clear(&mut self, now: Timestamp) {
        *self = Self {
            cleared_at: now,
            ..Self::new(self.capacity)
        };
    }

    /// Returns the counts by rank.
    pub fn counts(&mut self, now: Timestamp) -> &WaitingCounts {
        self.schedule.advance(now);
        self.schedule.counts()
    }

    /// Returns the counts of now and of later, for a report.
    pub fn forecast(&mut self, now: Timestamp) -> WaitingForecast {
        self.schedule.advance(now);
        self.schedule.forecast(now)
    }

    /// Whether this node counts nobody, now or later.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.schedule.is_empty()
    }

    /// Returns the time until which a visitor with this ticket is counted; in the past or now if it
    /// is not.
    fn counted_until(&mut self, ticket: &Ticket, now: Timestamp) -> Timestamp {
        // A later time was written by a wrong clock.
        let latest = now + COUNTED_MAX;
        let holds =
            |until: &Timestamp| *until <= latest && ticket.last_check_in_at >= self.cleared_at;
        let written = ticket.counted_until.filter(holds).unwrap_or_default();
        match self.entries.get_mut(ticket.visitor) {
            Some(known) if !known.is_admitted => written.max(known.counted_until),
            // A copy of the ticket that was admitted: its count has been subtracted.
            Some(known) if written <= known.counted_until => Timestamp::ZERO,
            _ => written,
        }
    }

    fn remember(&mut self, visitor: VisitorId, counted_until: Timestamp, is_admitted: bool) {
        let entry = Entry {
            counted_until,
            is_admitted,
        };
        let has_capacity = self.entries.len() < self.capacity;
        match self.entries.get_mut(visitor) {
            Some(known) => *known = entry,
            None if has_capacity => self.entries.insert(visitor, entry),
            None => {}
        }
    }

    fn sweep(&mut self, now: Timestamp) {
        let is_large = self.entries.len() >= self.sweep_at.min(self.capacity);
        if !is_large || now.since(self.swept_at) < SWEEP_PERIOD {
            return;
        }
        self.swept_at = now;
        self.entries.retain(|entry| entry.counted_until > now);
        self.sweep_at = (self.entries.len() * 2).max(SWEEP_FIRST);
    }
}

/// First size at which entries of visitors who left are swept out.
const SWEEP_FIRST: usize = 1_024;
/// Shortest time between two sweeps: a full book is not swept for every refresh.
const SWEEP_PERIOD: DurationMs = DurationMs(1_000);

#[cfg(test)]
mod tests;
