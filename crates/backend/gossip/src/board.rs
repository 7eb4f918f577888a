//! What has been counted, as far as this node knows: by itself and by others.
//!
//! A set of counters that only grow ([`crate::cell`]), changed by calls ([`crate::judging`]) and by
//! what is heard, and read out to tell others ([`crate::telling`]). No clock, no sockets: time is
//! an argument.
//!
//! # What a flood of clients does
//!
//! There is place for so many counters. Where it is used up,
//!
//! - newcomers of a limit are counted together, in one of 64 *crowds*, which nodes tell each other
//!   like all else: some may be rejected because of others, and none goes through more often than
//!   its limit says. As soon as there is place again newcomers are counted by themselves; what is
//!   counted for their crowd is held against them until it is over, for it may be their own;
//! - who is known goes on by himself, up to twice the place; beyond he joins his crowd, and what he
//!   called before in this window does not count for him there;
//! - of clients that others tell about, those that are not known here are not kept
//!   (`counter_dropped`): each of them may call here what his limit says, as if he had called
//!   nobody else.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use anteroom_limit::rate::WINDOW_LONGEST;
use anteroom_limit::time::{DurationUs, TimestampUs};
use indexmap::IndexMap;

use crate::cell::{Cell, CounterId, Merged, WriterId};
use crate::event_counts::{Event, Tally};
use crate::message::CounterReport;
use crate::names::{Names, is_crowd};
use crate::news::PendingReports;
use crate::seal::Secret;
use anteroom_limit_store::clock::CLOCKS_APART_MAX;

/// Counters that a node keeps at most; one takes about 150 bytes, and 24 more for each further node
/// that counted there (three and more: 48 and more). So this is 75 to 150 MB in a flood, and
/// nothing without one.
pub const COUNTERS_MAX: usize = 500_000;
/// For how much longer than its own nodes need it a counter is kept: clocks may be apart (1 s), and
/// who tells of it may be late.
pub(crate) const KEPT_LONGER: DurationUs = DurationUs::from_secs(5);
/// Counters end no later than that from now: two of the longest windows there are. What ends later
/// was made by a clock that is wrong.
const ENDS_WITHIN: DurationUs = DurationUs(WINDOW_LONGEST.0 * 2 + 2 * KEPT_LONGER.0);

/// All counters that a node knows of.
pub struct CounterTable {
    pub(crate) me: WriterId,
    pub(crate) names: Names,
    pub(crate) cells: IndexMap<CounterId, Cell>,
    pub(crate) cells_max: usize,
    /// How many of them are crowds'.
    pub(crate) crowds: usize,
    /// Other writers that speak for themselves.
    pub(crate) alive: BTreeSet<WriterId>,
    /// What this node changed and must tell.
    pub(crate) news: PendingReports,
    /// Counts the times that news were told, from one on.
    pub(crate) round: u64,
    /// The counter that is looked at next, to repeat it or to forget it.
    pub(crate) hand: usize,
    /// The counter that is looked at next, only to forget it.
    broom: usize,
    pub(crate) event_counts: Arc<Tally>,
}

impl CounterTable {
    /// Nothing counted yet, by this writer, which nobody else is or was.
    #[must_use]
    pub fn new(me: WriterId, secret: &Secret, counters_max: usize) -> Self {
        Self {
            me,
            names: Names::new(secret.names()),
            cells: IndexMap::new(),
            cells_max: counters_max.max(1),
            crowds: 0,
            alive: BTreeSet::new(),
            news: PendingReports::default(),
            round: 1,
            hand: 0,
            broom: 0,
            event_counts: Arc::default(),
        }
    }

    /// Who counts here.
    #[must_use]
    pub const fn me(&self) -> WriterId {
        self.me
    }

    /// How many counters are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether nothing is counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// From now on these others speak for themselves; for all who are not among them this node
    /// does, as far as it knows.
    pub(crate) fn set_alive(&mut self, alive: BTreeSet<WriterId>) {
        self.alive = alive;
    }

    /// Whether this node tells what that writer has counted.
    pub(crate) fn speaks_for(&self, writer: WriterId) -> bool {
        writer == self.me || !self.alive.contains(&writer)
    }

    /// Hears what another node tells of a counter. Of a stretch that has not begun here by far it
    /// hears nothing: whoever counted there has a clock that is wrong, and would have it counted
    /// twice, by his clock and later by ours.
    pub(crate) fn hear(&mut self, told: &CounterReport, now: TimestampUs) {
        if told.forget_at <= now {
            // It was under way for long, or somebody sends again what he saw.
            return;
        }
        let begins_at = TimestampUs(told.id.index.saturating_mul(told.id.width));
        let is_strange =
            begins_at > now + CLOCKS_APART_MAX || told.forget_at.since(now) > ENDS_WITHIN;
        if self.is_full() {
            self.sweep(now);
        }
        if is_strange || !self.has_place_for(told.id) {
            self.event_counts.count(Event::CounterDropped);
            return;
        }
        let is_of_crowd = self.may_be_of_crowd(told.id);
        let cell = self.cell(told.id, told.forget_at, is_of_crowd, now);
        cell.forget_at = cell.forget_at.max(told.forget_at);
        let dropped = told
            .shares
            .iter()
            .filter(|share| cell.merge(**share) == Merged::Full);
        let dropped = dropped.count() as u64;
        self.event_counts.count_many(Event::CounterDropped, dropped);
    }

    /// Whether a counter that others tell about is kept.
    fn has_place_for(&self, id: CounterId) -> bool {
        self.cells.contains_key(&id)
            || if is_crowd(id.name) {
                self.crowds < self.cells_max
            } else {
                !self.is_full()
            }
    }

    /// Whether newcomers get no counters of their own.
    pub(crate) fn is_full(&self) -> bool {
        self.cells.len() - self.crowds >= self.cells_max
    }

    /// Whether what a client called before whom others tell about may be counted for his crowd. Who
    /// is known goes on as he was. A node that has just begun may hear of a client before it hears
    /// of his crowd; that one may call more there, up to his limit.
    fn may_be_of_crowd(&self, id: CounterId) -> bool {
        if self.crowds == 0 || is_crowd(id.name) {
            return false;
        }
        let before = id.index.checked_sub(1);
        let before = before.and_then(|index| self.cells.get(&CounterId { index, ..id }));
        before.is_none_or(|before| before.is_of_crowd)
    }

    /// The counter, which begins now if there is none.
    pub(crate) fn cell(
        &mut self,
        id: CounterId,
        forget_at: TimestampUs,
        is_of_crowd: bool,
        now: TimestampUs,
    ) -> &mut Cell {
        if let Some(at) = self.cells.get_index_of(&id) {
            return &mut self.cells[at];
        }
        // Whoever makes a place makes up for it: so a node that repeats slowly, or nothing, forgets
        // all the same.
        self.sweep(now);
        self.crowds += usize::from(is_crowd(id.name));
        let mut cell = Cell::new(forget_at);
        cell.is_of_crowd = is_of_crowd;
        self.cells.entry(id).or_insert(cell)
    }

    /// Forgets up to two counters whose time is over, or passes two that still matter. Two for each
    /// that is new: so there are never many more than still matter.
    pub(crate) fn sweep(&mut self, now: TimestampUs) {
        for _ in 0..2 {
            if self.broom >= self.cells.len() {
                self.broom = 0;
            }
            match self.cells.get_index(self.broom) {
                Some((_, cell)) if cell.forget_at > now => self.broom += 1,
                Some(_) => self.forget(self.broom),
                None => return,
            }
        }
    }

    /// Forgets a counter of which nothing is left.
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
        self.crowds -= usize::from(is_crowd(id.name));
        // The last one takes the place of the one that goes. If that were before the hand it would
        // not be repeated in this round, so the last one that the hand has passed goes there.
        let mut at = at;
        if at < self.hand {
            self.hand -= 1;
            self.cells.swap_indices(at, self.hand);
            at = self.hand;
        }
        self.cells.swap_remove_index(at);
        if self.cells.capacity() / 4 > self.cells.len() + 1_024 {
            // A flood is over.
            self.cells.shrink_to(self.cells.len() * 2);
        }
    }

    /// Looks at the counter at the hand: forgets it if its time is over, else goes on to the next.
    pub(crate) fn turn_hand(&mut self, now: TimestampUs) {
        if self.hand >= self.cells.len() {
            self.hand = 0;
        }
        match self.cells.get_index(self.hand) {
            Some((_, cell)) if cell.forget_at > now => self.hand += 1,
            // Another one is there then, and is looked at next.
            Some(_) => self.forget(self.hand),
            None => {}
        }
    }

    /// In how long all that is kept of a client is forgotten.
    pub(crate) fn forgets_after(&self, name: u128, now: TimestampUs) -> Option<DurationUs> {
        let of_client = self.cells.iter().filter(|(id, _)| id.name == name);
        of_client.map(|(_, cell)| cell.forget_at.since(now)).max()
    }

    /// What all have counted, without the counters of which nothing is left; for comparing boards.
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
        write!(f, "Board of {me:?} with {counters} counters")
    }
}

#[cfg(test)]
mod tests;
