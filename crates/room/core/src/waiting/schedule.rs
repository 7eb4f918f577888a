//! Counts by rank, now and at the times at which they change.
//!
//! This module knows no visitors.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::forecast::WaitingForecast;
use crate::time::{DurationMs, Timestamp};
use crate::watermark::{EXACT_RANKS, WaitingCounts};

/// Granularity of changes, rounded up; it bounds the number of counters. All nodes have the same
/// grid, so that one begins to count a visitor when another one ends.
pub const COUNT_GRAIN: DurationMs = DurationMs(500);

/// Counts by rank, and their changes in future.
#[derive(Clone, Debug, Default)]
pub(super) struct Schedule {
    counts: WaitingCounts,
    /// Changes by time, rising; at most one entry for each grain.
    changes: VecDeque<(Timestamp, WaitingCounts)>,
}

impl Schedule {
    /// Adds one visitor of `rank` from a time until another one, or subtracts it. The caller has
    /// called [`Self::advance`].
    pub(super) fn add(
        &mut self,
        rank: Timestamp,
        (from, until): (Timestamp, Timestamp),
        count: i64,
        now: Timestamp,
    ) {
        if until <= from.max(now) {
            return;
        }
        if from <= now {
            self.counts.add(rank, count);
        } else {
            self.changes_at(from.ceil_to(COUNT_GRAIN)).add(rank, count);
        }
        self.changes_at(until.ceil_to(COUNT_GRAIN))
            .add(rank, -count);
    }

    /// Makes the changes whose time has come.
    pub(super) fn advance(&mut self, now: Timestamp) {
        while let Some((_, changes)) = self.changes.pop_front_if(|(at, _)| *at <= now) {
            self.counts.absorb(&changes);
        }
    }

    /// Returns the counts of now.
    pub(super) fn counts(&self) -> &WaitingCounts {
        &self.counts
    }

    /// Whether nothing is counted, now or later.
    pub(super) fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.changes.iter().all(|(_, changes)| changes.is_empty())
    }

    /// Returns the counts of now and of later in few entries.
    pub(super) fn forecast(&self, now: Timestamp) -> WaitingForecast {
        let mut forecast = WaitingForecast::of_ranks(&self.ranks(), now);
        forecast.add_change(now.floor_to(COUNT_GRAIN), &self.counts);
        for (at, changes) in &self.changes {
            forecast.add_change(*at, changes);
        }
        forecast.accumulated()
    }

    /// Returns the ranks of now, and of changes those that a message has one by one, and the
    /// newest.
    fn ranks(&self) -> Vec<Timestamp> {
        let rank = |&(rank, _): &(Timestamp, i64)| rank;
        let mut ranks: Vec<Timestamp> = self.counts.iter().map(|entry| rank(&entry)).collect();
        for (_, changes) in &self.changes {
            let front = changes.iter().take(EXACT_RANKS);
            ranks.extend(
                front
                    .chain(changes.iter().next_back())
                    .map(|entry| rank(&entry)),
            );
        }
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }

    /// Returns the changes at this time, which is on the grid.
    fn changes_at(&mut self, at: Timestamp) -> &mut WaitingCounts {
        let index = match self.changes.binary_search_by_key(&at, |(known, _)| *known) {
            Ok(index) => index,
            Err(index) => {
                self.changes.insert(index, (at, WaitingCounts::new()));
                index
            }
        };
        &mut self.changes[index].1
    }
}
