//! Tells what this node counted.

use std::sync::Arc;
use std::time::Duration;

use anteroom_limit::time::TimestampUs;
use parking_lot::MutexGuard;
use rdkafka::producer::Producer as _;

use super::outgoing::CALLS;
use super::rounds::Round;
use super::{LAST_WORDS, Link, TELL_EVERY};
use crate::contact;

/// Portions of what is to be done again and again that are done in one turn: all that a full board
/// has to forget within two seconds, and no turn is much longer for it.
const PORTIONS_MAX: usize = 50;

/// Until the link is stopped, and then the last of it.
pub(super) fn run(link: &Link) {
    let topic = link.settings.calls_topic();
    let mut is_last = false;
    let mut said = 0;
    while !is_last {
        link.wait(TELL_EVERY);
        is_last = link.is_stopped();
        let at = link.at();
        tick(link, link.now(), at);
        link.send_all(&topic, &CALLS, &Arc::new(Round::default()));
        said = say_what_is_away(link.node().partitions_away(at), said);
    }
    if let Err(error) = link.producer.flush(LAST_WORDS) {
        contact::note(&error, "the last calls were not told");
    }
}

/// In portions, between which calls have their turn.
fn tick(link: &Link, now: TimestampUs, at: Duration) {
    for _ in 0..PORTIONS_MAX {
        let mut node = link.node();
        let is_more = node.tick(now, at);
        MutexGuard::unlock_fair(node);
        if !is_more {
            return;
        }
    }
}

/// Where some are away calls of clients fail, which is said where they do; and here of how many
/// partitions.
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
