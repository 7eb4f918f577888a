//! Tells what this node counted.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::producer::Producer as _;

use super::outgoing::CALLS;
use super::rounds::Round;
use super::{LAST_WORDS, Link, TELL_EVERY};
use crate::contact;

/// Until the link is stopped, and then the last of it.
pub(super) fn run(link: &Link) {
    let topic = link.settings.calls_topic();
    let mut is_last = false;
    let mut said = 0;
    while !is_last {
        link.wait(TELL_EVERY);
        is_last = link.is_stopped();
        let at = link.at();
        let now = link.now();
        link.node().tick(now, at);
        link.send_all(&topic, &CALLS, &Arc::new(Round::default()));
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
