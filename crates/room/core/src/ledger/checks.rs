//! Invariants of a ledger between two transitions: checked when one is read from a record, and
//! asserted after each transition in debug builds.

use super::{Child, Ledger, UnsoundLedger};
use crate::seats::SeatRow;

/// Most children for which sums are compared with the records: that costs a walk over all of them.
const CHILDREN_COMPARED: usize = 32;

/// Largest count in a seat row: as many seats as a limit can allow.
const SEATS_MAX: u64 = u32::MAX as u64;

fn ensure(holds: bool, rule: &'static str) -> Result<(), UnsoundLedger> {
    if holds {
        Ok(())
    } else {
        Err(UnsoundLedger { rule })
    }
}

impl Ledger {
    /// Panics in a debug build if the record is one that no sequence of transitions makes.
    pub(super) fn assert_sound(&self) {
        if cfg!(debug_assertions) {
            let checked = self.check();
            assert!(checked.is_ok(), "{checked:?}");
            if self.children.len() <= CHILDREN_COMPARED {
                self.assert_sums();
            }
        }
    }

    pub(super) fn check(&self) -> Result<(), UnsoundLedger> {
        self.check_stats()?;
        self.check_waiting()?;
        for child in self.children.values() {
            self.check_child(child)?;
        }
        for gone in &self.departed {
            ensure(
                !self.children.contains_key(&gone.node),
                "a departed child has no lease",
            )?;
            ensure(
                gone.generation <= self.generation,
                "a lease that was given up has a known number",
            )?;
        }
        ensure(
            self.began_at
                .is_none_or(|began_at| began_at <= self.clock_at),
            "a ledger began no later than the newest request",
        )?;
        ensure(
            self.recent.slots.is_sorted_by_key(|(at, _)| *at),
            "recent admissions are in order",
        )?;
        let Some(upstream) = &self.upstream else {
            let is_ready = self
                .groups
                .values()
                .all(|group| group.closed_through <= group.ready_through.max(self.agreed_now()));
            return ensure(
                is_ready,
                "an interval frees its seats only when all children treat it as over",
            );
        };
        ensure(
            self.reserve.is_none(),
            "only the root has a reserve: below it the parent knows all leases",
        )?;
        if let Err(rule) = upstream.lease.check() {
            return Err(UnsoundLedger { rule });
        }
        ensure(
            upstream.applied_reply <= Some(upstream.lease.to_parts().newest),
            "a reply belongs to a request",
        )
    }

    fn check_child(&self, child: &Child) -> Result<(), UnsoundLedger> {
        ensure(
            (1..=self.generation).contains(&child.generation),
            "a lease has a known number",
        )?;
        ensure(
            child.longest_seat <= self.longest_seat,
            "no seat is longer than the ledger's longest",
        )
    }

    /// Checks that counts of waiting visitors are small enough to be added up.
    fn check_waiting(&self) -> Result<(), UnsoundLedger> {
        let children = self.children.values().map(|child| &child.waiting);
        let all = children.chain(self.departed.iter().map(|gone| &gone.waiting));
        let mut counts = all.flat_map(|waiting| waiting.forecast.iter());
        let is_small = |count: &i64| count.unsigned_abs() <= SEATS_MAX;
        ensure(
            counts.all(|(_, counts)| counts.iter().all(is_small)),
            "no node counts more visitors than there can be",
        )
    }

    /// Checks that counts are small enough to be added up.
    fn check_stats(&self) -> Result<(), UnsoundLedger> {
        let children = self.children.values();
        let rows = children.clone().map(|child| &child.row);
        let rows = rows.chain(self.departed.iter().map(|gone| &gone.row));
        let mut rows = rows.chain(self.groups.values().map(|group| &group.settled));
        let is_small = |row: &SeatRow| {
            row.iter()
                .all(|(_, seats)| seats.unsigned_abs() <= SEATS_MAX)
        };
        ensure(
            rows.all(is_small),
            "no row has more seats than a limit allows",
        )?;
        let admitted = children.map(|child| &child.admitted);
        let admitted = admitted.chain(self.departed.iter().map(|gone| &gone.admitted));
        let admitted = admitted.flatten().map(|&(_, count)| u64::from(count));
        let settled = self.settled_minutes.values().map(|&count| count.into());
        ensure(
            admitted.chain(settled).sum::<u64>() <= u32::MAX.into(),
            "no more are admitted in a few minutes than a limit allows",
        )
    }

    fn assert_sums(&self) {
        let mut rebuilt = self.clone();
        rebuilt.rebuild_sums();
        let oldest = self.oldest_minute();
        self.sums.assert_same(&rebuilt.sums, oldest);
    }
}
