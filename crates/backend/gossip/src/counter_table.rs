//! Counters that a node knows of: its own and those reported by others.
//!
//! The counters only grow ([`crate::cell`]). Requests ([`crate::acquire`]) and reports of peers
//! change them, and [`crate::reports`] reports them. Time is an argument; there are no clocks and
//! no sockets.
//!
//! # What a flood of clients does
//!
//! The table has a capacity. Once it is full,
//!
//! - new clients of a limit share one of 64 *overflow entries*, which nodes exchange like all
//!   counters. Some clients may be rejected because of others, and none exceeds its limit. As soon
//!   as there is room, new clients get their own counters. The count of their overflow entry still
//!   counts against them until it expires, as it may be their own;
//! - known clients keep their own counters, up to twice the capacity. Beyond that they join the
//!   overflow entry, and their earlier requests in this window do not count there;
//! - reports of clients that are not known here are dropped (`counter_dropped`). Such a client may
//!   use its whole limit at this node.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use anteroom_limit::rate::WINDOW_LONGEST;
use anteroom_limit::time::{DurationUs, TimestampUs};
use indexmap::IndexMap;

use crate::cell::{Cell, CounterId, Merged, WriterId};
use crate::event_counts::{Event, EventCounts};
use crate::message::CounterReport;
use crate::names::{Names, is_overflow};
use crate::pending::PendingReports;
use crate::seal::Secret;
use anteroom_limit_store::clock::CLOCKS_APART_MAX;

/// Most counters that a node keeps. A counter takes about 150 bytes, and 24 more for each further
/// node that counted there (from the third on at least 48). So a flood takes 75 to 150 MB; without
/// one the table takes next to nothing.
pub const COUNTERS_MAX: usize = 500_000;
/// Time for which a counter is kept after its window: clocks may differ (1 s), and reports may be
/// late.
pub(crate) const KEPT_LONGER: DurationUs = DurationUs::from_secs(5);
/// Latest end of a counter from now: two of the longest windows. A later end comes from a wrong
/// clock.
const ENDS_WITHIN: DurationUs = DurationUs(WINDOW_LONGEST.0 * 2 + 2 * KEPT_LONGER.0);

/// Table of all counters that a node knows of.
pub struct CounterTable {
    pub(crate) me: WriterId,
    pub(crate) names: Names,
    pub(crate) cells: IndexMap<CounterId, Cell>,
    pub(crate) cells_max: usize,
    /// Number of overflow entries among the counters.
    pub(crate) overflow_count: usize,
    /// Writers that report for themselves.
    pub(crate) alive: BTreeSet<WriterId>,
    /// Changes of this node that are not reported yet.
    pub(crate) news: PendingReports,
    /// Number of the next round of changes; the first is 1.
    pub(crate) round: u64,
    /// Index of the counter that the repetition visits next; an expired one is forgotten.
    pub(crate) cursor: usize,
    /// Index of the counter that the sweep visits next.
    sweep_cursor: usize,
    pub(crate) event_counts: Arc<EventCounts>,
}

impl CounterTable {
    /// Creates an empty table of this writer, whose number no other process has or had.
    #[must_use]
    pub fn new(me: WriterId, secret: &Secret, counters_max: usize) -> Self {
        Self {
            me,
            names: Names::new(secret.names()),
            cells: IndexMap::new(),
            cells_max: counters_max.max(1),
            overflow_count: 0,
            alive: BTreeSet::new(),
            news: PendingReports::default(),
            round: 1,
            cursor: 0,
            sweep_cursor: 0,
            event_counts: Arc::default(),
        }
    }

    /// Returns the number of this process.
    #[must_use]
    pub const fn me(&self) -> WriterId {
        self.me
    }

    /// Returns the number of counters.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Returns whether the table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Sets the writers that report for themselves. This node reports for all others, as far as it
    /// knows their counts.
    pub(crate) fn set_alive(&mut self, alive: BTreeSet<WriterId>) {
        self.alive = alive;
    }

    /// Returns whether this node reports the counts of that writer.
    pub(crate) fn reports_for(&self, writer: WriterId) -> bool {
        writer == self.me || !self.alive.contains(&writer)
    }

    /// Merges a peer's report of a counter. A sub-window far in the future is ignored: the clock of
    /// its writer is wrong, and the requests would count twice, by that clock and later by ours.
    pub(crate) fn merge_report(&mut self, report: &CounterReport, now: TimestampUs) {
        if report.forget_at <= now {
            // A delayed or replayed datagram.
            return;
        }
        let begins_at = TimestampUs(report.id.index.saturating_mul(report.id.width));
        let is_invalid =
            begins_at > now + CLOCKS_APART_MAX || report.forget_at.since(now) > ENDS_WITHIN;
        if self.is_full() {
            self.sweep(now);
        }
        if is_invalid || !self.has_room_for(report.id) {
            self.event_counts.count(Event::CounterDropped);
            return;
        }
        let may_be_in_overflow = self.may_be_in_overflow(report.id);
        let cell = self.cell(report.id, report.forget_at, may_be_in_overflow, now);
        cell.forget_at = cell.forget_at.max(report.forget_at);
        let dropped = report
            .shares
            .iter()
            .filter(|share| cell.merge(**share) == Merged::Full);
        let dropped = dropped.count() as u64;
        self.event_counts.count_many(Event::CounterDropped, dropped);
    }

    /// Returns whether the table has room for a counter that a peer reports.
    fn has_room_for(&self, id: CounterId) -> bool {
        self.cells.contains_key(&id)
            || if is_overflow(id.name) {
                self.overflow_count < self.cells_max
            } else {
                !self.is_full()
            }
    }

    /// Returns whether new clients get no counters of their own.
    pub(crate) fn is_full(&self) -> bool {
        self.cells.len() - self.overflow_count >= self.cells_max
    }

    /// Returns whether earlier requests of a client that a peer reports may be counted in its
    /// overflow entry. A known client keeps its state. A node that has just started may learn of a
    /// client before its overflow entry; the client may then send up to its limit more there.
    fn may_be_in_overflow(&self, id: CounterId) -> bool {
        if self.overflow_count == 0 || is_overflow(id.name) {
            return false;
        }
        let before = id.index.checked_sub(1);
        let before = before.and_then(|index| self.cells.get(&CounterId { index, ..id }));
        before.is_none_or(|before| before.may_be_in_overflow)
    }

    /// Returns the counter, creating it if there is none.
    pub(crate) fn cell(
        &mut self,
        id: CounterId,
        forget_at: TimestampUs,
        may_be_in_overflow: bool,
        now: TimestampUs,
    ) -> &mut Cell {
        if let Some(at) = self.cells.get_index_of(&id) {
            return &mut self.cells[at];
        }
        // Each new counter pays for a sweep: so a node that repeats slowly, or not at all, still
        // forgets.
        self.sweep(now);
        self.overflow_count += usize::from(is_overflow(id.name));
        let mut cell = Cell::new(forget_at);
        cell.may_be_in_overflow = may_be_in_overflow;
        self.cells.entry(id).or_insert(cell)
    }

    /// Forgets up to two expired counters, or skips two live ones. Two for each new counter bound
    /// the table to about twice the live ones.
    pub(crate) fn sweep(&mut self, now: TimestampUs) {
        for _ in 0..2 {
            if self.sweep_cursor >= self.cells.len() {
                self.sweep_cursor = 0;
            }
            match self.cells.get_index(self.sweep_cursor) {
                Some((_, cell)) if cell.forget_at > now => self.sweep_cursor += 1,
                Some(_) => self.forget(self.sweep_cursor),
                None => return,
            }
        }
    }

    /// Forgets a counter if it is empty.
    pub(crate) fn forget_empty(&mut self, id: CounterId) {
        let found = self.cells.get_full(&id);
        if let Some((at, _, _)) = found.filter(|(_, _, cell)| cell.is_empty()) {
            self.forget(at);
        }
    }

    fn forget(&mut self, at: usize) {
        let Some((id, _)) = self.cells.get_index(at) else {
            return;
        };
        self.overflow_count -= usize::from(is_overflow(id.name));
        // The last counter moves to the freed index. Before the cursor it would miss this
        // repetition, so the last counter that the cursor has passed moves there instead.
        let mut at = at;
        if at < self.cursor {
            self.cursor -= 1;
            self.cells.swap_indices(at, self.cursor);
            at = self.cursor;
        }
        self.cells.swap_remove_index(at);
        if self.cells.capacity() / 4 > self.cells.len() + 1_024 {
            // Free memory after a flood.
            self.cells.shrink_to(self.cells.len() * 2);
        }
    }

    /// Visits the counter at the cursor: forgets it if it has expired, else moves on to the next.
    pub(crate) fn advance_cursor(&mut self, now: TimestampUs) {
        if self.cursor >= self.cells.len() {
            self.cursor = 0;
        }
        match self.cells.get_index(self.cursor) {
            Some((_, cell)) if cell.forget_at > now => self.cursor += 1,
            // Another counter moves to this index and is visited next.
            Some(_) => self.forget(self.cursor),
            None => {}
        }
    }

    /// Returns the time until all counters of a client are forgotten.
    pub(crate) fn forgets_after(&self, name: u128, now: TimestampUs) -> Option<DurationUs> {
        let of_client = self.cells.iter().filter(|(id, _)| id.name == name);
        of_client.map(|(_, cell)| cell.forget_at.since(now)).max()
    }

    /// Returns all non-zero sums; for comparing tables in tests.
    #[doc(hidden)]
    #[must_use]
    pub fn sums(&self) -> Vec<((u128, u64, u64), u32)> {
        let all = self.cells.iter();
        let all = all.map(|(id, cell)| ((id.name, id.width, id.index), cell.sum()));
        let mut sums: Vec<_> = all.filter(|(_, sum)| *sum > 0).collect();
        sums.sort_unstable();
        sums
    }
}

impl fmt::Debug for CounterTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (me, counters) = (self.me, self.cells.len());
        write!(f, "CounterTable of {me:?} with {counters} counters")
    }
}

#[cfg(test)]
mod tests;
