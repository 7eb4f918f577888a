//! Counts by rank that expire: each member counts until an end of its own.
//!
//! This module knows no visitors: the caller removes a member with the rank and end that it added.

use alloc::collections::VecDeque;

use crate::time::{DurationMs, Timestamp};
use crate::watermark::WaitingCounts;

/// Granularity of ends, rounded up; it bounds the number of counters.
const GRAIN: DurationMs = DurationMs(500);

/// Counts by rank, with ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Cohorts {
    counts: WaitingCounts,
    /// Members by end, rising. Mostly one entry for each grain, so that an index follows from the
    /// end.
    ending: VecDeque<Ending>,
    /// First end, or an earlier time: saves a look at the list.
    next_end: Timestamp,
    total: u32,
}

/// Members with the same end.
#[derive(Clone, Debug)]
struct Ending {
    end: Timestamp,
    /// Rank of `count` members. The others are in a list; in most rooms there are none.
    rank: Timestamp,
    count: u32,
    others: WaitingCounts,
}

impl Ending {
    fn add(&mut self, rank: Timestamp) {
        if self.count == 0 || self.rank == rank {
            self.rank = rank;
            self.count += 1;
        } else {
            self.others.add(rank, 1);
        }
    }

    /// Removes one member. Returns whether it was there.
    fn take(&mut self, rank: Timestamp) -> bool {
        if self.rank == rank && self.count > 0 {
            self.count -= 1;
            return true;
        }
        self.others.take(rank, 1) > 0
    }
}

impl Cohorts {
    /// Adds one member of `rank` that counts until `until`.
    pub(super) fn add(&mut self, rank: Timestamp, until: Timestamp) {
        self.ending_at(until.ceil_to(GRAIN)).add(rank);
        self.counts.add(rank, 1);
        self.total += 1;
    }

    /// Removes a member that was added with the same rank and end, unless it has expired.
    pub(super) fn remove(&mut self, rank: Timestamp, until: Timestamp, now: Timestamp) {
        if self.take_ending(rank, until.ceil_to(GRAIN), now) {
            self.counts.take(rank, 1);
            self.total -= 1;
        }
    }

    /// Makes a member that was added with `rank` and `until` count until `to`. It has the effect of
    /// removing and adding it, for half the work.
    pub(super) fn extend(
        &mut self,
        rank: Timestamp,
        until: Timestamp,
        to: Timestamp,
        now: Timestamp,
    ) {
        let (until, to) = (until.ceil_to(GRAIN), to.ceil_to(GRAIN));
        if until == to && until > now {
            return;
        }
        if self.take_ending(rank, until, now) {
            self.ending_at(to).add(rank);
        } else {
            self.add(rank, to);
        }
    }

    /// Drops the members that have expired.
    pub(super) fn expire(&mut self, now: Timestamp) {
        if now < self.next_end {
            return;
        }
        while let Some(over) = self.ending.pop_front_if(|ending| ending.end <= now) {
            self.counts.take(over.rank, over.count);
            self.counts.subtract(&over.others);
            self.total -= over.count + over.others.total();
        }
        self.next_end = self
            .ending
            .front()
            .map_or(Timestamp::NEVER, |next| next.end);
    }

    /// Returns the members by rank.
    pub(super) fn counts(&self) -> &WaitingCounts {
        &self.counts
    }

    /// Returns the number of members.
    pub(super) fn total(&self) -> u32 {
        self.total
    }

    /// Removes a member from those with the same end. Returns whether it was there.
    fn take_ending(&mut self, rank: Timestamp, end: Timestamp, now: Timestamp) -> bool {
        if end <= now {
            return false;
        }
        match self.position(end) {
            Ok(at) => self.ending[at].take(rank),
            Err(_) => false,
        }
    }

    /// Returns the members with this end, which is on an edge of the grid.
    fn ending_at(&mut self, end: Timestamp) -> &mut Ending {
        let at = match self.position(end) {
            Ok(at) => at,
            Err(at) => {
                let ending = Ending {
                    end,
                    rank: Timestamp::ZERO,
                    count: 0,
                    others: WaitingCounts::new(),
                };
                self.ending.insert(at, ending);
                self.next_end = self.next_end.min(end);
                at
            }
        };
        &mut self.ending[at]
    }

    fn position(&self, end: Timestamp) -> Result<usize, usize> {
        let after_first = end.since(self.next_end).0 / GRAIN.0;
        let guess = usize::try_from(after_first).unwrap_or(usize::MAX);
        match self.ending.get(guess) {
            Some(entry) if entry.end == end => Ok(guess),
            _ => self.ending.binary_search_by_key(&end, |entry| entry.end),
        }
    }
}
