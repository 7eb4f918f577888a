//! How much will be wanted until the next sync? From what happened since the last ones.

use crate::sync::Wants;

/// Fewest credits held while somebody is inside, so that a lone visitor's check-in needs no round
/// trip. A crash turns them into phantom seats.
const CREDITS_MIN: u32 = 2;
/// Credits held, as a multiple of recent renewals in a period: traffic doubles within a period
/// only in a spike, and then a round trip helps.
const CREDITS_FACTOR: u32 = 2;
/// Most slots wanted at once.
const SLOTS_MAX: u32 = 10_000;

/// What happened since the last request, and the recent past.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Demand {
    missing_slots: u32,
    missing_credits: u32,
    admissions: u32,
    admissions_in_flight: u32,
    admissions_recent: u32,
    renewals: u32,
    renewals_recent: u32,
    has_changed: bool,
}

impl Demand {
    /// Somebody eligible found no slot here.
    pub(super) fn note_missing_slot(&mut self) {
        self.missing_slots = self.missing_slots.saturating_add(1);
    }

    /// A check-in was due and found no credit here.
    pub(super) fn note_missing_credit(&mut self) {
        self.missing_credits = self.missing_credits.saturating_add(1);
    }

    /// Somebody went in.
    pub(super) fn note_admission(&mut self) {
        self.admissions += 1;
        self.has_changed = true;
    }

    /// A seat was prolonged.
    pub(super) fn note_renewal(&mut self) {
        self.renewals += 1;
        self.has_changed = true;
    }

    /// Something else should be told to the parent soon.
    pub(super) fn note_change(&mut self) {
        self.has_changed = true;
    }

    /// Whether there is news for the parent.
    pub(super) fn has_news(&self) -> bool {
        self.has_changed || self.is_pressing()
    }

    /// Whether somebody was turned away who might be served.
    pub(super) fn is_pressing(&self) -> bool {
        self.missing_slots > 0 || self.missing_credits > 0
    }

    /// Admissions that the outlook does not contain yet.
    pub(super) fn unreported_admissions(&self) -> u32 {
        self.admissions + self.admissions_in_flight
    }

    /// What to ask for; starts counting anew.
    pub(super) fn begin_request(&mut self, inside: u32) -> Wants {
        // The recent past fades by a quarter with every request.
        self.admissions_recent = self.admissions.max(self.admissions_recent / 4 * 3);
        self.renewals_recent = self.renewals.max(self.renewals_recent / 4 * 3);
        let slots = self.missing_slots.max(self.admissions_recent);
        let least = CREDITS_MIN.min(inside);
        let credits = (self.renewals_recent * CREDITS_FACTOR).max(self.missing_credits);
        self.admissions_in_flight += self.admissions;
        self.admissions = 0;
        self.renewals = 0;
        self.missing_slots = 0;
        self.missing_credits = 0;
        self.has_changed = false;
        Wants {
            slots: slots.min(SLOTS_MAX),
            credits: credits.max(least),
        }
    }

    /// The newest request was answered: what it reported is in the outlook now.
    pub(super) fn handle_answer(&mut self) {
        self.admissions_in_flight = 0;
    }
}
