//! When does an interval give its seats back?
//!
//! Children of one data center move each other's seats, so that an interval of theirs is over when
//! the slowest of them says so. Data centers never move each other's: one that is cut off holds
//! back its own seats, and not those of the world.

use alloc::vec::Vec;

use super::Ledger;
use crate::id::DataCenterId;
use crate::seats::SeatRow;
use crate::time::{DurationMs, Timestamp};

/// How far the clocks of two nodes may be apart: each within 500 ms of the truth. For so long a
/// node elsewhere may take a seat for running that has ended at home.
pub(super) const CLOCKS_APART: DurationMs = DurationMs(1_000);

impl Ledger {
    /// The time that all clocks have reached, as far as they are known.
    pub(super) fn agreed_now(&self) -> Timestamp {
        self.heard_at - CLOCKS_APART
    }

    /// Gives back the intervals of the data center that speaks, as far as all its children treat
    /// them as over; and those of data centers that nobody speaks for any more.
    ///
    /// Without a live child nothing is given back: the next one that comes says how far it is.
    pub(super) fn close_intervals(&mut self, speaker: DataCenterId) {
        if let Some(ready) = self.ready(speaker) {
            let apart = if self.sums.data_centers() == 1 {
                self.silent_clocks()
            } else {
                CLOCKS_APART
            };
            let group = self.groups.entry(speaker).or_default();
            group.ready_through = group.ready_through.max(ready.min(self.heard_at));
            let closed = group.ready_through - apart;
            self.close_at_root(speaker, closed);
        }
        for silent in self.silent_groups() {
            self.close_at_root(silent, self.agreed_now());
        }
    }

    /// How far behind the children that speak a process may be that is silent, or drains, and still
    /// lets visitors pass by its own clock.
    pub(super) fn silent_clocks(&self) -> DurationMs {
        let may_pass = !self.is_known_to_all() && self.logouts.may_others_pass(self.agreed_now());
        if may_pass {
            CLOCKS_APART
        } else {
            DurationMs::ZERO
        }
    }

    /// Data centers with seats and without a live child.
    fn silent_groups(&self) -> Vec<DataCenterId> {
        if self.groups.len() <= 1 || self.upstream.is_some() {
            return Vec::new();
        }
        let gone = self.departed.iter().map(|gone| gone.data_center);
        let settled = self.groups.iter();
        let settled = settled.filter(|(_, group)| !group.settled.is_empty());
        let all = gone.chain(settled.map(|(&id, _)| id));
        let mut silent: Vec<_> = all.filter(|id| !self.sums.has_members(*id)).collect();
        silent.sort_unstable();
        silent.dedup();
        silent
    }

    /// At the root an interval that is over gives its seats back; below it the world says when.
    fn close_at_root(&mut self, data_center: DataCenterId, closed: Timestamp) {
        if self.upstream.is_none() {
            self.close_as_told(data_center, closed);
        }
    }

    /// Gives back the intervals of a data center that ended by then.
    pub(super) fn close_as_told(&mut self, data_center: DataCenterId, closed: Timestamp) {
        if closed <= self.closed_through(data_center) {
            return;
        }
        let group = self.groups.entry(data_center).or_default();
        group.closed_through = closed;
        if self.sums.may_end_by(data_center, closed) {
            self.end_intervals(data_center, closed);
        }
    }

    /// What all live children of a data center treat as over; `None` if it has none.
    fn ready(&self, data_center: DataCenterId) -> Option<Timestamp> {
        let members = self.sums.members(data_center).iter();
        members.map(|member| member.closed_through).min()
    }

    /// Takes the intervals that have ended out of the rows and out of their sum. Row by row: where
    /// two cancel each other out, the sum does not show it.
    fn end_intervals(&mut self, data_center: DataCenterId, closed: Timestamp) {
        let members = self.sums.members(data_center).iter();
        let members: Vec<_> = members.map(|member| member.node).collect();
        let sum = &mut self.sums.row;
        let mut next = Timestamp::NEVER;
        let mut end = |row: &mut SeatRow| {
            if row.first_end() <= closed {
                let ended = row.take_through(closed);
                sum.subtract(&ended);
            }
            next = next.min(row.first_end());
        };
        for node in members {
            if let Some(child) = self.children.get_mut(&node) {
                end(&mut child.row);
            }
        }
        let departed = self.departed.iter_mut();
        for gone in departed.filter(|gone| gone.data_center == data_center) {
            end(&mut gone.row);
        }
        if let Some(group) = self.groups.get_mut(&data_center) {
            end(&mut group.settled);
        }
        self.sums.note_next_end(data_center, next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::tests::{START, lent, request};

    #[test]
    fn a_seat_and_its_move_cancel_out_in_both_rows() {
        let (end, later) = (START + DurationMs(5_000), START + DurationMs(9_000));
        let mut giver = request(1, 1, 0);
        giver.row.add(end);
        let mut mover = request(2, 1, 0);
        mover.row.shift(end, later);
        let (ledger, _) = lent(Ledger::new(), &giver, START);
        let (mut ledger, _) = lent(ledger, &mover, START);
        for number in 2..4 {
            for child in [&mut giver, &mut mover] {
                child.number = number;
                child.is_final = true;
                child.closed_through = end;
                (ledger, _) = lent(ledger, child, end);
            }
            assert_eq!(ledger.inside(), 1);
            giver.row = SeatRow::default();
        }
    }
}
