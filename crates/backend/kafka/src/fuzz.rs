//! Properties that hold for any bytes; called by fuzzers and by the tests.

use std::time::Duration;

use anteroom_limit::time::TimestampUs;

use crate::message;
use crate::node::Node;
use crate::stats::NodeId;

/// Checks a message of a topic: it never causes a panic, it is encoded as it was read, and a
/// received total can be published.
///
/// # Panics
///
/// If a property does not hold.
pub fn messages(bytes: &[u8]) {
    if let Some(report) = message::decode(bytes) {
        assert_eq!(message::encode(&report), bytes, "read and written");
    }
    let mut node = Node::new(NodeId(1), 10);
    // A realistic time, so that some messages are valid.
    let now = TimestampUs(1_767_225_600_000_000);
    for _ in 0..2 {
        node.receive_report(bytes, now);
        node.receive_total(bytes, now);
        for total in node.totals_to_publish(usize::MAX) {
            let written = message::encode(&total);
            assert_eq!(message::decode(&written), Some(total), "published");
        }
        node.tick(now, Duration::ZERO);
    }
}
