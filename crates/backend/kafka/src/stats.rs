//! How often has a client called in a stretch of time, as far as is known, and by whom?
//!
//! Each node has one figure for it: how much it admitted and how much it gave back, since it began.
//! Figures are absolute, and neither part of one ever falls. So of two figures of one node the
//! larger parts are the newer ones, and a message that comes twice, late, or in another order
//! changes nothing; one that is lost is made good by the next.

use anteroom_limit::time::TimestampUs;

/// Figures of one stretch of time that are kept at most. Each process that ever counted there has
/// one, so many restarts in a long window add up; a message with so many is 64 kB.
pub(crate) const STATS_MAX: usize = 4_096;

/// A process, from its start to its end: drawn at random.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct NodeId(pub(crate) u64);

/// A client of a limit, in stretches of one width: a digest of the three.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Name(pub(crate) u128);

/// One stretch of time of one client.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct SlotId {
    pub(crate) name: Name,
    /// Whole widths since the Unix epoch.
    pub(crate) index: u64,
}

/// What one node counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct NodeCount {
    pub(crate) taken: u32,
    pub(crate) given_back: u32,
}

/// What is told of one stretch of time: one node's figure, or all that an aggregator knows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct SlotReport {
    pub(crate) id: SlotId,
    /// From then on it matters no more, whatever the algorithm.
    pub(crate) until: TimestampUs,
    pub(crate) stats: Vec<(NodeId, NodeCount)>,
}

impl NodeCount {
    /// The newer of each part.
    pub(crate) fn join(self, other: Self) -> Self {
        Self {
            taken: self.taken.max(other.taken),
            given_back: self.given_back.max(other.given_back),
        }
    }

    /// Whether nothing of `other` is newer.
    pub(crate) fn contains(self, other: Self) -> bool {
        self.join(other) == self
    }

    /// What stays counted; below zero for a node that gave back what others had admitted.
    pub(crate) fn net(self) -> i64 {
        i64::from(self.taken) - i64::from(self.given_back)
    }
}

/// What figures come to together. Two nodes that give back the same calls at once must not make
/// room for more than there ever was: never below zero.
pub(crate) fn total(stats: impl Iterator<Item = NodeCount>) -> u32 {
    let sum: i64 = stats.map(NodeCount::net).sum();
    u32::try_from(sum.max(0)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(taken: u32, given_back: u32) -> NodeCount {
        NodeCount { taken, given_back }
    }

    #[test]
    fn the_order_in_which_stats_come_does_not_matter() {
        let stats = [figure(3, 0), figure(5, 1), figure(4, 2)];
        let joined = stats
            .into_iter()
            .fold(NodeCount::default(), NodeCount::join);
        let backwards = stats.into_iter().rev();
        assert_eq!(joined, figure(5, 2));
        assert_eq!(
            backwards.fold(NodeCount::default(), NodeCount::join),
            joined
        );
        assert!(joined.contains(figure(4, 2)) && !figure(5, 1).contains(joined));
    }

    #[test]
    fn totals_are_never_below_zero_and_end_at_the_largest_number() {
        for (stats, expected) in [
            (vec![], 0),
            (vec![figure(5, 2), figure(4, 0)], 7),
            (vec![figure(5, 0), figure(0, 3)], 2),
            (vec![figure(5, 0), figure(0, 3), figure(0, 3)], 0),
            (vec![figure(u32::MAX, 0), figure(7, 0)], u32::MAX),
        ] {
            assert_eq!(total(stats.iter().copied()), expected, "{stats:?}");
        }
    }
}
