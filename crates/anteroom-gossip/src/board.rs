//! What has been counted, as far as this node knows: by itself and by others.
//!
//! A set of counters that only grow ([`crate::cell`]), changed by calls ([`crate::judging`]) and by what is heard, and read out
//! to tell others ([`crate::telling`]). No clock, no sockets: time is an argument.
//!
//! # What a flood of clients does
//!
//! There is place for so many counters. Where it is used up,
//!
//! - newcomers of a limit are counted together, in one of 64 *crowds*, which nodes tell each other like all else: some may be rejected because of
//!   others, and none goes through more often than its limit says. As long as something is counted for a crowd, newcomers
//!   belong to it;
//! - who is known goes on by himself, up to twice the place; beyond he joins his crowd, and what he called before in this window
//!   does not count for him there;
//! - of clients that others tell about, those that are not known here are not kept (`counter_dropped`): each of them may call here what
//!   his limit says, as if he had called nobody else.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use anteroom_limits::rate::WINDOW_LONGEST;
use anteroom_limits::time::{MicroSpan, Micros};
use indexmap::IndexMap;

use crate::cell::{Cell, CounterId, Merged, WriterId};
use crate::message::Told;
use crate::names::{Names, is_crowd};
use crate::seal::Secret;
use crate::tally::{Event, Tally};

/// Counters that a node keeps at most; one takes about 150 bytes, and 24 more for each further node that counted there
/// (three and more: 48 and more). So this is 75 to 150 MB in a flood, and nothing without one.
pub const COUNTERS_MAX: usize = 500_000;
/// For how much longer than its own nodes need it a counter is kept: clocks may be apart (1 s), and who tells of it may be late.
pub(crate) const KEPT_LONGER: MicroSpan = MicroSpan::from_secs(5);
/// Counters end no later than that from now: two of the longest windows there are. What ends later was made by a clock that is wrong.
const ENDS_WITHIN: MicroSpan = MicroSpan(WINDOW_LONGEST.0 * 2 + 2 * KEPT_LONGER.0);

/// All counters that a node knows of.
pub struct Board {
    pub(crate) me: WriterId,
    pub(crate) names: Names,
    pub(crate) cells: IndexMap<CounterId, Cell>,
    pub(crate) cells_max: usize,
    /// How many of them are crowds'.
    pub(crate) crowds: usize,
    /// Other writers that speak for themselves.
    pub(crate) alive: BTreeSet<WriterId>,
    /// What this node changed and must tell, with the round in which it did; the oldest first. One that was changed again later
    /// stands here twice, and the first is void.
    pub(crate) changed: VecDeque<(u64, CounterId)>,
    /// Counts the times that news were told, from one on.
    pub(crate) round: u64,
    /// The counter that is looked at next, to repeat it or to forget it.
    pub(crate) hand: usize,
    pub(crate) tally: Arc<Tally>,
}

impl Board {
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
            changed: VecDeque::new(),
            round: 1,
            hand: 0,
            tally: Arc::default(),
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

    /// From now on these others speak for themselves; for all who are not among them this node does, as far as it knows.
    pub(crate) fn set_alive(&mut self, alive: BTreeSet<WriterId>) {
        self.alive = alive;
    }

    /// Whether this node tells what that writer has counted.
    pub(crate) fn speaks_for(&self, writer: WriterId) -> bool {
        writer == self.me || !self.alive.contains(&writer)
    }

    /// Hears what another node tells of a counter.
    pub(crate) fn hear(&mut self, told: &Told, now: Micros) {
        if told.forget_at <= now {
            // It was under way for long, or somebody sends again what he saw.
            return;
        }
        if told.forget_at.since(now) > ENDS_WITHIN || !self.has_place_for(told.id) {
            self.tally.count(Event::CounterDropped);
            return;
        }
        let cell = self.cell(told.id, told.forget_at);
        cell.forget_at = cell.forget_at.max(told.forget_at);
        let dropped = told
            .shares
            .iter()
            .filter(|share| cell.merge(**share) == Merged::Full);
        let dropped = dropped.count() as u64;
        self.tally.count_many(Event::CounterDropped, dropped);
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

    /// The counter, which begins now if there is none.
    pub(crate) fn cell(&mut self, id: CounterId, forget_at: Micros) -> &mut Cell {
        let crowds = &mut self.crowds;
        self.cells.entry(id).or_insert_with(|| {
            *crowds += usize::from(is_crowd(id.name));
            Cell::new(forget_at)
        })
    }

    /// Looks at the counter at the hand: forgets it if its time is over, else goes on to the next.
    pub(crate) fn turn_hand(&mut self, now: Micros) {
        if self.hand >= self.cells.len() {
            self.hand = 0;
        }
        let Some((id, cell)) = self.cells.get_index(self.hand) else {
            return;
        };
        if cell.forget_at > now {
            self.hand += 1;
            return;
        }
        self.crowds -= usize::from(is_crowd(id.name));
        // The last one takes its place, and is looked at next.
        self.cells.swap_remove_index(self.hand);
        if self.cells.capacity() / 4 > self.cells.len() + 1_024 {
            // A flood is over.
            self.cells.shrink_to(self.cells.len() * 2);
        }
    }

    /// In how long all that is kept of a client is forgotten.
    pub(crate) fn forgets_after(&self, name: u128, now: Micros) -> Option<MicroSpan> {
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

impl fmt::Debug for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (me, counters) = (self.me, self.cells.len());
        write!(f, "Board of {me:?} with {counters} counters")
    }
}

#[cfg(test)]
mod tests;
