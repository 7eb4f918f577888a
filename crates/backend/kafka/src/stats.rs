//! Counts of a client's requests in a sub-window, by node.
//!
//! Each node has one count: how much it admitted and how much it refunded, since it started. Counts
//! are absolute, and neither part ever decreases. So of two counts of one node the larger parts are
//! the newer ones. A message that comes twice, late, or in another order changes nothing, and the
//! next one makes up for a lost one.

use anteroom_limit::time::TimestampUs;

/// Most nodes with a count in one slot. Each process that ever counted there has one, so restarts
/// within a long window add up. A message with that many is 64 kB.
pub(crate) const STATS_MAX: usize = 4_096;

/// Number of a process, drawn at random at its start.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct NodeId(pub(crate) u64);

/// Digest of a limit, a client and the width of its sub-windows.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Name(pub(crate) u128);

/// Key of a slot: one sub-window of one client.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct SlotId {
    pub(crate) name: Name,
    /// Whole sub-windows since the Unix epoch.
    pub(crate) index: u64,
}

/// Count of one node.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct NodeCount {
    pub(crate) taken: u32,
    pub(crate) refunded: u32,
}

/// Report of a slot: one node's count, or all that an aggregator knows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct SlotReport {
    pub(crate) id: SlotId,
    /// End of validity, for any algorithm.
    pub(crate) until: TimestampUs,
    pub(crate) stats: Vec<(NodeId, NodeCount)>,
}

impl NodeCount {
    /// Returns the newer of each part.
    pub(crate) fn join(self, other: Self) -> Self {
        Self {
            taken: self.taken.max(other.taken),
            refunded: self.refunded.max(other.refunded),
        }
    }

    /// Returns whether no part of `other` is newer.
    pub(crate) fn contains(self, other: Self) -> bool {
        self.join(other) == self
    }

    /// Returns the count after refunds; negative for a node that refunded what others had admitted.
    pub(crate) fn net(self) -> i64 {
        i64::from(self.taken) - i64::from(self.refunded)
    }
}

/// Returns the sum of counts, never below zero: two nodes that refund the same requests at once
/// must not make room for more than the limit.
pub(crate) fn total(stats: impl Iterator<Item = NodeCount>) -> u32 {
    let sum: i64 = stats.map(NodeCount::net).sum();
    u32::try_from(sum.max(0)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(taken: u32, refunded: u32) -> NodeCount {
        NodeCount { taken, refunded }
    }

    #[test]
    fn the_order_of_joins_does_not_matter() {
        let stats = [count(3, 0), count(5, 1), count(4, 2)];
        let joined = stats
            .into_iter()
            .fold(NodeCount::default(), NodeCount::join);
        let backwards = stats.into_iter().rev();
        assert_eq!(joined, count(5, 2));
        assert_eq!(
            backwards.fold(NodeCount::default(), NodeCount::join),
            joined
        );
        assert!(joined.contains(count(4, 2)) && !count(5, 1).contains(joined));
    }

    #[test]
    fn totals_are_never_negative_and_saturate() {
        for (stats, expected) in [
            (vec![], 0),
            (vec![count(5, 2), count(4, 0)], 7),
            (vec![count(5, 0), count(0, 3)], 2),
            (vec![count(5, 0), count(0, 3), count(0, 3)], 0),
            (vec![count(u32::MAX, 0), count(7, 0)], u32::MAX),
        ] {
            assert_eq!(total(stats.iter().copied()), expected, "{stats:?}");
        }
    }
}
