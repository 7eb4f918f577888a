//! Set of visitors that count, each with its end; all operations take O(log n).
//!
//! The caller passes the time, which is only compared with the ends.

use std::collections::{BTreeMap, BTreeSet};

use anteroom_room::id::VisitorId;
use anteroom_room::time::Timestamp;

/// Distinct visitors, each with its end, and the most there were at once.
///
/// # Invariants
///
/// Both collections hold the same visitors with the same ends.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    by_end: BTreeSet<(Timestamp, VisitorId)>,
    end_of: BTreeMap<VisitorId, Timestamp>,
    most: usize,
}

impl Deadlines {
    /// Removes every visitor whose end is at or before `now`.
    pub(super) fn expire(&mut self, now: Timestamp) {
        while let Some(&(end, visitor)) = self.by_end.first() {
            if end > now {
                break;
            }
            self.by_end.pop_first();
            self.end_of.remove(&visitor);
        }
    }

    /// Counts a visitor until `end`, unless it already counts longer.
    pub(super) fn extend(&mut self, visitor: VisitorId, end: Timestamp) {
        let known_end = self.end_of.get(&visitor).copied();
        if known_end.is_some_and(|known| known >= end) {
            return;
        }
        if let Some(known) = known_end {
            self.by_end.remove(&(known, visitor));
        }
        self.by_end.insert((end, visitor));
        self.end_of.insert(visitor, end);
        self.most = self.most.max(self.end_of.len());
    }

    /// Removes one visitor; returns whether it was counted.
    pub(super) fn remove(&mut self, visitor: VisitorId) -> bool {
        let end = self.end_of.remove(&visitor);
        end.is_some_and(|end| self.by_end.remove(&(end, visitor)))
    }

    /// Returns the number of visitors.
    pub(super) fn len(&self) -> usize {
        self.end_of.len()
    }

    /// Returns the most visitors at once so far.
    pub(super) const fn most(&self) -> usize {
        self.most
    }
}
