//! Which children are in which data center, and what is asked of all of them with every answer.

use alloc::vec::Vec;

use super::Sums;
use crate::id::{DataCenterId, NodeId};
use crate::ledger::Child;
use crate::time::Millis;

/// The children in a data center.
#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    list: Vec<Member>,
    /// No interval in a row of this data center ends before this.
    next_end: Millis,
}

/// What is asked of all children of a data center with every answer.
#[derive(Clone, Copy, Debug)]
pub(in crate::ledger) struct Member {
    pub(in crate::ledger) node: NodeId,
    pub(in crate::ledger) closed_through: Millis,
    pub(in crate::ledger) nodes: u32,
}

impl Member {
    fn of(node: NodeId, child: &Child) -> Self {
        Self {
            node,
            closed_through: child.closed_through,
            nodes: child.nodes,
        }
    }
}

impl Sums {
    /// The children in a data center.
    pub(in crate::ledger) fn members(&self, data_center: DataCenterId) -> &[Member] {
        let group = self.groups.get(&data_center);
        group.map_or(&[], |group| group.list.as_slice())
    }

    /// Whether there are children in this data center.
    pub(in crate::ledger) fn has_members(&self, data_center: DataCenterId) -> bool {
        self.groups.contains_key(&data_center)
    }

    /// The data centers that have children.
    pub(super) fn with_members(&self) -> Vec<DataCenterId> {
        self.groups.keys().copied().collect()
    }

    /// Panics if another one says something else of the same children.
    pub(in crate::ledger) fn assert_same_members(&self, rebuilt: &Self) {
        let sorted = |sums: &Self| {
            let groups = sums.groups.iter();
            let members = groups.flat_map(|(&id, group)| {
                let list = group.list.iter();
                list.map(move |member| (id, member.node, member.closed_through, member.nodes))
            });
            let mut members: Vec<_> = members.collect();
            members.sort_unstable();
            members
        };
        assert_eq!(sorted(self), sorted(rebuilt), "members of data centers");
        for (id, group) in &self.groups {
            assert!(
                group.next_end <= rebuilt.next_end_in(*id),
                "no interval ends earlier than is known"
            );
        }
    }

    /// How many data centers have children.
    pub(in crate::ledger) fn data_centers(&self) -> usize {
        self.groups.len()
    }

    /// Whether an interval in a row of this data center may end by then.
    pub(in crate::ledger) fn may_end_by(&self, data_center: DataCenterId, closed: Millis) -> bool {
        let group = self.groups.get(&data_center);
        group.is_none_or(|group| group.next_end <= closed)
    }

    /// No interval in a row of this data center ends before this.
    pub(in crate::ledger) fn next_end_in(&self, data_center: DataCenterId) -> Millis {
        let group = self.groups.get(&data_center);
        group.map_or(Millis::NEVER, |group| group.next_end)
    }

    /// The rows of this data center have been looked through: no interval ends before `next`.
    pub(in crate::ledger) fn note_next_end(&mut self, data_center: DataCenterId, next: Millis) {
        if let Some(group) = self.groups.get_mut(&data_center) {
            group.next_end = next;
        }
    }

    /// A row of this data center has a new interval.
    pub(super) fn note_end(&mut self, data_center: DataCenterId, end: Millis) {
        if let Some(group) = self.groups.get_mut(&data_center) {
            group.next_end = group.next_end.min(end);
        }
    }

    pub(super) fn join(&mut self, node: NodeId, child: &Child) {
        // What rows there are of those who were here before is not known.
        let group = self.groups.entry(child.data_center).or_default();
        group.next_end = group.next_end.min(child.row.first_end());
        group.list.push(Member::of(node, child));
        self.are_terms_old = true;
    }

    pub(super) fn note_report(&mut self, node: NodeId, child: &Child) {
        let Some(group) = self.groups.get_mut(&child.data_center) else {
            return;
        };
        group.next_end = group.next_end.min(child.row.first_end());
        if let Some(member) = group.list.iter_mut().find(|member| member.node == node) {
            *member = Member::of(node, child);
        }
    }

    pub(super) fn part(&mut self, node: NodeId, data_center: DataCenterId) {
        if let Some(group) = self.groups.get_mut(&data_center) {
            group.list.retain(|member| member.node != node);
            if group.list.is_empty() {
                self.groups.remove(&data_center);
            }
        }
        self.are_terms_old = true;
    }
}
