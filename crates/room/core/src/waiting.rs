//! Waiting visitors of a room at one node, and their positions: the part of the queue that a node
//! remembers.
//!
//! A visitor counts from the first time it *brings its ticket back*, so that clients without
//! cookies do not block the queue. It counts for the watermark until its next refresh is a second
//! overdue, and for positions a little longer. Tickets carry the order: a node that loses this
//! memory has wrong counts for a moment, and no visitor loses its position.

mod cohorts;
mod visitors;

use alloc::collections::BTreeMap;

use crate::id::VisitorId;
use crate::time::{DurationMs, Timestamp};
use crate::watermark::WaitingCounts;
use cohorts::Cohorts;
use visitors::Visitors;

/// Time after which a late refresh frees the visitor's slot for those behind. Two round trips of a
/// slow phone; longer, and the slots of visitors who left stay empty for longer.
pub const OVERDUE: DurationMs = DurationMs(1_000);

/// Shortest time between two computations of positions; a position on a page is older than that
/// anyway.
const POSITIONS_EVERY: DurationMs = DurationMs(250);

/// Waiting visitors of one room at one node.
#[derive(Clone, Debug)]
pub struct WaitingBook {
    entries: Visitors<Entry>,
    capacity: usize,
    sweep_at: usize,
    swept_at: Timestamp,
    /// Visitors whose next refresh is not overdue.
    eligible: Cohorts,
    /// Visitors who are probably still there.
    present: Cohorts,
    inherited: Inherited,
    positions: Positions,
}

/// Waiting visitor. There may be a million of them: an entry has nothing that follows from the
/// rest.
#[derive(Clone, Copy, Debug)]
struct Entry {
    rank: Timestamp,
    refreshed_at: Timestamp,
    /// Milliseconds until the next refresh; at most 49 days.
    ask_after: u32,
    /// Number of the newest inheritance that counted this visitor out.
    inheritance: u32,
}

const _: () = assert!(
    size_of::<(VisitorId, Entry)>() == 40,
    "with its index in the table, a million of these fit into 64 MiB"
);

impl Entry {
    /// Returns the time until which it counts for the watermark.
    fn eligible_until(self) -> Timestamp {
        self.refreshed_at + DurationMs(u64::from(self.ask_after)) + OVERDUE
    }

    /// Returns the time until which it counts for positions.
    fn present_until(self) -> Timestamp {
        self.refreshed_at + DurationMs(u64::from(self.ask_after) * 5 / 2)
    }
}

/// Refresh of a waiting visitor.
#[derive(Clone, Copy, Debug)]
pub struct QueueRequest {
    /// Visitor who refreshes.
    pub visitor: VisitorId,
    /// Rank by which it is served.
    pub rank: Timestamp,
    /// Time until its next refresh.
    pub refresh_after: DurationMs,
}

/// Counts of visitors of an ended node, until they have refreshed elsewhere.
#[derive(Clone, Debug, Default)]
struct Inherited {
    counts: WaitingCounts,
    /// End of each rank's counts: by then all its visitors must have refreshed.
    until: BTreeMap<Timestamp, Timestamp>,
    /// First of those ends.
    next_end: Timestamp,
    /// Number of inheritances; rises with each.
    number: u32,
}

/// Cumulated counts by rank, recomputed at most every [`POSITIONS_EVERY`].
#[derive(Clone, Debug, Default)]
struct Positions {
    as_of: Option<Timestamp>,
    /// Rank, visitors before it, visitors in it.
    steps: alloc::vec::Vec<(Timestamp, u32, u32)>,
    total: u32,
}

impl WaitingBook {
    /// Makes an empty book for at most `capacity` visitors; more are served but not counted.
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

    /// Takes over counts of visitors who waited at an ended node. `until` returns for a rank the
    /// time by which all its visitors must have refreshed, at any node.
    ///
    /// Visitors who wait here already may be among them: a node that was cut off for longer than
    /// its lease inherits from itself. Each of them takes one out with its next refresh. That may
    /// be one too many, until the inherited visitor refreshes here. Nothing takes out those who
    /// refresh at other nodes: they delay all visitors behind them until their end.
    ///
    /// Two nodes that come and go inherit from each other what they had inherited before. So of
    /// several inheritances the largest counts, until the end of the first. If they were added up
    /// and extended, a few visitors would become millions.
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

    /// Records a refresh: a visitor brought its waiting ticket back.
    pub fn handle_refresh(&mut self, refresh: QueueRequest, now: Timestamp) {
        self.expire(now);
        self.sweep(now);
        let entry = Entry {
            rank: refresh.rank,
            refreshed_at: now,
            ask_after: u32::try_from(refresh.refresh_after.0).unwrap_or(u32::MAX),
            inheritance: self.inherited.number,
        };
        let has_capacity = self.entries.len() < self.capacity;
        match self.entries.get_mut(refresh.visitor) {
            Some(known) => {
                self.inherited.take_out(known);
                let known = core::mem::replace(known, entry);
                self.extend(known, entry, now);
                return;
            }
            None if has_capacity => {
                self.inherited.take_one(refresh.rank);
                self.entries.insert(refresh.visitor, entry);
            }
            None => return,
        }
        self.eligible.add(entry.rank, entry.eligible_until());
        self.present.add(entry.rank, entry.present_until());
    }

    /// Replaces an entry in the counts.
    fn extend(&mut self, old: Entry, updated: Entry, now: Timestamp) {
        if old.rank == updated.rank {
            let (rank, until) = (updated.rank, updated.eligible_until());
            self.eligible.extend(rank, old.eligible_until(), until, now);
            let until = updated.present_until();
            self.present.extend(rank, old.present_until(), until, now);
            return;
        }
        self.eligible.remove(old.rank, old.eligible_until(), now);
        self.present.remove(old.rank, old.present_until(), now);
        self.eligible.add(updated.rank, updated.eligible_until());
        self.present.add(updated.rank, updated.present_until());
    }

    /// Records that a visitor does not wait any more: it was admitted, or left.
    pub fn handle_departure(&mut self, visitor: VisitorId, rank: Timestamp, now: Timestamp) {
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

    /// Forgets all visitors, for a change of the queue's order. Their tickets bring them back with
    /// their next refreshes.
    pub fn clear(&mut self) {
        *self = Self::new(self.capacity);
    }

    /// Returns the visitors who count for the watermark, by rank.
    pub fn counts(&mut self, now: Timestamp) -> WaitingCounts {
        self.expire(now);
        let mut counts = self.eligible.counts().clone();
        counts.absorb(&self.inherited.counts);
        counts
    }

    /// Returns the oldest rank with a visitor who counts.
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

    /// Returns the number of visitors who count for the watermark.
    #[must_use]
    pub fn eligible_total(&self) -> u32 {
        self.eligible.total() + self.inherited.total()
    }

    /// Returns the number of visitors ahead of `rank`: all in earlier buckets, and half of those in
    /// the same one.
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

    /// Returns the number of waiting visitors, as of the last computation of positions.
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
    /// Takes out a visitor who waited here before the inheritance came.
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

/// First size at which entries of visitors who left are swept out.
const SWEEP_FIRST: usize = 1_024;
/// Shortest time between two sweeps: a full book is not swept for every refresh.
const SWEEP_PERIOD: DurationMs = DurationMs(1_000);

#[cfg(test)]
mod tests;
