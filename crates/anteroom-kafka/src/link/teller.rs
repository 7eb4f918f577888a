//! Tells what this node counted.

use std::time::Duration;

use rdkafka::producer::Producer as _;

use super::{Link, TELL_EVERY};
use crate::contact;
use crate::node::Node;

/// How long the last messages may take when the node ends.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Until the link is stopped, and then the last of it.
pub(super) fn run(link: &Link) {
    let topic = link.settings.calls_topic();
    let mut is_last = false;
    let mut said = 0;
    while !is_last {
        link.wait(TELL_EVERY);
        is_last = link.is_stopped();
        let (now, at) = (link.now(), link.at());
        link.node().tick(now, at);
        let next = |node: &mut Node, count| node.calls_to_tell(count, at);
        link.send_all(&topic, next, Node::not_told);
        said = say_what_is_away(link.node().lanes_away(at), said);
    }
    if let Err(error) = link.producer.flush(LAST_WORDS) {
        contact::note(&error, "the last calls were not told");
    }
}

/// Where some are away calls of clients fail, which is said where they do; and here of how many partitions.
fn say_what_is_away((away, partitions): (usize, usize), said: usize) -> usize {
    if away > said {
        tracing::warn!(
            away,
            partitions,
            "what is told to partitions does not come back"
        );
    } else if away < said && away == 0 {
        tracing::info!(partitions, "what is told comes back from all partitions");
    }
    away
}
