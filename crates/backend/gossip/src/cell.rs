//! Counter that merges the reports of several nodes.
//!
//! Each writer (a process; a restarted node is another writer) reports two totals of its own that
//! only grow: what it has added and what it has refunded. A receiver keeps the larger value of
//! each. So order, duplicates and losses do not matter, as long as a later report arrives.

use anteroom_limit::time::TimestampUs;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// Most writers that a counter holds shares of. A restarted node is one more if it admitted a
/// request within the same window. Reports of writers beyond are dropped. This is far above any
/// real deployment, and bounds what a broken peer can add.
pub(crate) const SHARES_MAX: usize = 256;

/// Process that counts, identified by a number drawn at its start. Never zero.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct WriterId(pub u64);

/// Key of a counter: the client, the length of its sub-window and the index of that.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct CounterId {
    /// Digest of a client of a limit, see [`crate::names`].
    pub(crate) name: u128,
    /// Length of the sub-window, in microseconds.
    pub(crate) width: u64,
    /// Whole sub-windows since the Unix epoch.
    pub(crate) index: u64,
}

/// One writer's share of a counter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Share {
    pub(crate) writer: WriterId,
    /// Total that the writer has added.
    pub(crate) added: u64,
    /// Total that the writer has refunded of its own; never more than `added`.
    pub(crate) refunded: u64,
}

/// Counter with the shares of all writers.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    /// Time from which the counter affects no decision and is forgotten.
    pub(crate) forget_at: TimestampUs,
    /// Round in which this node last reported a change of its own share.
    pub(crate) reported_in: u64,
    /// Requests by which its own share has changed since then.
    pub(crate) unreported: u32,
    /// Number of times the last report is still to be sent.
    pub(crate) sends_left: u8,
    /// Set if the counter began while the client's overflow entry counted something: earlier
    /// requests of the client may be counted there.
    pub(crate) may_be_in_overflow: bool,
    shares: SmallVec<[Share; 1]>,
}

/// Result of merging a share.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Merged {
    /// The share was larger than known.
    Changed,
    /// The share was known.
    Known,
    /// The counter has no room for another writer.
    Full,
}

impl Share {
    fn left(&self) -> u64 {
        self.added.saturating_sub(self.refunded)
    }
}

impl Cell {
    pub(crate) fn new(forget_at: TimestampUs) -> Self {
        Self {
            forget_at,
            reported_in: 0,
            unreported: 0,
            sends_left: 0,
            may_be_in_overflow: false,
            shares: SmallVec::new(),
        }
    }

    /// Returns the sum of all writers' shares.
    pub(crate) fn sum(&self) -> u32 {
        let all = self.shares.iter().map(Share::left);
        let sum = all.fold(0_u64, u64::saturating_add);
        u32::try_from(sum).unwrap_or(u32::MAX)
    }

    pub(crate) fn shares(&self) -> &[Share] {
        &self.shares
    }

    /// Adds to a writer's own share.
    pub(crate) fn add(&mut self, me: WriterId, by: u32) {
        let share = self.of(me);
        share.added = share.added.saturating_add(u64::from(by));
    }

    /// Undoes an addition that was not reported yet.
    pub(crate) fn undo_add(&mut self, me: WriterId, by: u32) {
        let share = self.of(me);
        share.added = share.added.saturating_sub(u64::from(by));
    }

    /// Refunds up to `up_to` of a writer's own share and returns how much was refunded.
    pub(crate) fn refund(&mut self, me: WriterId, up_to: u32) -> u32 {
        let Some(share) = self.shares.iter_mut().find(|share| share.writer == me) else {
            return 0;
        };
        let given = u64::from(up_to).min(share.left());
        share.refunded = share.refunded.saturating_add(given);
        // `given` is at most `up_to`.
        u32::try_from(given).unwrap_or(up_to)
    }

    /// Returns whether no writer has counted here.
    pub(crate) fn is_empty(&self) -> bool {
        self.shares.iter().all(|share| share.added == 0)
    }

    /// Merges a share that a writer reported.
    pub(crate) fn merge(&mut self, reported: Share) -> Merged {
        let known = self.shares.iter_mut();
        let Some(share) = known
            .into_iter()
            .find(|share| share.writer == reported.writer)
        else {
            if self.shares.len() >= SHARES_MAX {
                return Merged::Full;
            }
            self.shares.push(reported);
            return Merged::Changed;
        };
        let before = *share;
        share.added = share.added.max(reported.added);
        share.refunded = share.refunded.max(reported.refunded);
        if *share == before {
            Merged::Known
        } else {
            Merged::Changed
        }
    }

    fn of(&mut self, writer: WriterId) -> &mut Share {
        let found = self.shares.iter().position(|share| share.writer == writer);
        let at = found.unwrap_or_else(|| {
            self.shares.push(Share {
                writer,
                added: 0,
                refunded: 0,
            });
            self.shares.len() - 1
        });
        &mut self.shares[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(writer: u64, added: u64, refunded: u64) -> Share {
        Share {
            writer: WriterId(writer),
            added,
            refunded,
        }
    }

    #[test]
    fn the_sum_covers_all_writers_and_ignores_outdated_shares() {
        let mut cell = Cell::new(TimestampUs(1));
        assert_eq!(cell.merge(share(1, 7, 2)), Merged::Changed);
        assert_eq!(cell.merge(share(2, 4, 0)), Merged::Changed);
        assert_eq!(cell.sum(), 9);
        assert_eq!(cell.merge(share(1, 5, 2)), Merged::Known);
        assert_eq!(cell.merge(share(1, 8, 1)), Merged::Changed);
        assert_eq!(cell.sum(), 10);
    }

    #[test]
    fn a_node_refunds_only_its_own_share_and_no_share_is_negative() {
        let (me, other) = (WriterId(1), WriterId(2));
        let mut cell = Cell::new(TimestampUs(1));
        cell.add(me, 3);
        assert_eq!(cell.refund(other, 2), 0);
        assert_eq!(cell.refund(me, 5), 3);
        assert_eq!(cell.sum(), 0);
        // Reports that no correct node would send.
        cell.merge(share(3, 1, 100));
        cell.merge(share(2, 4, 0));
        assert_eq!(cell.sum(), 4);
    }

    #[test]
    fn a_sum_saturates_and_excess_writers_are_dropped() {
        let mut cell = Cell::new(TimestampUs(1));
        for writer in 1..=2 * SHARES_MAX as u64 {
            let merged = cell.merge(share(writer, u64::MAX, 0));
            let fits = writer <= SHARES_MAX as u64;
            assert_eq!(merged == Merged::Changed, fits, "{writer}");
        }
        assert_eq!(cell.sum(), u32::MAX);
        cell.add(WriterId(1), 1);
        assert_eq!(cell.sum(), u32::MAX);
    }
}
