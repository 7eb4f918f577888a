//! Checker of invariant 12: after an event with a queue, a room that lets everybody pass does so
//! when nobody waits any more.
//!
//! A process or a store that loses its counts is no excuse: until all who wait have sent their next
//! requests, nobody knows that the queue is empty.

use anteroom_room::event::EventPhase;
use anteroom_room::rules::QueueingMethod;
use anteroom_room::time::{DurationMs, Timestamp};

use super::{EDGE, ScheduledNode, timetable};
use crate::checkers::Checkers;
use crate::outcome::Invariant;

/// Time after which every node knows of a visitor that waits.
const KNOWN_WITHIN: DurationMs = DurationMs::from_secs(10);

impl Checkers {
    /// Checks a visitor who passed outside the limits at a node.
    pub(crate) fn check_run_off(&mut self, node: &ScheduledNode<'_>, now: Timestamp) {
        let lets_pass = node.file.rules.queueing_method == QueueingMethod::Passthrough;
        let ended = timetable::planned(node.file).filter(|event| {
            let phases = [
                self.events.phases(node, event).0,
                timetable::phase(event, node.wall - EDGE),
            ];
            phases == [EventPhase::Over; 2]
        });
        let last = ended.max_by_key(|event| event.times.starts_at);
        let had_queue = last.is_some_and(|event| {
            let method = event.values.queueing_method.unwrap_or_default();
            matches!(method, QueueingMethod::Fifo | QueueingMethod::Random)
        });
        let is_known = self.are_all_heard(now) && node.stepped_at + KNOWN_WITHIN <= now;
        if !(lets_pass && had_queue && is_known) {
            return;
        }
        let waiting = self.waiting_since(now - KNOWN_WITHIN - self.slack(), now);
        if waiting > 0 {
            self.report(Invariant::RunOff, now, || {
                format!("a visitor passed after an event although {waiting} still wait")
            });
        }
    }
}
