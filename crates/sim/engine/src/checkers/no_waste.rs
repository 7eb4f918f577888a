//! Checker of invariant 5: an eligible visitor is not queued while a slot is free.

use anteroom_room::time::{DurationMs, Timestamp};

use super::Checkers;
use crate::outcome::Invariant;

/// Eligible visitor who was queued because no slot was free.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuedVisitor {
    /// Time of its request.
    pub(crate) arrived_at: Timestamp,
    /// Longest time until a node learns of a free slot.
    pub(crate) unnoticed: DurationMs,
}

impl QueuedVisitor {
    /// Returns the time since which a slot must have been free without a pause to break the
    /// invariant. Returns `None` just after a minute begins, because the free admissions of the
    /// last minute have ended.
    pub(crate) fn free_since(self, now: Timestamp) -> Option<Timestamp> {
        let since = self.arrived_at.min(now - self.unnoticed);
        (since.minute() == now.minute()).then_some(since)
    }
}

impl Checkers {
    /// Reports a visitor who was queued although the root had had a free slot since
    /// [`QueuedVisitor::free_since`].
    pub(crate) fn check_queued(&mut self, queued: QueuedVisitor, now: Timestamp) {
        if self.is_calm(now) {
            self.report(Invariant::NoWaste, now, || {
                let waited = now.since(queued.arrived_at);
                format!("queued an eligible visitor after {waited} although a slot was free")
            });
        }
    }

    /// Reports a visitor who was queued although the ledger of its data center had had a free slot
    /// since [`QueuedVisitor::free_since`]. The state of the root does not matter here.
    pub(crate) fn check_queued_nearby(&mut self, queued: QueuedVisitor, now: Timestamp) {
        if now >= self.local_faults_until {
            self.report(Invariant::NoWaste, now, || {
                let waited = now.since(queued.arrived_at);
                format!("queued an eligible visitor after {waited} although a slot was free nearby")
            });
        }
    }
}
