//! Counts by rank that run out by themselves: each member counts until a time of its own.
//!
//! Knows no visitors; whoever adds a member removes it with the same two figures.

use alloc::collections::VecDeque;

use crate::time::{Millis, Span};
use crate::watermark::WaitingCounts;

/// Ends of membership are rounded up to this, which bounds the number of counters.
const GRAIN: Span = Span(500);

/// Counts by rank, with ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Cohorts {
    counts: WaitingCounts,
    /// Members by end, rising. Mostly one for each grain, so that a place follows from the end.
    ending: VecDeque<(Millis, WaitingCounts)>,
    total: u32,
}

impl Cohorts {
    /// Adds one member of `rank` that counts until `until`.
    pub(super) fn add(&mut self, rank: Millis, until: Millis) {
        self.ending_at(until.ceil_to(GRAIN)).add(rank, 1);
        self.counts.add(rank, 1);
        self.total += 1;
    }

    /// Removes a member that was added with the same figures, unless its time has run out.
    pub(super) fn remove(&mut self, rank: Millis, until: Millis, now: Millis) {
        if self.take_ending(rank, until.ceil_to(GRAIN), now) {
            self.counts.take(rank, 1);
            self.total -= 1;
        }
    }

    /// Has a member that was added with the first two figures count until `to`: the same as taking
    /// it out and adding it again, for half the work.
    pub(super) fn prolong(&mut self, rank: Millis, until: Millis, to: Millis, now: Millis) {
        let (until, to) = (until.ceil_to(GRAIN), to.ceil_to(GRAIN));
        if until == to && until > now {
            return;
        }
        if self.take_ending(rank, until, now) {
            self.ending_at(to).add(rank, 1);
        } else {
            self.add(rank, to);
        }
    }

    /// Drops the members whose time has run out.
    pub(super) fn expire(&mut self, now: Millis) {
        while let Some((end, _)) = self.ending.front() {
            if *end > now {
                break;
            }
            if let Some((_, members)) = self.ending.pop_front() {
                self.counts.subtract(&members);
                self.total -= members.total();
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

    /// Takes a member out of those that end together. Returns whether it was there.
    fn take_ending(&mut self, rank: Millis, end: Millis, now: Millis) -> bool {
        if end <= now {
            return false;
        }
        match self.position(end) {
            Ok(at) => self.ending[at].1.take(rank, 1) > 0,
            Err(_) => false,
        }
    }

    /// Those who end together, on an edge of the grid.
    fn ending_at(&mut self, end: Millis) -> &mut WaitingCounts {
        let at = match self.position(end) {
            Ok(at) => at,
            Err(at) => {
                self.ending.insert(at, (end, WaitingCounts::new()));
                at
            }
        };
        &mut self.ending[at].1
    }

    fn position(&self, end: Millis) -> Result<usize, usize> {
        let first = self.ending.front().map_or(end, |(first, _)| *first);
        let guess = usize::try_from(end.since(first).0 / GRAIN.0).unwrap_or(usize::MAX);
        match self.ending.get(guess) {
            Some((there, _)) if *there == end => Ok(guess),
            _ => self.ending.binary_search_by_key(&end, |(there, _)| *there),
        }
    }
}
