//! When does an interval give its seats back?
//!
//! Children of one data center move each other's seats, so that an interval of theirs is over when
//! the slowest of them says so. Data centers never move each other's: one that is cut off holds
//! back its own seats, and not those of the world.

use super::{Group, Ledger};
use crate::id::DataCenterId;
use crate::planted::{Bug, is_planted};
use crate::time::{Millis, Span};

/// How far the clocks of two nodes may be apart: each within 500 ms of the truth. For so long a
/// node elsewhere may take a seat for running that has ended at home.
pub(super) const CLOCKS_APART: Span = Span(1_000);

impl Ledger {
    /// The time that all clocks have reached, as far as they are known.
    pub(super) fn agreed_now(&self) -> Millis {
        self.heard_at - CLOCKS_APART
    }

    /// Gives back the intervals that every child concerned treats as over.
    ///
    /// Without a live child nothing is given back: the next one that comes says how far it is.
    pub(super) fn close_intervals(&mut self, now: Millis) {
        let Some(slowest) = self.children.values().map(|c| c.closed_through).min() else {
            return;
        };
        for group in self.children.values().map(|child| child.data_center) {
            self.groups.entry(group).or_default();
        }
        let agreed = self.agreed_now();
        let heard = self.heard_at;
        let mut groups = core::mem::take(&mut self.groups);
        for (&data_center, group) in &mut groups {
            let closed = self.ready(data_center).map_or(agreed, |ready| {
                group.ready_through = group.ready_through.max(ready.min(heard));
                slowest.min(heard).max(group.ready_through - CLOCKS_APART)
            });
            let closed = if is_planted(Bug::ClosesByOwnClock) {
                now
            } else {
                closed
            };
            if self.upstream.is_none() {
                self.close(data_center, group, closed);
            }
        }
        self.groups = groups;
    }

    /// Applies what the parent has given back of this data center's seats.
    pub(super) fn close_as_told(&mut self, data_center: DataCenterId, closed: Millis) {
        let mut group = self.groups.remove(&data_center).unwrap_or_default();
        self.close(data_center, &mut group, closed);
        self.groups.insert(data_center, group);
    }

    /// What all live children of a data center treat as over; `None` if it has none.
    fn ready(&self, data_center: DataCenterId) -> Option<Millis> {
        let of_group = self
            .children
            .values()
            .filter(|child| child.data_center == data_center);
        of_group.map(|child| child.closed_through).min()
    }

    fn close(&mut self, data_center: DataCenterId, group: &mut Group, closed: Millis) {
        if closed <= group.closed_through {
            return;
        }
        group.closed_through = closed;
        let children = self.children.values_mut();
        let children = children.filter(|child| child.data_center == data_center);
        let departed = self.departed.iter_mut();
        let departed = departed.filter(|gone| gone.data_center == data_center);
        let rows = children
            .map(|child| &mut child.row)
            .chain(departed.map(|gone| &mut gone.row))
            .chain(core::iter::once(&mut group.settled));
        for row in rows {
            // Row by row: where two cancel each other out, their sum does not show it.
            if row.iter().next().is_some_and(|(end, _)| end <= closed) {
                let ended = row.take_through(closed);
                self.sums.row.subtract(&ended);
            }
        }
    }
}
