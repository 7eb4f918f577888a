//! Source of the messages of a topic, and where they return if they are not sent.

use std::time::Duration;

use crate::node::Node;
use crate::stats::{SlotId, SlotReport};

/// Messages of a topic, as functions of the node.
pub(super) struct Outgoing {
    /// Takes the next messages, up to a number.
    pub(super) next: fn(&mut Node, usize, Duration) -> Vec<SlotReport>,
    /// Counts messages that the library accepted.
    pub(super) sent: fn(&mut Node, u64),
    /// Puts a message back that did not fit into the queue.
    pub(super) keep: fn(&mut Node, SlotId),
}

/// Messages to the topic of calls.
pub(super) const CALLS: Outgoing = Outgoing {
    next: Node::reports_to_send,
    sent: Node::sent,
    keep: Node::send_again,
};

/// Messages to the topic of totals.
pub(super) const TOTALS: Outgoing = Outgoing {
    next: |node, count_max, _| node.totals_to_publish(count_max),
    sent: Node::published,
    keep: Node::publish_again,
};
