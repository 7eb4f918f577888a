//! Who waits here, and where does each stand? The part of the queue that a node remembers.
//!
//! A visitor counts from the first time it *brings its ticket back*, so that clients without
//! cookies do not jam the line. It counts for the watermark until its next ask is a second
//! overdue, and for positions a little longer. Order lives in the tickets; losing this memory
//! costs counts for a moment, not places.

mod cohorts;
mod visitors;

use alloc::collections::BTreeMap;

use crate::id::VisitorId;
use crate::time::{DurationMs, Timestamp};
use crate::watermark::WaitingCounts;
use cohorts::Cohorts;
use visitors::Visitors;

/// How late an ask may be before its slot is offered to those behind. Two round trips of a slow
/// phone; longer, and the slots of those who left stay empty for longer.
pub const OVERDUE: DurationMs = DurationMs(1_000);

/// Positions are recomputed at most this often; a position on a page is older than that anyway.
const POSITIONS_EVERY: DurationMs = DurationMs(250);

/// The waiting visitors of one room at one node.
#[derive(Clone, Debug)]
pub struct WaitingBook {
    entries: Visitors<Entry>,
    capacity: usize,
    sweep_at: usize,
    swept_at: Timestamp,
    /// Those whose next ask is not overdue.
    eligible: Cohorts,
    /// Those who are probably still there.
    present: Cohorts,
    inherited: Inherited,
    positions: Positions,
}

/// One who waits. There may be a million of them: what follows from something else is not kept.
#[derive(Clone, Copy, Debug)]
struct Entry {
    rank: Timestamp,
    asked_at: Timestamp,
    /// Milliseconds until the next ask; at most 49 days.
    ask_after: u32,
    /// The newest inheritance among which it was looked for.
    inheritance: u32,
}

const _: () = assert!(
    size_of::<(VisitorId, Entry)>() == 40,
    "with a place in the table, a million of these fit into 64 MiB"
);

impl Entry {
    /// Until when it counts for the watermark.
    fn eligible_until(self) -> Timestamp {
        self.asked_at + DurationMs(u64::from(self.ask_after)) + OVERDUE
    }

    /// Until when it counts for positions.
    fn present_until(self) -> Timestamp {
        self.asked_at + DurationMs(u64::from(self.ask_after) * 5 / 2)
    }
}

/// An ask of somebody who waits.
#[derive(Clone, Copy, Debug)]
pub struct QueueRequest {
    /// Who asks.
    pub visitor: VisitorId,
    /// The bucket by which it is served.
    pub rank: Timestamp,
    /// When it will ask again.
    pub ask_after: DurationMs,
}

/// Counts left by a node that is gone, until those visitors have asked here.
#[derive(Clone, Debug, Default)]
struct Inherited {
    counts: WaitingCounts,
    /// By rank, when the last of them must have asked.
    until: BTreeMap<Timestamp, Timestamp>,
    /// The first of those times.
    next_end: Timestamp,
    /// Rises with every inheritance.
    number: u32,
}

/// Cumulated counts by rank, recomputed now and then.
#[derive(Clone, Debug, Default)]
struct Positions {
    as_of: Option<Timestamp>,
    /// Rank, how many wait before it, how many in it.
    steps: alloc::vec::Vec<(Timestamp, u32, u32)>,
    total: u32,
}

impl WaitingBook {
    /// An empty book for at most `capacity` visitors; more are served but not counted.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            entries: Visitors::new(),
            capacity,
            sweep_at: SWEEP_FIRST,
            swept_at: Timestamp::ZERO,
            eligible: Cohorts::default(),
            present: Cohorts::default(),
            inherited: Inherited::default(),
            positions: Positions::default(),
        }
    }

    /// Takes over counts of visitors who waited at a node that is gone; `until` says for a rank
    /// when all of them must have asked again, wherever they are.
    ///
    /// Those who wait here already may be among them: a node that was cut off for longer than its
    /// lease inherits from itself. Each of them takes one out with its next ask. That may be one
    /// too many, and is made good when whoever it stood for asks. Those who ask at other nodes
    /// nobody takes out here: they hold up everybody behind them until their time is over.
    ///
    /// What two nodes that come and go inherit from each other contains what they inherited before.
    /// So of several inheritances the largest counts, and until the time of the first: added up and
    /// prolonged, a few visitors would become millions.
    pub fn inherit(
        &mut self,
        counts: &WaitingCounts,
        mut until: impl FnMut(Timestamp) -> Timestamp,
    ) {
        let inherited = &mut self.inherited;
        inherited.number = inherited.number.wrapping_add(1);
        for (rank, count) in counts.iter() {
            let known = inherited.counts.count_in(rank);
            inherited.counts.add(rank, count.saturating_sub(known));
            if known == 0 {
                let until = until(rank);
                inherited.until.insert(rank, until);
                inherited.next_end = inherited.next_end.min(until);
            }
        }
    }

    /// Records that somebody brought its waiting ticket back.
    pub fn handle_ask(&mut self, ask: QueueRequest, now: Timestamp) {
        self.expire(now);
        self.sweep(now);
        let entry = Entry {
            rank: ask.rank,
            asked_at: now,
            ask_after: u32::try_from(ask.ask_after.0).unwrap_or(u32::MAX),
            inheritance: self.inherited.number,
        };
        let has_room = self.entries.len() < self.capacity;
        match self.entries.get_mut(ask.visitor) {
            Some(known) => {
                self.inherited.take_out(known);
                let known = core::mem::replace(known, entry);
                self.prolong(known, entry, now);
                return;
            }
            None if has_room => {
                self.inherited.take_one(ask.rank);
                self.entries.insert(ask.visitor, entry);
            }
            None => return,
        }
        self.eligible.add(entry.rank, entry.eligible_until());
        self.present.add(entry.rank, entry.present_until());
    }

    /// Counts an entry as it is now and no longer as it was.
    fn prolong(&mut self, was: Entry, is: Entry, now: Timestamp) {
        if was.rank == is.rank {
            let (rank, until) = (is.rank, is.eligible_until());
            self.eligible
                .prolong(rank, was.eligible_until(), until, now);
            let until = is.present_until();
            self.present.prolong(rank, was.present_until(), until, now);
            return;
        }
        self.eligible.remove(was.rank, was.eligible_until(), now);
        self.present.remove(was.rank, was.present_until(), now);
        self.eligible.add(is.rank, is.eligible_until());
        self.present.add(is.rank, is.present_until());
    }

    /// Records that somebody does not wait any more: it went in, or left.
    pub fn handle_gone(&mut self, visitor: VisitorId, rank: Timestamp, now: Timestamp) {
        self.expire(now);
        match self.entries.remove(visitor) {
            Some(known) => {
                self.eligible
                    .remove(known.rank, known.eligible_until(), now);
                self.present.remove(known.rank, known.present_until(), now);
                self.inherited.take_out(&known);
            }
            None => self.inherited.take_one(rank),
        }
    }

    /// Forgets everybody, for a change of the order in which they are served. Their tickets bring
    /// them back with their next asks.
    pub fn clear(&mut self) {
        *self = Self::new(self.capacity);
    }

    /// How many count for the watermark, by rank.
    pub fn counts(&mut self, now: Timestamp) -> WaitingCounts {
        self.expire(now);
        let mut counts = self.eligible.counts().clone();
        counts.absorb(&self.inherited.counts);
        counts
    }

    /// The oldest rank in which somebody counts.
    pub fn oldest(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.expire(now);
        let own = self.eligible.counts().iter().next();
        let inherited = self.inherited.counts.iter().next();
        [own, inherited]
            .into_iter()
            .flatten()
            .map(|(rank, _)| rank)
            .min()
    }

    /// How many count for the watermark.
    #[must_use]
    pub fn eligible_total(&self) -> u32 {
        self.eligible.total() + self.inherited.total()
    }

    /// How many are ahead of `rank`: all in earlier buckets, and half of those in the same one.
    pub fn people_ahead(&mut self, rank: Timestamp, now: Timestamp) -> u32 {
        self.refresh_positions(now);
        let steps = &self.positions.steps;
        match steps.binary_search_by_key(&rank, |&(bucket, ..)| bucket) {
            Ok(at) => {
                let (_, before, count) = steps[at];
                before.saturating_add(count / 2)
            }
            Err(0) => 0,
            Err(at) => {
                let (_, before, count) = steps[at - 1];
                before.saturating_add(count)
            }
        }
    }

    /// How many wait, as far as positions know.
    pub fn people_waiting(&mut self, now: Timestamp) -> u32 {
        self.refresh_positions(now);
        self.positions.total
    }

    fn expire(&mut self, now: Timestamp) {
        self.eligible.expire(now);
        self.present.expire(now);
        self.inherited.expire(now);
    }

    fn sweep(&mut self, now: Timestamp) {
        let is_large = self.entries.len() >= self.sweep_at.min(self.capacity);
        if !is_large || now.since(self.swept_at) < SWEEP_PERIOD {
            return;
        }
        self.swept_at = now;
        self.entries.retain(|entry| entry.present_until() > now);
        self.sweep_at = (self.entries.len() * 2).max(SWEEP_FIRST);
    }

    fn refresh_positions(&mut self, now: Timestamp) {
        let is_fresh = self
            .positions
            .as_of
            .is_some_and(|as_of| now.since(as_of) < POSITIONS_EVERY && as_of <= now);
        if is_fresh {
            return;
        }
        self.expire(now);
        let counts = self.present.counts();
        if self.inherited.counts.is_empty() {
            self.positions.cumulate(counts);
        } else {
            let mut merged = counts.clone();
            merged.absorb(&self.inherited.counts);
            self.positions.cumulate(&merged);
        }
        self.positions.as_of = Some(now);
    }
}

impl Positions {
    fn cumulate(&mut self, counts: &WaitingCounts) {
        self.total = 0;
        self.steps.clear();
        for (rank, count) in counts.iter() {
            self.steps.push((rank, self.total, count));
            self.total = self.total.saturating_add(count);
        }
    }
}

impl Inherited {
    /// Takes out one who was here already when this came.
    fn take_out(&mut self, known: &Entry) {
        if known.inheritance != self.number {
            self.take_one(known.rank);
        }
    }

    fn take_one(&mut self, rank: Timestamp) {
        self.counts.take(rank, 1);
    }

    fn expire(&mut self, now: Timestamp) {
        if self.until.is_empty() || now < self.next_end {
            return;
        }
        let counts = &mut self.counts;
        self.until.retain(|rank, until| {
            let is_over = *until <= now;
            if is_over {
                counts.take(*rank, u32::MAX);
            }
            !is_over
        });
        self.next_end = self
            .until
            .values()
            .copied()
            .min()
            .unwrap_or(Timestamp::NEVER);
    }

    fn total(&self) -> u32 {
        self.counts.total()
    }
}

/// First size at which entries of those who left are swept out.
const SWEEP_FIRST: usize = 1_024;
/// A book that is full of visitors who are still there is not swept for every ask.
const SWEEP_PERIOD: DurationMs = DurationMs(1_000);

#[cfg(test)]
mod tests;
