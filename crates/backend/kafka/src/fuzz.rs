//! What must hold for any bytes whatever; called by fuzzers and by the tests.

use std::time::Duration;

use anteroom_limit::time::TimestampUs;

use crate::message;
use crate::node::Node;
use crate::stats::NodeId;

/// What may lie in a topic: none of it makes this program fail, what can be read is written down as
/// it was, and what was heard can be told on.
///
/// # Panics
///
/// If it does not hold.
pub fn messages(bytes: &[u8]) {
    if let Some(told) = message::decode(bytes) {
        assert_eq!(message::encode(&told), bytes, "read and written");
    }
    let mut node = Node::new(NodeId(1), 10);
    // In the middle of what times there are, so that some of it matters.
    let now = TimestampUs(1_767_225_600_000_000);
    for _ in 0..2 {
        node.hear_call(bytes, now);
        node.hear_total(bytes, now);
        for total in node.totals_to_publish(usize::MAX) {
            let written = message::encode(&total);
            assert_eq!(message::decode(&written), Some(total), "told on");
        }
        node.tick(now, Duration::ZERO);
    }
}
