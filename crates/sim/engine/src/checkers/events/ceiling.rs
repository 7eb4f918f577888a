//! Limits in force by the plan, for the checkers of invariants 1 and 2. Lower ones hold when the
//! last node has them, and higher ones when all nodes that hold leases have them.

use std::collections::BTreeMap;

use anteroom_room::event::EventPhase;
use anteroom_room::rules::{Limits, QueueingMethod};
use anteroom_room::time::Timestamp;

use super::{ScheduledNode, timetable};
use crate::checkers::Checkers;

/// Limits in force, and those of each node.
#[derive(Debug, Default)]
pub(super) struct Ceiling {
    in_force: Option<Limits>,
    /// Whether the window of admissions slides at all nodes.
    is_sliding: bool,
    /// Whether all nodes have had the limits in force since the newest computation. It then changes
    /// nothing, and a large deployment computes seldom.
    is_settled: bool,
    /// Lowest and highest limits that the plan allows a node, as of its newest evaluation.
    of_nodes: BTreeMap<u32, (Limits, Limits)>,
}

/// Takes a limit of each pair.
fn both(one: Limits, other: Limits, take: fn(u32, u32) -> u32) -> Limits {
    Limits {
        total_active_users: take(one.total_active_users, other.total_active_users),
        new_users_per_minute: take(one.new_users_per_minute, other.new_users_per_minute),
    }
}

impl Ceiling {
    #[cfg(test)]
    pub(super) fn set(&mut self, node: u32, limits: Limits) {
        self.of_nodes.insert(node, (limits, limits));
    }

    /// Returns the limits in force after those of nodes changed. `live` are the nodes that run, and
    /// whether each holds a lease.
    pub(super) fn update(&mut self, live: &[(u32, bool)], is_calm: bool) -> Option<Limits> {
        let known = |node: &u32| self.of_nodes.get(node).copied();
        let of_live = live.iter().filter_map(|(node, _)| known(node));
        let highest = of_live
            .map(|(_, most)| most)
            .reduce(|a, b| both(a, b, u32::max))?;
        let leased = live.iter().filter(|(_, has_lease)| *has_lease);
        let of_leased = leased.filter_map(|(node, _)| known(node));
        let lowest = of_leased
            .map(|(least, _)| least)
            .reduce(|a, b| both(a, b, u32::min));
        // A parent does not count a child whose lease has ended, which the child may not know.
        let lowest = lowest.filter(|_| is_calm).unwrap_or(highest);
        let before = self.in_force.unwrap_or(highest);
        let lowered = both(before, highest, u32::min);
        let in_force = both(lowered, lowest, u32::max);
        self.in_force = Some(in_force);
        let mut all = self.of_nodes.values();
        self.is_settled = all.all(|range| *range == (in_force, in_force));
        self.in_force
    }
}

impl Checkers {
    /// Notes the limits that the plan allows a node after it has evaluated its schedule.
    pub(super) fn note_limits_of_plan(&mut self, node: &ScheduledNode<'_>) {
        let events = &self.events;
        let least = timetable::limits(node.file, |event| events.phases(node, event).0, node.wall);
        let most = timetable::limits(node.file, |event| events.phases(node, event).1, node.wall);
        let mut range = (both(least, most, u32::min), both(least, most, u32::max));
        let is_over = |event| events.phases(node, event).1 == EventPhase::Over;
        // A clock that steps back over the start of an event ends it as well.
        let may_end_early = node.file.rules.queueing_method == QueueingMethod::Passthrough
            && node.stepped_at > Timestamp::ZERO;
        let may_end = may_end_early || timetable::planned(node.file).any(is_over);
        if self.may_miss_steps && may_end {
            // A clock that jumped, or a pause, may have passed over the last steps. Then the limits
            // that were applied last hold for those who wait.
            range.0 = both(range.0, node.applied, u32::min);
            range.1 = both(range.1, node.applied, u32::max);
        }
        let ceiling = &mut self.events.ceiling;
        let before = ceiling.of_nodes.insert(node.node, range);
        ceiling.is_settled &= before == Some(range);
    }

    /// Notes that rules have changed at a node, such as its window of admissions.
    pub(crate) fn unsettle_ceiling(&mut self) {
        self.events.ceiling.is_settled = false;
    }

    /// Whether all nodes have the limits in force by the plan.
    pub(crate) fn is_ceiling_settled(&self) -> bool {
        self.events.ceiling.is_settled
    }

    /// Computes the limits in force.
    pub(crate) fn update_ceiling(
        &mut self,
        live: &[(u32, bool)],
        is_sliding: bool,
        now: Timestamp,
    ) {
        let is_calm = self.is_undisturbed(now);
        let ceiling = &mut self.events.ceiling;
        let before = (ceiling.in_force, ceiling.is_sliding);
        ceiling.is_sliding = is_sliding;
        let in_force = ceiling.update(live, is_calm);
        if let Some(limits) = in_force.filter(|_| (in_force, is_sliding) != before) {
            self.handle_limits(limits, is_sliding, now);
        }
    }
}
