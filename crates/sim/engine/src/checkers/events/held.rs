//! Checker of invariant 9: nobody enters between the prequeue of an event and its start.

use anteroom_room::event::EventPhase;
use anteroom_room::time::Timestamp;

use super::{EDGE, ScheduledNode, timetable};
use crate::checkers::Checkers;
use crate::outcome::Invariant;

impl Checkers {
    /// Checks an admission at a node, by its wall clock. Once the event has started at some node
    /// whose clocks agree, others may know it.
    pub(crate) fn check_not_held(&mut self, node: &ScheduledNode<'_>, now: Timestamp) {
        if node.stepped_at + EDGE > now {
            return;
        }
        let is_held = |at: Timestamp| {
            timetable::planned(node.file).any(|event| {
                let edges = [at - EDGE, at + EDGE].map(|at| timetable::phase(event, at));
                let reached = self.events.reached(event);
                edges == [EventPhase::Prequeue; 2] && reached <= EventPhase::Prequeue
            })
        };
        if is_held(node.wall) {
            let wall = node.wall;
            self.report(Invariant::Held, now, || {
                format!(
                    "admitted before the start of an event, at {} by its clock",
                    wall.0
                )
            });
        }
    }
}
