//! How much will be wanted until the next sync? As much as in the last stretch of time.
//!
//! Counted by stretches of one sync period, not by requests: requests come faster when slots are
//! short, and each would otherwise see only a part of the traffic.

use super::syncing::SYNC_PERIOD;
use crate::sync::Wants;
use crate::time::Millis;

/// Fewest credits held while somebody is inside, so that a lone visitor's check-in needs no round
/// trip. A crash turns them into phantom seats.
const CREDITS_MIN: u32 = 2;
/// Most slots wanted at once.
const SLOTS_MAX: u32 = 10_000;

/// What happened since the last request, and the recent past.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Demand {
    missing_slots: u32,
    missing_credits: u32,
    admissions: Stretch,
    renewals: Stretch,
    admissions_untold: u32,
    admissions_in_flight: u32,
    has_changed: bool,
}

/// Events in this sync period and in the one before.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    index: u64,
    count: u32,
    before: u32,
}

impl Stretch {
    fn note(&mut self, now: Millis) {
        self.advance(now);
        self.count = self.count.saturating_add(1);
    }

    /// Events to be expected within a sync period.
    fn expected(&mut self, now: Millis) -> u32 {
        self.advance(now);
        self.count.max(self.before)
    }

    fn advance(&mut self, now: Millis) {
        let index = now.0 / SYNC_PERIOD.0;
        if index > self.index {
            self.before = if index == self.index + 1 {
                self.count
            } else {
                0
            };
            self.count = 0;
            self.index = index;
        }
    }
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
    pub(super) fn note_admission(&mut self, now: Millis) {
        self.admissions.note(now);
        self.admissions_untold = self.admissions_untold.saturating_add(1);
        self.has_changed = true;
    }

    /// A seat was prolonged.
    pub(super) fn note_renewal(&mut self, now: Millis) {
        self.renewals.note(now);
        self.has_changed = true;
    }

    /// Something else should be told to the parent soon.
    pub(super) fn note_change(&mut self) {
        self.has_changed = true;
    }

    /// Whether there is news for the parent.
    pub(super) fn has_news(&self) -> bool {
        self.has_changed || self.missing_slots > 0 || self.missing_credits > 0
    }

    /// Admissions that the outlook does not contain yet.
    pub(super) fn unreported_admissions(&self) -> u32 {
        self.admissions_untold + self.admissions_in_flight
    }

    /// What to ask for; starts counting anew what is not told.
    pub(super) fn begin_request(&mut self, inside: u32, now: Millis) -> Wants {
        let slots = self
            .missing_slots
            .saturating_add(self.admissions.expected(now));
        let credits = self
            .missing_credits
            .saturating_add(self.renewals.expected(now));
        self.begin_goodbye();
        Wants {
            slots: slots.min(SLOTS_MAX),
            credits: credits.max(CREDITS_MIN.min(inside)),
        }
    }

    /// Starts counting anew without asking for anything.
    pub(super) fn begin_goodbye(&mut self) {
        self.admissions_in_flight += self.admissions_untold;
        self.admissions_untold = 0;
        self.missing_slots = 0;
        self.missing_credits = 0;
        self.has_changed = false;
    }

    /// The newest request was answered: what it reported is in the outlook now.
    pub(super) fn handle_answer(&mut self) {
        self.admissions_in_flight = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_within_a_period_is_expected_again_however_often_one_asks() {
        let mut demand = Demand::default();
        for ms in 0..50 {
            demand.note_admission(Millis(1_000 + ms));
            let wants = demand.begin_request(0, Millis(1_000 + ms));
            assert_eq!(u64::from(wants.slots), ms + 1);
        }
        assert_eq!(demand.begin_request(0, Millis(1_250)).slots, 50);
        assert_eq!(demand.begin_request(0, Millis(1_500)).slots, 0);
    }

    #[test]
    fn two_credits_are_kept_while_somebody_is_inside() {
        let mut demand = Demand::default();
        assert_eq!(demand.begin_request(0, Millis(0)).credits, 0);
        assert_eq!(demand.begin_request(1, Millis(0)).credits, 1);
        assert_eq!(demand.begin_request(9, Millis(0)).credits, 2);
    }
}
