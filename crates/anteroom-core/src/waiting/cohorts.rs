//! Counts by rank that run out by themselves: each member counts until a time of its own.
//!
//! Knows no visitors; whoever adds a member removes it with the same two figures.

use alloc::collections::BTreeMap;

use crate::time::{Millis, Span};
use crate::watermark::WaitingCounts;

/// Ends of membership are rounded up to this, which bounds the number of counters.
const GRAIN: Span = Span(500);

/// Counts by rank, with ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Cohorts {
    counts: WaitingCounts,
    ending: BTreeMap<Millis, WaitingCounts>,
    total: u32,
}

impl Cohorts {
    /// Adds one member of `rank` that counts until `until`.
    pub(super) fn add(&mut self, rank: Millis, until: Millis) {
        let ending = self.ending.entry(until.ceil_to(GRAIN)).or_default();
        *ending.entry(rank).or_insert(0) += 1;
        *self.counts.entry(rank).or_insert(0) += 1;
        self.total += 1;
    }

    /// Removes a member that was added with the same figures, unless its time has run out.
    pub(super) fn remove(&mut self, rank: Millis, until: Millis, now: Millis) {
        let until = until.ceil_to(GRAIN);
        if until <= now {
            return;
        }
        if let Some(ending) = self.ending.get_mut(&until) {
            subtract(ending, rank, 1);
            if ending.is_empty() {
                self.ending.remove(&until);
            }
            subtract(&mut self.counts, rank, 1);
            self.total -= 1;
        }
    }

    /// Drops the members whose time has run out.
    pub(super) fn expire(&mut self, now: Millis) {
        while let Some(first) = self.ending.first_entry() {
            if *first.key() > now {
                break;
            }
            for (rank, count) in first.remove() {
                subtract(&mut self.counts, rank, count);
                self.total -= count;
            }
        }
    }

    /// Members by rank.
    pub(super) fn counts(&self) -> &WaitingCounts {
        &self.counts
    }

    /// All members.
    pub(super) fn total(&self) -> u32 {
        self.total
    }
}

fn subtract(counts: &mut WaitingCounts, rank: Millis, by: u32) {
    if let Some(count) = counts.get_mut(&rank) {
        *count = count.saturating_sub(by);
        if *count == 0 {
            counts.remove(&rank);
        }
    }
}
