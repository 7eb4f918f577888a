//! Closing: the freeing of seats whose interval has ended.
//!
//! Children of one data center move each other's seats, so that an interval of theirs is over when
//! the slowest of them reports so. Data centers never move each other's seats: one that is cut off
//! delays its own seats, and no others.

use alloc::vec::Vec;

use super::Ledger;
use crate::id::DataCenterId;
use crate::seats::SeatRow;
use crate::time::{DurationMs, Timestamp};

/// Largest difference between the clocks of two nodes: each is within 500 ms of the truth. For so
/// long a node of another data center may treat a seat as running that has ended in its own.
pub(super) const CLOCKS_APART: DurationMs = DurationMs(1_000);

impl Ledger {
    /// Returns the time that all known clocks have reached.
    pub(super) fn agreed_now(&self) -> Timestamp {
        self.clock_at - CLOCKS_APART
    }

    /// Frees the intervals of the syncing child's data center, as far as all its children treat
    /// them as over; and those of data centers without children.
    ///
    /// Without a live child nothing is freed: the next one reports its own progress.
    pub(super) fn close_intervals(&mut self, reporting: DataCenterId) {
        if let Some(ready) = self.ready(reporting) {
            let apart = if self.sums.data_centers() == 1 {
                self.unreported_lag()
            } else {
                CLOCKS_APART
            };
            let group = self.groups.entry(reporting).or_default();
            group.ready_through = group.ready_through.max(ready.min(self.clock_at));
            let closed = group.ready_through - apart;
            self.close_at_root(reporting, closed);
        }
        for childless in self.groups_without_children() {
            self.close_at_root(childless, self.agreed_now());
        }
    }

    /// Returns the lag of a process that does not report, or drains, and still admits visitors by
    /// its own clock.
    pub(super) fn unreported_lag(&self) -> DurationMs {
        let may_admit =
            !self.is_single_process() && self.logouts.may_missing_admit(self.agreed_now());
        if may_admit {
            CLOCKS_APART
        } else {
            DurationMs::ZERO
        }
    }

    /// Returns the data centers with seats and without a live child.
    fn groups_without_children(&self) -> Vec<DataCenterId> {
        if self.groups.len() <= 1 || self.upstream.is_some() {
            return Vec::new();
        }
        let gone = self.departed.iter().map(|gone| gone.data_center);
        let settled = self.groups.iter();
        let settled = settled.filter(|(_, group)| !group.settled.is_empty());
        let all = gone.chain(settled.map(|(&id, _)| id));
        let mut childless: Vec<_> = all.filter(|id| !self.sums.has_members(*id)).collect();
        childless.sort_unstable();
        childless.dedup();
        childless
    }

    /// Frees an interval that is over at the root; below it the root's reply does so.
    fn close_at_root(&mut self, data_center: DataCenterId, closed: Timestamp) {
        if self.upstream.is_none() {
            self.close_through(data_center, closed);
        }
    }

    /// Frees the intervals of a data center that ended by `closed`.
    pub(super) fn close_through(&mut self, data_center: DataCenterId, closed: Timestamp) {
        if closed <= self.closed_through(data_center) {
            return;
        }
        let group = self.groups.entry(data_center).or_default();
        group.closed_through = closed;
        if self.sums.may_end_by(data_center, closed) {
            self.end_intervals(data_center, closed);
        }
    }

    /// Returns the time by which all live children of a data center treat tickets as over; `None`
    /// if it has none.
    fn ready(&self, data_center: DataCenterId) -> Option<Timestamp> {
        let members = self.sums.members(data_center).iter();
        members.map(|member| member.closed_through).min()
    }

    /// Removes the intervals that have ended from the rows and from their sum. Row by row: where
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
    use crate::ledger::tests::{START, grant, request};

    #[test]
    fn a_seat_and_its_move_cancel_out_in_both_rows() {
        let (end, later) = (START + DurationMs(5_000), START + DurationMs(9_000));
        let mut giver = request(1, 1, 0);
        giver.row.add(end);
        let mut mover = request(2, 1, 0);
        mover.row.shift(end, later);
        let (ledger, _) = grant(Ledger::new(), &giver, START);
        let (mut ledger, _) = grant(ledger, &mover, START);
        for number in 2..4 {
            for child in [&mut giver, &mut mover] {
                child.number = number;
                child.is_final = true;
                child.closed_through = end;
                (ledger, _) = grant(ledger, child, end);
            }
            assert_eq!(ledger.active(), 1);
            giver.row = SeatRow::default();
        }
    }
}
