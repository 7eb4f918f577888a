//! What follows from a ledger's records, kept up to date so that an answer does not cost a walk
//! over all children.

use alloc::collections::BTreeMap;

use super::{Child, Departed, Ledger};
use crate::id::NodeId;
use crate::seats::SeatRow;
use crate::time::{Millis, Minute};
use crate::watermark::WaitingCounts;

/// Sums over children, departed children and what is settled.
///
/// Compares equal to any other: it says nothing that the records do not say. Not written down;
/// [`Ledger::rebuild_sums`] restores it.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    pub(super) row: SeatRow,
    pub(super) waiting: WaitingCounts,
    pub(super) waiting_total: u32,
    pub(super) admitted: BTreeMap<Minute, u32>,
    pub(super) seats_held: u64,
    pub(super) credits_held: u64,
    pub(super) nodes: u32,
}

impl PartialEq for Sums {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Sums {}

impl Sums {
    fn add_child(&mut self, child: &Child) {
        self.row.absorb(&child.row);
        self.add_waiting(&child.waiting);
        self.add_admitted(&child.admitted);
        self.seats_held += u64::from(child.held.seats);
        self.credits_held += u64::from(child.held.credits);
        self.nodes = self.nodes.saturating_add(child.nodes);
    }

    fn remove_child(&mut self, child: &Child) {
        self.row.subtract(&child.row);
        self.remove_waiting(&child.waiting);
        self.remove_admitted(&child.admitted);
        self.seats_held -= u64::from(child.held.seats);
        self.credits_held -= u64::from(child.held.credits);
        self.nodes = self.nodes.saturating_sub(child.nodes);
    }

    pub(super) fn add_waiting(&mut self, counts: &WaitingCounts) {
        self.waiting.absorb(counts);
        self.waiting_total = self.waiting_total.saturating_add(counts.total());
    }

    pub(super) fn remove_waiting(&mut self, counts: &WaitingCounts) {
        self.waiting.subtract(counts);
        self.waiting_total = self.waiting_total.saturating_sub(counts.total());
    }

    fn add_admitted(&mut self, admitted: &[(Minute, u32)]) {
        for &(minute, count) in admitted {
            *self.admitted.entry(minute).or_insert(0) += count;
        }
    }

    fn remove_admitted(&mut self, admitted: &[(Minute, u32)]) {
        for &(minute, count) in admitted {
            if let Some(sum) = self.admitted.get_mut(&minute) {
                *sum = sum.saturating_sub(count);
                if *sum == 0 {
                    self.admitted.remove(&minute);
                }
            }
        }
    }
}

impl Ledger {
    /// Computes what follows from the records: for a ledger that was read from a store.
    pub fn rebuild_sums(&mut self) {
        let mut sums = Sums::default();
        for child in self.children.values() {
            sums.add_child(child);
        }
        for gone in &self.departed {
            sums.row.absorb(&gone.row);
            sums.add_admitted(&gone.admitted);
        }
        for group in self.groups.values() {
            sums.row.absorb(&group.settled);
        }
        sums.add_waiting(&self.left_waiting.counts);
        for (&minute, &count) in &self.settled_minutes {
            *sums.admitted.entry(minute).or_insert(0) += count;
        }
        self.sums = sums;
    }

    pub(super) fn insert_child(&mut self, node: NodeId, child: Child) {
        self.sums.add_child(&child);
        self.children.insert(node, child);
    }

    pub(super) fn remove_child(&mut self, node: NodeId) -> Option<Child> {
        let child = self.children.remove(&node)?;
        self.sums.remove_child(&child);
        Some(child)
    }

    pub(super) fn push_departed(&mut self, gone: Departed) {
        self.sums.row.absorb(&gone.row);
        self.sums.add_admitted(&gone.admitted);
        self.departed.push(gone);
    }

    /// Forgets a departed child with all that it counted for.
    pub(super) fn drop_departed(&mut self, node: NodeId) {
        if let Some(at) = self.departed.iter().position(|gone| gone.node == node) {
            let gone = self.departed.remove(at);
            self.sums.row.subtract(&gone.row);
            self.sums.remove_admitted(&gone.admitted);
        }
    }

    /// Frees a seat that a child reported.
    pub(super) fn free_seat(&mut self, data_center: crate::id::DataCenterId, end: Millis) {
        let group = self.groups.entry(data_center).or_default();
        if end > group.closed_through {
            group.settled.remove(end);
            self.sums.row.remove(end);
        }
    }

    pub(super) fn add_left_waiting(&mut self, counts: &WaitingCounts, until: Millis) {
        self.sums.add_waiting(counts);
        self.left_waiting.counts.absorb(counts);
        self.left_waiting.until = self.left_waiting.until.max(until);
    }

    pub(super) fn take_left_waiting(&mut self) -> WaitingCounts {
        let counts = core::mem::take(&mut self.left_waiting.counts);
        self.sums.remove_waiting(&counts);
        counts
    }
}
