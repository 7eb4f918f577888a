//! Hands what nodes do by their schedules to the checkers.

use anteroom_room::order;
use anteroom_room::rules::QueueingMethod;
use anteroom_room::ticket::Ticket;
use anteroom_room::time::Timestamp;

use crate::checkers::{Checkers, Ranked, ScheduledNode};
use crate::outcome::EventMark;
use crate::run::Simulation;

impl Simulation {
    /// Hands a node's settings to the checkers after it has looked at its schedule.
    pub(in crate::run) fn note_schedule(&mut self, index: u32) {
        self.with_scheduled(index, |checkers, node, now| {
            checkers.check_phases(node, now)
        });
        self.update_ceiling();
        self.mark_phases(index);
    }

    /// Notes the phases that a node shows and none has shown before.
    fn mark_phases(&mut self, index: u32) {
        let node = &self.deployment.nodes[index as usize];
        let schedule = node.schedule.iter();
        let begun = schedule.flat_map(|schedule| &schedule.effective().begun);
        for event in begun {
            let marks = &mut self.event_marks;
            let is_known = |mark: &EventMark| mark.event == event.name && mark.phase >= event.phase;
            if !marks.iter().any(is_known) {
                marks.push(EventMark {
                    event: event.name.clone(),
                    phase: event.phase,
                    at_ms: self.now.since(self.scenario.starts_at).0,
                });
            }
        }
    }

    /// Checks an admission, or a visitor who passed outside the limits, at a node.
    pub(super) fn check_event_admission(&mut self, index: u32, is_outside_limits: bool) {
        self.with_scheduled(index, |checkers, node, now| {
            checkers.check_not_held(node, now);
            if is_outside_limits {
                checkers.check_run_off(node, now);
            }
        });
    }

    /// Checks the rank of a waiting visitor at a node.
    pub(super) fn check_event_rank(&mut self, index: u32, ticket: &Ticket) {
        let rules = self.deployment.nodes[index as usize].rules;
        if rules.queueing_method != QueueingMethod::Fifo {
            return;
        }
        let key = &self.deployment.lottery_key;
        let ranked = Ranked {
            visitor: ticket.visitor,
            arrived_in: ticket.bucket,
            rank: order::rank(ticket.bucket, ticket.visitor, &rules, key),
        };
        self.with_scheduled(index, |checkers, node, now| {
            checkers.check_draw(node, ranked, now);
        });
    }

    /// Computes the limits in force by the schedule, before a decision is checked.
    pub(in crate::run) fn update_ceiling(&mut self) {
        if self.checkers.is_ceiling_settled() {
            return;
        }
        let now = self.now;
        let nodes = &mut self.deployment.nodes;
        let live = (0..)
            .zip(nodes.iter_mut())
            .filter(|(_, node)| node.is_alive());
        let live: Vec<(u32, bool)> = live
            .map(|(index, node)| {
                let node_now = node.clock.read(now);
                (index, node.room.has_live_lease(node_now))
            })
            .collect();
        let is_sliding = self.deployment.all_windows_slide();
        self.checkers.update_ceiling(&live, is_sliding, now);
    }

    fn with_scheduled(
        &mut self,
        index: u32,
        check: impl FnOnce(&mut Checkers, &ScheduledNode<'_>, Timestamp),
    ) {
        let now = self.now;
        let clocks = self.deployment.nodes[index as usize].clocks(now);
        let node = &self.deployment.nodes[index as usize];
        let Some(schedule) = node.schedule.as_deref() else {
            return;
        };
        let stored = self.deployment.stores.root_overrides();
        let scheduled = ScheduledNode {
            node: index,
            incarnation: node.incarnation,
            file: &schedule.file,
            applied: node.rules.limits,
            wall: clocks.wall,
            is_steady: clocks.are_steady(),
            stepped_at: node.wall_stepped_at,
            begun: &schedule.effective().begun,
            known: &schedule.stored,
            known_since: schedule.known_since(),
            stored: stored.map(|(at, record)| (*at, &**record)),
        };
        check(&mut self.checkers, &scheduled, now);
    }
}
