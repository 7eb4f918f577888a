//! What follows from a ledger's records, kept up to date so that an answer does not cost a walk
//! over all children.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::swap;

use super::{Child, DepartedChild, Ledger};
use crate::id::{DataCenterId, NodeId};
use crate::seats::SeatRow;
use crate::sync::LeaseBalance;
use crate::time::{Minute, Timestamp};
use crate::watermark::{WaitingCounts, compact};

/// Sums over children, departed children and what is settled. Not written down;
/// [`Ledger::rebuild_sums`] restores them.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    pub(super) row: SeatRow,
    pub(super) waiting: WaitingCounts,
    pub(super) waiting_total: u32,
    /// The same in few figures; made anew when somebody asks for it after a change.
    line: Arc<WaitingCounts>,
    is_line_old: bool,
    pub(super) admitted: BTreeMap<Minute, u32>,
    pub(super) seats_held: u64,
    pub(super) credits_held: u64,
    /// Admissions that children hold, by the minute for which they were lent; hardly ever more than
    /// three.
    admissions_held: Vec<(Minute, u64)>,
    /// Children that hold less than they would like to, and what they lack.
    unmet: Unmet,
    pub(super) nodes: u32,
    /// Data centers that have children.
    groups: BTreeMap<DataCenterId, Members>,
    /// No lease ends before this.
    pub(super) next_end: Timestamp,
    /// No child that spoke before is quiet before this.
    pub(super) next_quiet: Timestamp,
    /// Whether a child came, went or changed its terms since they were agreed on.
    pub(super) are_terms_old: bool,
}

/// What children would like to hold and do not.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Unmet {
    /// How many of them lack slots.
    pub(super) children: u32,
    pub(super) slots: u64,
    pub(super) credits: u64,
    /// Seats for visitors who are inside elsewhere: those that somebody asks for now.
    pub(super) first: u64,
    /// Those that are to be there when others ask.
    pub(super) later: u64,
}

impl Child {
    /// Seats that it holds for those who wait.
    ///
    /// The others are kept for visitors who are inside and lack a seat where they are. If they
    /// counted, too, whoever waits would get none as long as one is kept.
    pub(super) fn seats_to_admit(&self) -> u32 {
        self.held.seats.saturating_sub(self.wants.kept)
    }
}

impl Unmet {
    pub(super) fn of(child: &Child) -> Self {
        let slots = child.wants.slots.saturating_sub(child.seats_to_admit());
        let credits = child.wants.credits.saturating_sub(child.held.credits);
        Self {
            children: u32::from(slots > 0),
            slots: slots.into(),
            credits: credits.into(),
            first: child.wants.first.into(),
            later: child.wants.later.into(),
        }
    }

    /// Seats that those who wait do not get.
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

/// The children in a data center.
#[derive(Clone, Debug, Default)]
struct Members {
    list: Vec<Member>,
    /// No interval in a row of this data center ends before this.
    next_end: Timestamp,
}

/// What is asked of all children of a data center with every answer.
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

/// The admissions in it, by minute, where there are any.
fn lent_out(held: LeaseBalance) -> impl Iterator<Item = (Minute, u64)> {
    let by_minute = held.by_minute().into_iter();
    by_minute.filter_map(|(minute, count)| (count > 0).then_some((minute, count.into())))
}

impl Sums {
    fn add_child(&mut self, child: &Child) {
        self.row.absorb(&child.row);
        self.add_waiting(&child.waiting);
        self.add_admitted(&child.admitted);
        self.add_held(child.held, Unmet::of(child));
        self.nodes = self.nodes.saturating_add(child.nodes);
    }

    fn remove_child(&mut self, child: &Child) {
        self.row.subtract(&child.row);
        self.remove_waiting(&child.waiting);
        self.remove_admitted(&child.admitted);
        self.remove_held(child.held, Unmet::of(child));
        self.nodes = self.nodes.saturating_sub(child.nodes);
    }

    /// Takes a child's newest report for its last one. Much of it is the same most of the time, and
    /// stays where it is.
    fn replace_child(&mut self, known: &mut Child, mut new: Child) {
        // First in, then out: what is in both never falls to zero in between.
        if known.row == new.row {
            swap(&mut known.row, &mut new.row);
        } else {
            self.row.absorb(&new.row);
            self.row.subtract(&known.row);
        }
        if known.waiting == new.waiting {
            swap(&mut known.waiting, &mut new.waiting);
        } else {
            self.add_waiting(&new.waiting);
            self.remove_waiting(&known.waiting);
        }
        if known.admitted == new.admitted {
            swap(&mut known.admitted, &mut new.admitted);
        } else {
            self.add_admitted(&new.admitted);
            self.remove_admitted(&known.admitted);
        }
        self.are_terms_old |= known.terms != new.terms;
        self.add_held(new.held, Unmet::of(&new));
        self.remove_held(known.held, Unmet::of(known));
        self.nodes = self.nodes.saturating_add(new.nodes);
        self.nodes = self.nodes.saturating_sub(known.nodes);
        *known = new;
    }

    fn add_held(&mut self, held: LeaseBalance, unmet: Unmet) {
        self.seats_held += u64::from(held.seats);
        self.credits_held += u64::from(held.credits);
        self.unmet = self.unmet.with(unmet);
        for (of, count) in lent_out(held) {
            let mut known = self.admissions_held.iter_mut();
            match known.find(|(minute, _)| *minute == of) {
                Some((_, sum)) => *sum += count,
                None => self.admissions_held.push((of, count)),
            }
        }
    }

    fn remove_held(&mut self, held: LeaseBalance, unmet: Unmet) {
        self.seats_held -= u64::from(held.seats);
        self.credits_held -= u64::from(held.credits);
        self.unmet = self.unmet.without(unmet);
        for (of, count) in lent_out(held) {
            let mut known = self.admissions_held.iter();
            if let Some(at) = known.position(|(minute, _)| *minute == of) {
                self.admissions_held[at].1 -= count;
                if self.admissions_held[at].1 == 0 {
                    self.admissions_held.swap_remove(at);
                }
            }
        }
    }

    /// Admissions of `minute` that children hold.
    pub(super) fn admissions_held(&self, minute: Minute) -> u64 {
        let mut known = self.admissions_held.iter();
        let found = known.find(|(held, _)| *held == minute);
        found.map_or(0, |(_, sum)| *sum)
    }

    /// What all children would like to hold and do not.
    pub(super) fn unmet(&self) -> Unmet {
        self.unmet
    }

    /// Makes the line anew if it has changed.
    pub(super) fn refresh_line(&mut self) {
        if core::mem::take(&mut self.is_line_old) {
            self.line = Arc::new(compact(&self.waiting));
        }
    }

    /// Who waits, in few figures.
    pub(super) fn line(&self) -> Arc<WaitingCounts> {
        if self.is_line_old {
            Arc::new(compact(&self.waiting))
        } else {
            Arc::clone(&self.line)
        }
    }

    pub(super) fn add_waiting(&mut self, counts: &WaitingCounts) {
        self.is_line_old |= !counts.is_empty();
        self.waiting.absorb(counts);
        self.waiting_total = self.waiting_total.saturating_add(counts.total());
    }

    pub(super) fn remove_waiting(&mut self, counts: &WaitingCounts) {
        self.is_line_old |= !counts.is_empty();
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

    /// Panics if this is not what the records say. `oldest`: nobody asks for the admissions of this
    /// minute any more, nor of those before it.
    pub(super) fn assert_same(&self, rebuilt: &Self, oldest: Minute) {
        assert_eq!(self.row, rebuilt.row, "seats");
        assert_eq!(self.waiting, rebuilt.waiting, "who waits");
        assert_eq!(self.waiting_total, rebuilt.waiting_total, "how many wait");
        let recent = |sums: &Self| -> Vec<(Minute, u32)> {
            let after = sums.admitted.iter().filter(|(minute, _)| **minute > oldest);
            after.map(|(&minute, &count)| (minute, count)).collect()
        };
        assert_eq!(recent(self), recent(rebuilt), "admissions");
        assert_eq!(self.seats_held, rebuilt.seats_held, "seats lent");
        assert_eq!(self.credits_held, rebuilt.credits_held, "credits lent");
        assert_eq!(self.unmet, rebuilt.unmet, "what is asked for in vain");
        assert_eq!(self.nodes, rebuilt.nodes, "nodes");
        let lent = |sums: &Self| {
            let mut lent = sums.admissions_held.clone();
            lent.sort_unstable();
            lent
        };
        assert_eq!(lent(self), lent(rebuilt), "admissions lent");
        self.assert_same_members(rebuilt);
    }
}

impl Sums {
    /// The children in a data center.
    pub(super) fn members(&self, data_center: DataCenterId) -> &[Member] {
        let group = self.groups.get(&data_center);
        group.map_or(&[], |group| group.list.as_slice())
    }

    /// Whether there are children in this data center.
    pub(super) fn has_members(&self, data_center: DataCenterId) -> bool {
        self.groups.contains_key(&data_center)
    }

    /// The data centers that have children.
    fn with_members(&self) -> Vec<DataCenterId> {
        self.groups.keys().copied().collect()
    }

    /// Panics if another one says something else of the same children.
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
                "no interval ends earlier than is known"
            );
        }
    }

    /// How many data centers have children.
    pub(super) fn data_centers(&self) -> usize {
        self.groups.len()
    }

    /// Whether an interval in a row of this data center may end by then.
    pub(super) fn may_end_by(&self, data_center: DataCenterId, closed: Timestamp) -> bool {
        let group = self.groups.get(&data_center);
        group.is_none_or(|group| group.next_end <= closed)
    }

    /// No interval in a row of this data center ends before this.
    pub(super) fn next_end_in(&self, data_center: DataCenterId) -> Timestamp {
        let group = self.groups.get(&data_center);
        group.map_or(Timestamp::NEVER, |group| group.next_end)
    }

    /// The rows of this data center have been looked through: no interval ends before `next`.
    pub(super) fn note_next_end(&mut self, data_center: DataCenterId, next: Timestamp) {
        if let Some(group) = self.groups.get_mut(&data_center) {
            group.next_end = next;
        }
    }

    /// A row of this data center has a new interval.
    fn note_end(&mut self, data_center: DataCenterId, end: Timestamp) {
        if let Some(group) = self.groups.get_mut(&data_center) {
            group.next_end = group.next_end.min(end);
        }
    }

    fn join(&mut self, node: NodeId, child: &Child) {
        // What rows there are of those who were here before is not known.
        let group = self.groups.entry(child.data_center).or_default();
        group.next_end = group.next_end.min(child.row.first_end());
        group.list.push(Member::of(node, child));
        self.are_terms_old = true;
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

    fn part(&mut self, node: NodeId, data_center: DataCenterId) {
        if let Some(group) = self.groups.get_mut(&data_center) {
            group.list.retain(|member| member.node != node);
            if group.list.is_empty() {
                self.groups.remove(&data_center);
            }
        }
        self.are_terms_old = true;
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
        sums.are_terms_old = true;
        for (&node, child) in &self.children {
            sums.join(node, child);
        }
        self.sums = sums;
        for data_center in self.sums.with_members() {
            let next = self.first_end_in(data_center);
            self.sums.note_next_end(data_center, next);
        }
    }

    /// The earliest end in any row of a data center.
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

    /// Puts a child's record in place of the one there was.
    pub(super) fn insert_child(&mut self, node: NodeId, child: Child) {
        match self.children.get_mut(&node) {
            Some(known) => {
                if known.data_center != child.data_center {
                    self.sums.part(node, known.data_center);
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

    /// Changes what a child holds, and hands it waiting visitors on whom nobody else counts.
    pub(super) fn lend_to_child(
        &mut self,
        node: NodeId,
        inherited: &WaitingCounts,
        change: impl FnOnce(&mut Child),
    ) {
        let Some(child) = self.children.get_mut(&node) else {
            return;
        };
        let (held, unmet) = (child.held, Unmet::of(child));
        change(child);
        self.sums.add_held(child.held, Unmet::of(child));
        self.sums.remove_held(held, unmet);
        if !inherited.is_empty() {
            child.waiting.absorb(inherited);
            self.sums.add_waiting(inherited);
        }
        child.handed.clone_from(inherited);
    }

    pub(super) fn remove_child(&mut self, node: NodeId) -> Option<Child> {
        let child = self.children.remove(&node)?;
        self.sums.remove_child(&child);
        self.sums.part(node, child.data_center);
        Some(child)
    }

    pub(super) fn push_departed(&mut self, gone: DepartedChild) {
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
    pub(super) fn free_seat(&mut self, data_center: DataCenterId, end: Timestamp) {
        let group = self.groups.entry(data_center).or_default();
        if end > group.closed_through {
            group.settled.remove(end);
            self.sums.row.remove(end);
            self.sums.note_end(data_center, end);
        }
    }

    pub(super) fn add_left_waiting(&mut self, counts: &WaitingCounts, until: Timestamp) {
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
