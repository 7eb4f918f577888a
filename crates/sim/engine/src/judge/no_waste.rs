//! Promise 5: an eligible visitor is not refused while a slot is free.

use anteroom_room::time::{DurationMs, Timestamp};

use super::Checkers;
use crate::outcome::Promise;

/// Somebody eligible was refused because all was taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InvalidValue {
    /// When it came.
    pub(crate) arrived_at: Timestamp,
    /// How long a free slot may go unnoticed.
    pub(crate) unnoticed: DurationMs,
}

impl InvalidValue {
    /// Since when a slot must have been free without a pause for this to break the promise. `None`
    /// when a minute has just begun: what was free in the last one died with it.
    pub(crate) fn free_since(self, now: Timestamp) -> Option<Timestamp> {
        let since = self.arrived_at.min(now - self.unnoticed);
        (since.minute() == now.minute()).then_some(since)
    }
}

impl Checkers {
    /// The root had had a slot to lend since [`InvalidValue::free_since`].
    pub(crate) fn check_refusal(&mut self, refusal: InvalidValue, now: Timestamp) {
        if self.is_calm(now) {
            self.report(Promise::NoWaste, now, || {
                let waited = now.since(refusal.arrived_at);
                format!("refused somebody eligible after {waited} although a slot was free")
            });
        }
    }

    /// The ledger of its data center had had a slot to lend since [`InvalidValue::free_since`]:
    /// that is to be had whatever has become of the root.
    pub(crate) fn check_refused_nearby(&mut self, refusal: InvalidValue, now: Timestamp) {
        if now >= self.upset_until {
            self.report(Promise::NoWaste, now, || {
                let waited = now.since(refusal.arrived_at);
                format!("refused somebody eligible after {waited} although a slot was free nearby")
            });
        }
    }
}
