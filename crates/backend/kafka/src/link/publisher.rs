//! Sends this node's counts.

use std::sync::Arc;
use std::time::Duration;

use anteroom_limit::time::TimestampUs;
use parking_lot::MutexGuard;
use rdkafka::producer::Producer as _;

use super::outgoing::CALLS;
use super::rounds::Round;
use super::{FLUSH_TIMEOUT, Link, REPORT_PERIOD};
use crate::contact;

/// Portions of periodic work in one turn: they forget a full table within two seconds, and make no
/// turn much longer.
const PORTIONS_MAX: usize = 50;

/// Runs until the link is stopped, and then sends the last counts.
pub(super) fn run(link: &Link) {
    let topic = link.settings.calls_topic();
    let mut is_last = false;
    let mut logged = 0;
    while !is_last {
        link.wait(REPORT_PERIOD);
        is_last = link.is_stopped();
        let at = link.at();
        tick(link, link.now(), at);
        link.send_all(&topic, &CALLS, &Arc::new(Round::default()));
        logged = log_unavailable(link.node().partitions_away(at), logged);
    }
    if let Err(error) = link.producer.flush(FLUSH_TIMEOUT) {
        contact::note(&error, "the last counts were not sent");
    }
}

/// Does periodic work in portions, between which requests get the lock.
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

/// Logs changes of the number of unavailable partitions. Failures of requests are logged by their
/// callers.
fn log_unavailable((away, partitions): (usize, usize), logged: usize) -> usize {
    if away > logged {
        tracing::warn!(
            away,
            partitions,
            "reports to some partitions do not come back"
        );
    } else if away < logged && away == 0 {
        tracing::info!(partitions, "reports come back from all partitions");
    }
    away
}
