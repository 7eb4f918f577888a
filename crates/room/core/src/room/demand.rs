//! How much will be wanted until the next sync? As much as in the last stretch of time.
//!
//! Counted by stretches of one sync period, not by requests: requests come faster when slots are
//! short, and each would otherwise see only a part of the traffic.

use super::syncing::SYNC_PERIOD;
use crate::id::VisitorId;
use crate::sync::LeaseDemand;
use crate::time::Timestamp;

/// Fewest credits held while somebody is inside, and at most one for each of them. Nobody waits for
/// a credit: whoever finds none passes, and its seat is prolonged with a later request. A crash
/// turns them into phantom seats, so that there are not many more than traffic needs.
const CREDITS_MIN: u32 = 8;
/// Fewest slots more than expected where somebody comes: the first of many is followed soon.
const ALLOWANCE_MIN: u32 = 8;
/// Most slots wanted at once.
const SLOTS_MAX: u32 = 10_000;

/// How many more than expected are held, so that chance and growth seldom find none: arrivals
/// of a Poisson stream stray by their square root, and few exceed four times that.
fn allowance(expected: u32) -> u32 {
    if expected == 0 {
        return 0;
    }
    expected.isqrt().saturating_mul(4) + ALLOWANCE_MIN
}

/// What happened since the last request, and the recent past.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Demand {
    slots: Missing,
    credits: Missing,
    unrenewed: Unrenewed,
    admissions: Stretch,
    renewals: Stretch,
    admissions_untold: u32,
    admissions_in_flight: u32,
    has_changed: bool,
    /// The parent still knows of a wish for slots.
    has_wished: bool,
}

/// What somebody asked for and did not find here.
///
/// Whoever waits for the parent's answer takes what it brings a moment later; a request that is
/// made in that moment must not give it back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Missing {
    untold: u32,
    /// Told, and not taken yet.
    told: Stretch,
}

impl Missing {
    pub(super) fn note(&mut self) {
        self.untold = self.untold.saturating_add(1);
    }

    pub(super) fn note_taken(&mut self) {
        self.told.take_one();
    }

    /// What is missing now or was a moment ago. Who was told to wait and did not come back within
    /// two periods is not waited for: on a busy evening those would be all slots that there are.
    pub(super) fn begin_request(&mut self, now: Timestamp) -> u32 {
        self.told.note_many(core::mem::take(&mut self.untold), now);
        self.told()
    }

    /// What was missing by the newest request, and has not been taken since.
    pub(super) fn told(&self) -> u32 {
        self.told.count.saturating_add(self.told.before)
    }

    /// Whether the parent does not know yet.
    pub(super) fn is_news(&self) -> bool {
        self.untold > 0
    }
}

/// Visitors who passed without a renewal because there was no credit, and until when their seats
/// run: each finds one with its next page, which may take longer than a wish lasts. As many as
/// there are credits at least; of more than those, some are renewed with a later page.
#[derive(Clone, Copy, Debug, Default)]
struct Unrenewed([Option<(VisitorId, Timestamp)>; CREDITS_MIN as usize]);

impl Unrenewed {
    fn note(&mut self, visitor: VisitorId, seat_ends_at: Timestamp) {
        self.forget(visitor);
        if let Some(free) = self.0.iter_mut().find(|entry| entry.is_none()) {
            *free = Some((visitor, seat_ends_at));
        }
    }

    fn forget(&mut self, visitor: VisitorId) {
        for entry in &mut self.0 {
            *entry = entry.filter(|(known, _)| *known != visitor);
        }
    }

    fn count(&mut self, now: Timestamp) -> u32 {
        for entry in &mut self.0 {
            *entry = entry.filter(|(_, seat_ends_at)| *seat_ends_at > now);
        }
        self.0
            .iter()
            .fold(0, |count, entry| count + u32::from(entry.is_some()))
    }
}

/// Events in this sync period and in the one before.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    index: u64,
    count: u32,
    before: u32,
}

impl Stretch {
    fn note_many(&mut self, count: u32, now: Timestamp) {
        self.advance(now);
        self.count = self.count.saturating_add(count);
    }

    /// One of them, an early one, counts no more.
    fn take_one(&mut self) {
        let oldest = if self.before > 0 {
            &mut self.before
        } else {
            &mut self.count
        };
        *oldest = oldest.saturating_sub(1);
    }

    /// Events to be expected within a sync period: as many as in the busier one of the last two,
    /// and a quarter of the calmer one, for traffic is uneven.
    fn expected(&mut self, now: Timestamp) -> u32 {
        self.advance(now);
        self.count.max(self.before) + self.count.min(self.before) / 4
    }

    fn advance(&mut self, now: Timestamp) {
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
        self.slots.note();
    }

    /// A check-in was due and found no credit here. The visitor's seat runs until `seat_ends_at`.
    pub(super) fn note_missing_credit(&mut self, visitor: VisitorId, seat_ends_at: Timestamp) {
        self.credits.note();
        self.unrenewed.note(visitor, seat_ends_at);
    }

    /// This visitor was renewed: no credit is kept for it.
    pub(super) fn handle_renewed(&mut self, visitor: VisitorId) {
        self.unrenewed.forget(visitor);
    }

    /// Whether somebody passed for want of a credit, and the parent does not know yet.
    pub(super) fn lacks_credit(&self) -> bool {
        self.credits.is_news()
    }

    /// Somebody went in.
    pub(super) fn note_admission(&mut self, now: Timestamp) {
        self.admissions.note_many(1, now);
        self.slots.note_taken();
        self.admissions_untold = self.admissions_untold.saturating_add(1);
        self.has_changed = true;
    }

    /// A seat was prolonged.
    pub(super) fn note_renewal(&mut self, now: Timestamp) {
        self.renewals.note_many(1, now);
        self.credits.note_taken();
        self.has_changed = true;
    }

    /// Something else should be told to the parent soon.
    pub(super) fn note_change(&mut self) {
        self.has_changed = true;
    }

    /// Whether there is news for the parent, or will be: a wish is taken back as soon as it is
    /// over, or slots would be kept for it.
    pub(super) fn has_news(&self) -> bool {
        self.has_changed || self.has_wished || self.slots.is_news() || self.credits.is_news()
    }

    /// Admissions that the outlook does not contain yet.
    pub(super) fn unreported_admissions(&self) -> u32 {
        self.admissions_untold + self.admissions_in_flight
    }

    /// What to ask for; starts counting anew what is not told. Up to `plenty` slots more than
    /// needed may be had.
    pub(super) fn begin_request(
        &mut self,
        inside: u32,
        plenty: u32,
        now: Timestamp,
    ) -> LeaseDemand {
        let slots = self.slots.begin_request(now);
        let slots = slots.saturating_add(self.admissions.expected(now));
        let slots = slots.saturating_add(allowance(slots).min(plenty));
        let credits = self.credits.begin_request(now);
        let credits = credits.saturating_add(self.renewals.expected(now));
        let credits = credits.saturating_add(allowance(credits));
        self.begin_goodbye();
        self.has_wished = slots > 0;
        LeaseDemand {
            slots: slots.min(SLOTS_MAX),
            credits: credits
                .max(CREDITS_MIN.min(inside))
                .max(self.unrenewed.count(now)),
            ..LeaseDemand::default()
        }
    }

    /// Starts counting anew without asking for anything.
    pub(super) fn begin_goodbye(&mut self) {
        self.admissions_in_flight += self.admissions_untold;
        self.admissions_untold = 0;
        self.has_changed = false;
        self.has_wished = false;
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
            demand.note_admission(Timestamp(1_000 + ms));
            let wants = demand.begin_request(0, 0, Timestamp(1_000 + ms));
            assert_eq!(u64::from(wants.slots), ms + 1);
        }
        assert_eq!(demand.begin_request(0, 0, Timestamp(1_250)).slots, 50);
        assert_eq!(demand.begin_request(0, 0, Timestamp(1_500)).slots, 0);
    }

    #[test]
    fn what_was_waited_for_is_not_returned_before_use() {
        let mut demand = Demand::default();
        demand.note_missing_slot();
        assert_eq!(demand.begin_request(0, 0, Timestamp(1_000)).slots, 1);
        assert_eq!(demand.begin_request(0, 0, Timestamp(1_001)).slots, 1);
        assert_eq!(demand.begin_request(0, 0, Timestamp(1_499)).slots, 1);
        assert_eq!(demand.begin_request(0, 0, Timestamp(1_500)).slots, 0);
    }

    #[test]
    fn after_long_rejection_a_crowds_wish_shrinks_to_its_recent_size() {
        let mut demand = Demand::default();
        for second in 0..60 {
            for _ in 0..10 {
                demand.note_missing_slot();
            }
            let wants = demand.begin_request(0, 0, Timestamp(1_000 + 250 * second));
            assert!(wants.slots <= 20, "{wants:?}");
        }
    }

    #[test]
    fn where_there_is_plenty_chance_is_allowed_for() {
        let wanted = |arrivals, plenty| {
            let mut demand = Demand::default();
            (0..arrivals).for_each(|_| demand.note_admission(Timestamp(1_000)));
            demand.begin_request(0, plenty, Timestamp(1_000)).slots
        };
        assert_eq!(wanted(0, 100), 0);
        assert_eq!(wanted(1, 100), 1 + 4 + 8);
        assert_eq!(wanted(9, 100), 9 + 12 + 8);
        assert_eq!(wanted(9, 5), 9 + 5);
        assert_eq!(wanted(9, 0), 9);
    }

    #[test]
    fn an_unused_credit_is_kept_until_its_visitor_or_seat_ends() {
        let mut demand = Demand::default();
        let visitor = |number| VisitorId([number; 16]);
        let credits = |demand: &mut Demand, at| demand.begin_request(0, 0, Timestamp(at)).credits;
        for _ in 0..3 {
            demand.note_missing_credit(visitor(1), Timestamp(9_000));
            demand.note_missing_credit(visitor(2), Timestamp(9_000));
        }
        // The wish for it is long over.
        credits(&mut demand, 1_000);
        assert_eq!(credits(&mut demand, 3_000), 2);
        demand.handle_renewed(visitor(2));
        assert_eq!(credits(&mut demand, 3_001), 1);
        assert_eq!(credits(&mut demand, 9_000), 0);
        (0..100).for_each(|number| demand.note_missing_credit(visitor(number), Timestamp(20_000)));
        credits(&mut demand, 10_000);
        assert_eq!(credits(&mut demand, 12_000), CREDITS_MIN);
    }

    #[test]
    fn a_few_credits_are_kept_while_somebody_is_inside() {
        let mut demand = Demand::default();
        assert_eq!(demand.begin_request(0, 0, Timestamp(0)).credits, 0);
        assert_eq!(demand.begin_request(1, 0, Timestamp(0)).credits, 1);
        assert_eq!(
            demand.begin_request(900, 0, Timestamp(0)).credits,
            CREDITS_MIN
        );
    }
}
