//! Sums over a ledger's records, kept up to date so that a reply does not cost a walk over all
//! children.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::swap;

use super::{Child, DepartedChild, Ledger};
use crate::id::{DataCenterId, NodeId};
use crate::seats::SeatRow;
use crate::sync::LeaseBalance;
use crate::time::{Minute, Timestamp};
use crate::waiting::ReportedWaiting;
use crate::watermark::{WaitingCounts, compact, people};

/// Sums over children, departed children and settled seats. Not part of the record;
/// [`Ledger::rebuild_sums`] restores them.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    pub(super) row: SeatRow,
    /// Waiting visitors as children count them; some counts may be negative.
    pub(super) waiting: WaitingCounts,
    waiting_total: i64,
    /// Value of `waiting` without negative counts and in few entries; computed when it is needed
    /// after a change.
    compact_queue: Arc<WaitingCounts>,
    is_queue_stale: bool,
    pub(super) admitted: BTreeMap<Minute, u32>,
    pub(super) leased_seats: u64,
    pub(super) leased_credits: u64,
    /// Admissions in children's balances, by their minute; hardly ever more than three.
    leased_admissions: Vec<(Minute, u64)>,
    /// Demand of children above their balances.
    unmet: Unmet,
    pub(super) nodes: u32,
    /// Data centers that have children.
    groups: BTreeMap<DataCenterId, Members>,
    /// Time before which no lease ends.
    pub(super) next_end: Timestamp,
    /// Time before which no child that synced becomes quiet.
    pub(super) next_quiet: Timestamp,
    /// Edge of the grid of counts for which waiting visitors were counted last.
    pub(super) waiting_at: Timestamp,
    /// Whether a child came, went or changed its terms since they were agreed on.
    pub(super) are_terms_stale: bool,
}

/// Demand of children above their balances.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Unmet {
    /// Number of children that lack slots.
    pub(super) children: u32,
    pub(super) slots: u64,
    pub(super) credits: u64,
    /// Seats for active visitors from other data centers: those who need one now.
    pub(super) first: u64,
    /// Seats for active visitors from other data centers who may come next.
    pub(super) later: u64,
}

impl Child {
    /// Returns its seats for waiting visitors.
    ///
    /// The others are kept for active visitors who lack a seat in their present data center. If
    /// they counted, waiting visitors would get none as long as one is kept.
    pub(super) fn seats_to_admit(&self) -> u32 {
        self.balance
            .seats
            .saturating_sub(self.demand.movers_reserved)
    }
}

impl Unmet {
    pub(super) fn of(child: &Child) -> Self {
        let slots = child.demand.slots.saturating_sub(child.seats_to_admit());
        let credits = child.demand.credits.saturating_sub(child.balance.credits);
        Self {
            children: u32::from(slots > 0),
            slots: slots.into(),
            credits: credits.into(),
            first: child.demand.movers_now.into(),
            later: child.demand.movers_expected.into(),
        }
    }

    /// Returns the seats that waiting visitors do not get.
    pub(super) fn claims(self) -> u64 {
        self.first + self.later
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self {
            children: self.children - other.children,
            slots: self.slots - other.slots,
            credits: self.credits - other.credits,
            first: self.first - other.first,
            later: self.later - other.later,
        }
    }

    fn with(self, other: Self) -> Self {
        Self {
            children: self.children + other.children,
            slots: self.slots + other.slots,
            credits: self.credits + other.credits,
            first: self.first + other.first,
            later: self.later + other.later,
        }
    }
}

/// Children in a data center.
#[derive(Clone, Debug, Default)]
struct Members {
    list: Vec<Member>,
    /// Time before which no interval in a row of this data center ends.
    next_end: Timestamp,
}

/// Part of a child that each reply needs of all children of a data center.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) node: NodeId,
    pub(super) closed_through: Timestamp,
    pub(super) nodes: u32,
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

/// Iterates over the admissions of a balance, by minute, without zeros.
fn nonzero_admissions(held: LeaseBalance) -> impl Iterator<Item = (Minute, u64)> {
    let by_minute = held.by_minute().into_iter();
    by_minute.filter_map(|(minute, count)| (count > 0).then_some((minute, count.into())))
}

impl Sums {
    fn add_child(&mut self, child: &Child) {
        self.row.absorb(&child.row);
        self.add_waiting(&child.waiting);
        self.add_admitted(&child.admitted);
        self.add_balance(child.balance, Unmet::of(child));
        self.nodes = self.nodes.saturating_add(child.nodes);
    }

    fn remove_child(&mut self, child: &Child) {
        self.row.subtract(&child.row);
        self.remove_waiting(&child.waiting);
        self.remove_admitted(&child.admitted);
        self.remove_balance(child.balance, Unmet::of(child));
        self.nodes = self.nodes.saturating_sub(child.nodes);
    }

    /// Replaces a child's last report by its newest one. Much of it is unchanged most of the time,
    /// and is not moved.
    fn replace_child(&mut self, known: &mut Child, mut new: Child) {
        // Add before subtracting: what is in both never falls to zero in between.
        if known.row == new.row {
            swap(&mut known.row, &mut new.row);
        } else {
            self.row.absorb(&new.row);
            self.row.subtract(&known.row);
        }
        if !known.waiting.counts_as(&new.waiting) {
            self.add_waiting(&new.waiting);
            self.remove_waiting(&known.waiting);
        }
        if known.admitted == new.admitted {
            swap(&mut known.admitted, &mut new.admitted);
        } else {
            self.add_admitted(&new.admitted);
            self.remove_admitted(&known.admitted);
        }
        self.are_terms_stale |= known.settings != new.settings;
        self.add_balance(new.balance, Unmet::of(&new));
        self.remove_balance(known.balance, Unmet::of(known));
        self.nodes = self.nodes.saturating_add(new.nodes);
        self.nodes = self.nodes.saturating_sub(known.nodes);
        *known = new;
    }

    fn add_balance(&mut self, held: LeaseBalance, unmet: Unmet) {
        self.leased_seats += u64::from(held.seats);
        self.leased_credits += u64::from(held.credits);
        self.unmet = self.unmet.with(unmet);
        for (of, count) in nonzero_admissions(held) {
            let mut known = self.leased_admissions.iter_mut();
            match known.find(|(minute, _)| *minute == of) {
                Some((_, sum)) => *sum += count,
                None => self.leased_admissions.push((of, count)),
            }
        }
    }

    fn remove_balance(&mut self, held: LeaseBalance, unmet: Unmet) {
        self.leased_seats -= u64::from(held.seats);
        self.leased_credits -= u64::from(held.credits);
        self.unmet = self.unmet.without(unmet);
        for (of, count) in nonzero_admissions(held) {
            let mut known = self.leased_admissions.iter();
            if let Some(at) = known.position(|(minute, _)| *minute == of) {
                self.leased_admissions[at].1 -= count;
                if self.leased_admissions[at].1 == 0 {
                    self.leased_admissions.swap_remove(at);
                }
            }
        }
    }

    /// Returns the admissions of `minute` in the children's balances.
    pub(super) fn leased_admissions(&self, minute: Minute) -> u64 {
        let mut known = self.leased_admissions.iter();
        let found = known.find(|(held, _)| *held == minute);
        found.map_or(0, |(_, sum)| *sum)
    }

    /// Returns the admissions of `oldest` and of later minutes in the children's balances.
    pub(super) fn leased_from(&self, oldest: Minute) -> u64 {
        let known = self.leased_admissions.iter();
        let open = known.filter(|(minute, _)| *minute >= oldest);
        open.map(|(_, sum)| *sum).sum()
    }

    /// Returns the demand of all children above their balances.
    pub(super) fn unmet(&self) -> Unmet {
        self.unmet
    }

    /// Computes the compact queue if it is stale.
    pub(super) fn refresh_compact_queue(&mut self) {
        if core::mem::take(&mut self.is_queue_stale) {
            self.compact_queue = Arc::new(compact(&self.waiting.shown()));
        }
    }

    /// Returns the waiting visitors in few entries.
    pub(super) fn compact_queue(&self) -> Arc<WaitingCounts> {
        if self.is_queue_stale {
            Arc::new(compact(&self.waiting.shown()))
        } else {
            Arc::clone(&self.compact_queue)
        }
    }

    /// Returns the number of waiting visitors.
    pub(super) fn waiting_total(&self) -> u32 {
        people(self.waiting_total)
    }

    fn add_waiting(&mut self, reported: &ReportedWaiting) {
        let counts = reported.counts();
        self.is_queue_stale |= !counts.is_empty();
        self.waiting.absorb(&counts);
        self.waiting_total += counts.total();
    }

    fn remove_waiting(&mut self, reported: &ReportedWaiting) {
        let counts = reported.counts();
        self.is_queue_stale |= !counts.is_empty();
        self.waiting.subtract(&counts);
        self.waiting_total -= counts.total();
    }

    /// Forgets the waiting visitors in a report.
    pub(super) fn drop_waiting(&mut self, reported: &mut ReportedWaiting) {
        self.remove_waiting(reported);
        *reported = ReportedWaiting::default();
    }

    /// Counts the visitors in a report as of now.
    pub(super) fn follow(&mut self, reported: &mut ReportedWaiting, clock_at: Timestamp) {
        if reported.forecast.is_empty() {
            return;
        }
        self.remove_waiting(reported);
        *reported = core::mem::take(reported).followed(clock_at);
        self.add_waiting(reported);
    }

    /// Counts admissions of no child.
    pub(super) fn keep_admitted(&mut self, minute: Minute, count: u32) {
        self.add_admitted(&[(minute, count)]);
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

    /// Panics if these are not the sums of the records. No request needs the admissions of
    /// `oldest`, nor of minutes before it.
    pub(super) fn assert_same(&self, rebuilt: &Self, oldest: Minute) {
        assert_eq!(self.row, rebuilt.row, "seats");
        assert_eq!(self.waiting, rebuilt.waiting, "waiting visitors");
        assert_eq!(self.waiting_total, rebuilt.waiting_total, "waiting total");
        let recent = |sums: &Self| -> Vec<(Minute, u32)> {
            let after = sums.admitted.iter().filter(|(minute, _)| **minute > oldest);
            after.map(|(&minute, &count)| (minute, count)).collect()
        };
        assert_eq!(recent(self), recent(rebuilt), "admissions");
        assert_eq!(self.leased_seats, rebuilt.leased_seats, "seats leased");
        assert_eq!(
            self.leased_credits, rebuilt.leased_credits,
            "credits leased"
        );
        assert_eq!(self.unmet, rebuilt.unmet, "unmet demand");
        assert_eq!(self.nodes, rebuilt.nodes, "nodes");
        let leased = |sums: &Self| {
            let mut leased = sums.leased_admissions.clone();
            leased.sort_unstable();
            leased
        };
        assert_eq!(leased(self), leased(rebuilt), "admissions leased");
        self.assert_same_members(rebuilt);
    }
}

impl Sums {
    /// Returns the children in a data center.
    pub(super) fn members(&self, data_center: DataCenterId) -> &[Member] {
        let group = self.groups.get(&data_center);
        group.map_or(&[], |group| group.list.as_slice())
    }

    /// Whether there are children in this data center.
    pub(super) fn has_members(&self, data_center: DataCenterId) -> bool {
        self.groups.contains_key(&data_center)
    }

    /// Returns the data centers that have children.
    fn with_members(&self) -> Vec<DataCenterId> {
        self.groups.keys().copied().collect()
    }

    /// Panics if `rebuilt` has other members.
    pub(super) fn assert_same_members(&self, rebuilt: &Self) {
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
                "no interval ends earlier than noted"
            );
        }
    }

    /// Returns the number of data centers that have children.
    pub(super) fn data_centers(&self) -> usize {
        self.groups.len()
    }

    /// Whether an interval in a row of this data center may end by then.
    pub(super) fn may_end_by(&self, data_center: DataCenterId, closed: Timestamp) -> bool {
        let group = self.groups.get(&data_center);
        group.is_none_or(|group| group.next_end <= closed)
    }

    /// Returns a time before which no interval in a row of this data center ends.
    pub(super) fn next_end_in(&self, data_center: DataCenterId) -> Timestamp {
        let group = self.groups.get(&data_center);
        group.map_or(Timestamp::NEVER, |group| group.next_end)
    }

    /// Notes the earliest end after a walk over all rows of this data center.
    pub(super) fn note_next_end(&mut self, data_center: DataCenterId, next: Timestamp) {
        if let Some(group) = self.groups.get_mut(&data_center) {
            group.next_end = next;
        }
    }

    /// Notes a new interval in a row of this data center.
    fn note_end(&mut self, data_center: DataCenterId, end: Timestamp) {
        if let Some(group) = self.groups.get_mut(&data_center) {
            group.next_end = group.next_end.min(end);
        }
    }

    fn join(&mut self, node: NodeId, child: &Child) {
        // Rows of earlier members may end sooner; their ends are unknown here.
        let group = self.groups.entry(child.data_center).or_default();
        group.next_end = group.next_end.min(child.row.first_end());
        group.list.push(Member::of(node, child));
        self.are_terms_stale = true;
    }

    fn note_report(&mut self, node: NodeId, child: &Child) {
        let Some(group) = self.groups.get_mut(&child.data_center) else {
            return;
        };
        group.next_end = group.next_end.min(child.row.first_end());
        if let Some(member) = group.list.iter_mut().find(|member| member.node == node) {
            *member = Member::of(node, child);
        }
    }

    fn leave(&mut self, node: NodeId, data_center: DataCenterId) {
        if let Some(group) = self.groups.get_mut(&data_center) {
            group.list.retain(|member| member.node != node);
            if group.list.is_empty() {
                self.groups.remove(&data_center);
            }
        }
        self.are_terms_stale = true;
    }
}

impl Ledger {
    /// Computes the sums from the records: for a ledger that was read from a store.
    pub fn rebuild_sums(&mut self) {
        let mut sums = Sums::default();
        for child in self.children.values() {
            sums.add_child(child);
        }
        for gone in &self.departed {
            sums.row.absorb(&gone.row);
            sums.add_admitted(&gone.admitted);
            sums.add_waiting(&gone.waiting);
        }
        for group in self.groups.values() {
            sums.row.absorb(&group.settled);
        }
        for (&minute, &count) in &self.settled_minutes {
            *sums.admitted.entry(minute).or_insert(0) += count;
        }
        sums.are_terms_stale = true;
        for (&node, child) in &self.children {
            sums.join(node, child);
        }
        self.sums = sums;
        for data_center in self.sums.with_members() {
            let next = self.first_end_in(data_center);
            self.sums.note_next_end(data_center, next);
        }
    }

    /// Returns the earliest end in any row of a data center.
    fn first_end_in(&self, data_center: DataCenterId) -> Timestamp {
        let children = self.children.values();
        let children = children.filter(|child| child.data_center == data_center);
        let departed = self.departed.iter();
        let departed = departed.filter(|gone| gone.data_center == data_center);
        let settled = self.groups.get(&data_center).map(|group| &group.settled);
        let rows = children.map(|child| &child.row);
        let rows = rows.chain(departed.map(|gone| &gone.row)).chain(settled);
        rows.map(SeatRow::first_end)
            .min()
            .unwrap_or(Timestamp::NEVER)
    }

    /// Inserts or replaces a child's record.
    pub(super) fn insert_child(&mut self, node: NodeId, child: Child) {
        match self.children.get_mut(&node) {
            Some(known) => {
                if known.data_center != child.data_center {
                    self.sums.leave(node, known.data_center);
                    self.sums.join(node, &child);
                }
                self.sums.note_report(node, &child);
                self.sums.replace_child(known, child);
            }
            None => {
                self.sums.add_child(&child);
                self.sums.join(node, &child);
                self.children.insert(node, child);
            }
        }
    }

    /// Changes a child's balance.
    pub(super) fn update_child_lease(&mut self, node: NodeId, change: impl FnOnce(&mut Child)) {
        let Some(child) = self.children.get_mut(&node) else {
            return;
        };
        let (held, unmet) = (child.balance, Unmet::of(child));
        change(child);
        self.sums.add_balance(child.balance, Unmet::of(child));
        self.sums.remove_balance(held, unmet);
    }

    pub(super) fn remove_child(&mut self, node: NodeId) -> Option<Child> {
        let child = self.children.remove(&node)?;
        self.sums.remove_child(&child);
        self.sums.leave(node, child.data_center);
        Some(child)
    }

    pub(super) fn push_departed(&mut self, gone: DepartedChild) {
        self.sums.row.absorb(&gone.row);
        self.sums.add_admitted(&gone.admitted);
        self.sums.add_waiting(&gone.waiting);
        self.departed.push(gone);
    }

    /// Forgets a departed child with all its counts. Returns it.
    pub(super) fn drop_departed(&mut self, node: NodeId) -> Option<DepartedChild> {
        let at = self.departed.iter().position(|gone| gone.node == node)?;
        let gone = self.departed.remove(at);
        self.sums.row.subtract(&gone.row);
        self.sums.remove_admitted(&gone.admitted);
        self.sums.remove_waiting(&gone.waiting);
        Some(gone)
    }

    /// Frees a seat that a child reported.
    pub(super) fn free_seat(&mut self, data_center: DataCenterId, end: Timestamp) {
        let group = self.groups.entry(data_center).or_default();
        if end > group.closed_through {
            group.settled.remove(end);
            self.sums.row.remove(end);
            self.sums.note_end(data_center, end);
        }
    }
}
