//! What is sent to one of the two topics: where it comes from, and where to it goes back.

use std::time::Duration;

use crate::node::Node;
use crate::stats::{SlotId, SlotReport};

/// The messages of a topic, as the node has them.
pub(super) struct Outgoing {
    /// The next of them, at most so many.
    pub(super) next: fn(&mut Node, usize, Duration) -> Vec<SlotReport>,
    /// So many were handed to the library.
    pub(super) sent: fn(&mut Node, u64),
    /// One was not: the queue is full.
    pub(super) keep: fn(&mut Node, SlotId),
}

/// To the topic of calls.
pub(super) const CALLS: Outgoing = Outgoing {
    next: Node::calls_to_tell,
    sent: Node::told,
    keep: Node::not_told,
};

/// To the topic of totals.
pub(super) const TOTALS: Outgoing = Outgoing {
    next: |node, count_max, _| node.totals_to_publish(count_max),
    sent: Node::published,
    keep: Node::publish_again,
};
