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
use crate::visitor_code::VisitorCode;
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

/// Shortest time for which a node remembers who left the queue. Requests that another tab sent
/// before are still on their way. A slow phone needs a few seconds for one.
const LEAVING: DurationMs = DurationMs(10_000);

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
    /// Whole seconds from its arrival to that time: what a rank follows from.
    waited_secs: u32,
    state: State,
    /// Part before that time that this node counts, in steps of [`COUNT_GRAIN`].
    own_steps: u8,
}

/// State of a visitor, as far as this node knows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Waiting,
    /// Admitted: its count has been subtracted, wherever it is counted.
    Admitted,
    /// Gone by its own wish: its count here has been subtracted.
    Left,
}

impl Entry {
    /// Returns the entry of a visitor that this node counts from a time on.
    fn waiting(
        arrived_at: Timestamp,
        (from, until): (Timestamp, Timestamp),
        now: Timestamp,
    ) -> Self {
        let until_edge = until.ceil_to(COUNT_GRAIN);
        let from_edge = if from > now {
            from.ceil_to(COUNT_GRAIN)
        } else {
            now.floor_to(COUNT_GRAIN)
        };
        let steps = until_edge.since(from_edge).0 / COUNT_GRAIN.0;
        Self {
            counted_until: until,
            waited_secs: secs_between(arrived_at, until),
            state: State::Waiting,
            // A count of more than `COUNTED_MAX` needs a clock that was set back. Its begin then
            // counts as that of another node.
            own_steps: u8::try_from(steps).unwrap_or(u8::MAX),
        }
    }

    /// Returns the entry of a visitor who does not wait any more.
    fn ended(state: State, arrived_at: Timestamp, counted_until: Timestamp) -> Self {
        Self {
            counted_until,
            waited_secs: secs_between(arrived_at, counted_until),
            state,
            own_steps: 0,
        }
    }

    /// Returns the second in which it arrived.
    fn arrived_at(&self) -> Timestamp {
        let waited = DurationMs::from_secs(self.waited_secs.into());
        self.counted_until.floor_to(SECOND) - waited
    }

    /// Returns the time from which on this node counts it.
    fn own_from(&self) -> Timestamp {
        let until = self.counted_until.ceil_to(COUNT_GRAIN);
        until - COUNT_GRAIN.times(self.own_steps.into())
    }
}

const _: () = assert!(
    size_of::<(VisitorId, Entry)>() == 32,
    "with its index in the table, a million of these fit into 64 MiB"
);

const SECOND: DurationMs = DurationMs(1_000);

/// Returns the whole seconds from a second of arrival to a point in time.
fn secs_between(arrived_at: Timestamp, at: Timestamp) -> u32 {
    let secs = at.floor_to(SECOND).since(arrived_at).0 / SECOND.0;
    u32::try_from(secs).unwrap_or(u32::MAX)
}

/// Visitor who waits or has just left, as one node remembers it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Remembered {
    /// Visitor.
    pub visitor: VisitorId,
    /// Second of its arrival.
    pub arrived_at: Timestamp,
    /// Time by which its next request is overdue; `None` if it has just left.
    pub counted_until: Option<Timestamp>,
}

/// Shortest interval by which a refresh is overdue: the period of reports. A visitor who asks again
/// after half a second would not be counted any more when the report of its next request comes.
const INTERVAL_MIN: DurationMs = DurationMs(1_000);

/// Returns the longest time until a visitor's next refresh is overdue.
fn overdue_after(interval: DurationMs) -> DurationMs {
    let interval = interval.max(INTERVAL_MIN);
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
        let own_from = match self.entries.get_mut(ticket.visitor) {
            Some(known) if known.state == State::Waiting && known.counted_until == from => {
                known.own_from()
            }
            _ => from,
        };
        let entry = Entry::waiting(ticket.bucket, (own_from, until), now);
        self.remember(ticket.visitor, entry);
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
            let entry = Entry::ended(State::Admitted, ticket.bucket, until);
            self.remember(ticket.visitor, entry);
        }
        is_counted
    }

    /// Subtracts a visitor with this ticket, who left the queue, for as long as this node would
    /// count it. Returns whether it was counted here until now.
    ///
    /// # Why only what this node counts
    ///
    /// A copy of the ticket may leave at every node. If each of them subtracted what another one
    /// counts, those behind would seem to be further ahead than they are. An admission may subtract
    /// it, because it costs a slot.
    pub fn handle_leave(&mut self, ticket: &Ticket, rank: Timestamp, now: Timestamp) -> bool {
        self.schedule.advance(now);
        let until = self.counted_until(ticket, now);
        let known = self.entries.get_mut(ticket.visitor).copied();
        let known = known.filter(|known| known.state == State::Waiting);
        let own = known.map(|known| (known.own_from().max(now), known.counted_until));
        if let Some(own) = own {
            self.schedule.add(rank, own, -1, now);
        }
        let remembered_until = until.max(now + LEAVING);
        let entry = Entry::ended(State::Left, ticket.bucket, remembered_until);
        self.remember(ticket.visitor, entry);
        own.is_some_and(|(from, until)| from == now && until > now)
    }

    /// Stops counting a visitor with this ticket until its next refresh, as far as this node counts
    /// it. Returns whether it was counted here until now.
    pub fn handle_pause(&mut self, ticket: &Ticket, rank: Timestamp, now: Timestamp) -> bool {
        self.schedule.advance(now);
        let known = self.entries.get_mut(ticket.visitor);
        let is_counted =
            |known: &&mut Entry| known.state == State::Waiting && known.counted_until > now;
        let Some(known) = known.filter(is_counted) else {
            return false;
        };
        let own = (known.own_from().max(now), known.counted_until);
        *known = Entry::ended(State::Waiting, ticket.bucket, now);
        self.schedule.add(rank, own, -1, now);
        own.0 == now
    }

    /// Whether this visitor left the queue here, a short time ago.
    pub fn has_left(&mut self, visitor: VisitorId, now: Timestamp) -> bool {
        let known = self.entries.get_mut(visitor);
        known.is_some_and(|known| known.state == State::Left && known.counted_until > now)
    }

    /// Returns what this node remembers of visitors with this code. Looks at each entry.
    pub fn find(&self, code: VisitorCode, now: Timestamp) -> impl Iterator<Item = Remembered> {
        let entries = self.entries.iter();
        let found = entries.filter(move |(visitor, _)| code.is_of(*visitor));
        found.filter_map(move |(visitor, entry)| {
            let is_over = entry.counted_until <= now;
            (!is_over && entry.state != State::Admitted).then_some(Remembered {
                visitor: *visitor,
                arrived_at: entry.arrived_at(),
                counted_until: (entry.state == State::Waiting).then_some(entry.counted_until),
            })
        })
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

    /// Whether a visitor with this ticket is counted now, at any node.
    pub fn is_counted(&mut self, ticket: &Ticket, now: Timestamp) -> bool {
        self.counted_until(ticket, now) > now
    }

    /// Whether a visitor with this ticket is counted now because of another request with it.
    pub fn is_counted_anew(&mut self, ticket: &Ticket, now: Timestamp) -> bool {
        let until = self.counted_until(ticket, now);
        until > now && ticket.counted_until.is_none_or(|written| until > written)
    }

    /// Returns the newest time until which some node counted a visitor with this ticket, as far as
    /// known, whatever became of that count; `None` if it never waited, or does not any more.
    pub fn newest_end(&mut self, ticket: &Ticket) -> Option<Timestamp> {
        let written = ticket.counted_until;
        match self.entries.get_mut(ticket.visitor) {
            Some(known) if known.state == State::Waiting => written.max(Some(known.counted_until)),
            Some(known) => written.filter(|written| *written > known.counted_until),
            None => written,
        }
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
            Some(known) if known.state == State::Waiting => written.max(known.counted_until),
            // A copy of the ticket that was admitted or left: its count has been subtracted.
            Some(known) if written <= known.counted_until => Timestamp::ZERO,
            _ => written,
        }
    }

    fn remember(&mut self, visitor: VisitorId, entry: Entry) {
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
