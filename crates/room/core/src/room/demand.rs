//! Demand until the next sync: as much as in the last sync periods.
//!
//! It counts by sync period and not by request. Requests come faster when slots are short, and each
//! would otherwise see only a part of the traffic.

use alloc::collections::BTreeMap;

use super::syncing::SYNC_PERIOD;
use crate::id::VisitorId;
use crate::sync::LeaseDemand;
use crate::time::Timestamp;

/// Fewest credits in the lease while visitors are active, and at most one for each of them. No
/// visitor waits for a credit: without one it passes, and a later request extends its seat. A crash
/// turns credits into phantom seats, so there are not many more than traffic needs.
const CREDITS_MIN: u32 = 8;
/// Fewest slots above the expected number while visitors come: the first of many is followed soon.
const ALLOWANCE_MIN: u32 = 8;
/// Most slots requested at once.
const SLOTS_MAX: u32 = 10_000;

/// Returns the slots to have above the expected number, for chance and growth. Arrivals of a
/// Poisson stream vary by their square root, and few exceed four times that.
fn allowance(expected: u32) -> u32 {
    if expected == 0 {
        return 0;
    }
    expected.isqrt().saturating_mul(4) + ALLOWANCE_MIN
}

/// Events since the last request, and in recent sync periods.
#[derive(Clone, Debug, Default)]
pub(super) struct Demand {
    slots: Wishes,
    credits: Missing,
    unrenewed: Unrenewed,
    admissions: PeriodCounts,
    renewals: PeriodCounts,
    admissions_unreported: u32,
    admissions_in_flight: u32,
    has_changed: bool,
    /// Whether the parent still knows of a demand for slots.
    has_demand: bool,
}

/// Number of visitors who found no slot, or no credit, here.
///
/// A visitor who waits for the parent's reply takes its slot a moment later. A request that is made
/// in between must not return it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Missing {
    unreported: u32,
    /// Reported to the parent, and not taken yet.
    reported: PeriodCounts,
}

impl Missing {
    pub(super) fn note(&mut self) {
        self.unreported = self.unreported.saturating_add(1);
    }

    pub(super) fn note_taken(&mut self) {
        self.reported.take_one();
    }

    /// Returns the number that is missing now or was a moment ago. A visitor who does not return
    /// within two periods counts no more; under load those would be all slots.
    pub(super) fn begin_request(&mut self, now: Timestamp) -> u32 {
        self.reported
            .note_many(core::mem::take(&mut self.unreported), now);
        self.reported()
    }

    /// Returns the number in the newest request that has not been taken since.
    pub(super) fn reported(&self) -> u32 {
        self.reported.count.saturating_add(self.reported.before)
    }

    /// Whether the parent does not know of all yet.
    pub(super) fn has_unreported(&self) -> bool {
        self.unreported > 0
    }
}

/// Most visitors whose wish for a slot is remembered.
const WISHES_MAX: usize = 1 << 16;

/// Visitors who found no slot here, and the time until which each is waited for.
///
/// A visitor who waits for the parent's reply takes its slot a moment later. A request that is made
/// in between must not return it, and a distant root's reply comes later than two sync periods.
#[derive(Clone, Debug, Default)]
struct Wishes {
    until: BTreeMap<VisitorId, Timestamp>,
    has_unreported: bool,
}

impl Wishes {
    fn note(&mut self, visitor: VisitorId, until: Timestamp) {
        let has_capacity = self.until.len() < WISHES_MAX;
        if let Some(known) = self.until.get_mut(&visitor) {
            *known = until;
        } else if has_capacity {
            self.until.insert(visitor, until);
            self.has_unreported = true;
        }
    }

    fn note_taken(&mut self, visitor: VisitorId) {
        self.until.remove(&visitor);
    }

    fn note_queued(&mut self, visitor: VisitorId, until: Timestamp) {
        if let Some(known) = self.until.get_mut(&visitor) {
            *known = until.min(*known);
        }
    }

    fn len(&self) -> usize {
        self.until.len()
    }

    fn begin_request(&mut self, now: Timestamp) -> u32 {
        self.has_unreported = false;
        self.until.retain(|_, until| *until > now);
        u32::try_from(self.until.len()).unwrap_or(u32::MAX)
    }
}

/// Visitors who passed unrenewed for lack of a credit, with the ends of their seats. Each finds a
/// credit with its next page, which may take longer than `credits` counts it. Room for as many as
/// there are credits at least; of more visitors, some are renewed with a later page.
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

/// Counts of events in this sync period and in the one before.
#[derive(Clone, Copy, Debug, Default)]
struct PeriodCounts {
    index: u64,
    count: u32,
    before: u32,
}

impl PeriodCounts {
    fn note_many(&mut self, count: u32, now: Timestamp) {
        self.advance(now);
        self.count = self.count.saturating_add(count);
    }

    /// Removes one event, from the earlier period if there is one.
    fn take_one(&mut self) {
        let oldest = if self.before > 0 {
            &mut self.before
        } else {
            &mut self.count
        };
        *oldest = oldest.saturating_sub(1);
    }

    /// Returns the events to expect within a sync period: as many as in the busier one of the last
    /// two, plus a quarter of the other one, since traffic is uneven.
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
    /// Notes an eligible visitor who found no slot here, and who may take one until then.
    pub(super) fn note_missing_slot(&mut self, visitor: VisitorId, until: Timestamp) {
        self.slots.note(visitor, until);
    }

    /// Returns the number of visitors who wish for a slot here, at the newest request and since.
    pub(super) fn wishes(&self) -> usize {
        self.slots.len()
    }

    /// Notes that a visitor does not wait for a slot any more. One that is under way may still
    /// serve a visitor who asks again soon.
    pub(super) fn handle_queued(&mut self, visitor: VisitorId, now: Timestamp) {
        self.slots.note_queued(visitor, now + SYNC_PERIOD);
    }

    /// Forgets the wish of a visitor who left the queue.
    pub(super) fn handle_left(&mut self, visitor: VisitorId) {
        self.slots.note_taken(visitor);
        self.has_changed = true;
    }

    /// Counts a due check-in that found no credit here. The visitor's seat runs until
    /// `seat_ends_at`.
    pub(super) fn note_missing_credit(&mut self, visitor: VisitorId, seat_ends_at: Timestamp) {
        self.credits.note();
        self.unrenewed.note(visitor, seat_ends_at);
    }

    /// Notes that this visitor was renewed: it needs no credit any more.
    pub(super) fn handle_renewed(&mut self, visitor: VisitorId) {
        self.unrenewed.forget(visitor);
    }

    /// Whether a visitor passed for lack of a credit, and the parent does not know yet.
    pub(super) fn lacks_credit(&self) -> bool {
        self.credits.has_unreported()
    }

    /// Counts an admission.
    pub(super) fn note_admission(&mut self, visitor: VisitorId, now: Timestamp) {
        self.admissions.note_many(1, now);
        self.slots.note_taken(visitor);
        self.admissions_unreported = self.admissions_unreported.saturating_add(1);
        self.has_changed = true;
    }

    /// Counts an extended seat.
    pub(super) fn note_renewal(&mut self, now: Timestamp) {
        self.renewals.note_many(1, now);
        self.credits.note_taken();
        self.has_changed = true;
    }

    /// Notes another change that the parent should know soon.
    pub(super) fn note_change(&mut self) {
        self.has_changed = true;
    }

    /// Whether the parent should get a report soon. A demand that is over is withdrawn soon as
    /// well, or the parent would keep slots for it.
    pub(super) fn needs_report(&self) -> bool {
        self.has_changed
            || self.has_demand
            || self.slots.has_unreported
            || self.credits.has_unreported()
    }

    /// Returns the admissions that the snapshot does not contain yet.
    pub(super) fn unreported_admissions(&self) -> u32 {
        self.admissions_unreported + self.admissions_in_flight
    }

    /// Returns the demand for a request, and starts a new count. It may have up to `spare` slots
    /// more than needed.
    pub(super) fn begin_request(&mut self, inside: u32, spare: u32, now: Timestamp) -> LeaseDemand {
        let slots = self.slots.begin_request(now);
        let slots = slots.saturating_add(self.admissions.expected(now));
        let slots = slots.saturating_add(allowance(slots).min(spare));
        let credits = self.credits.begin_request(now);
        let credits = credits.saturating_add(self.renewals.expected(now));
        let credits = credits.saturating_add(allowance(credits));
        self.begin_goodbye();
        self.has_demand = slots > 0;
        LeaseDemand {
            slots: slots.min(SLOTS_MAX),
            credits: credits
                .max(CREDITS_MIN.min(inside))
                .max(self.unrenewed.count(now)),
            ..LeaseDemand::default()
        }
    }

    /// Starts a new count without a demand.
    pub(super) fn begin_goodbye(&mut self) {
        self.admissions_in_flight += self.admissions_unreported;
        self.admissions_unreported = 0;
        self.has_changed = false;
        self.has_demand = false;
    }

    /// Notes the reply to the newest request: the snapshot contains what the request reported.
    pub(super) fn handle_answer(&mut self) {
        self.admissions_in_flight = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visitor(number: u8) -> VisitorId {
        VisitorId([number; 16])
    }

    #[test]
    fn the_demand_of_a_period_is_independent_of_its_requests() {
        let mut demand = Demand::default();
        for ms in 0..50 {
            demand.note_admission(visitor(0), Timestamp(1_000 + ms));
            let wants = demand.begin_request(0, 0, Timestamp(1_000 + ms));
            assert_eq!(u64::from(wants.slots), ms + 1);
        }
        assert_eq!(demand.begin_request(0, 0, Timestamp(1_250)).slots, 50);
        assert_eq!(demand.begin_request(0, 0, Timestamp(1_500)).slots, 0);
    }

    #[test]
    fn a_slot_is_demanded_until_its_visitor_took_it_or_does_not_come() {
        let mut demand = Demand::default();
        let slots = |demand: &mut Demand, at| demand.begin_request(0, 0, Timestamp(at)).slots;
        demand.note_missing_slot(visitor(1), Timestamp(3_000));
        demand.note_missing_slot(visitor(2), Timestamp(2_000));
        assert_eq!(slots(&mut demand, 1_000), 2);
        assert_eq!(slots(&mut demand, 1_999), 2);
        assert_eq!(slots(&mut demand, 2_000), 1);
        // Its next request counts it once, until later.
        demand.note_missing_slot(visitor(1), Timestamp(5_000));
        assert_eq!(slots(&mut demand, 4_999), 1);
        demand.note_missing_slot(visitor(3), Timestamp(9_000));
        demand.note_admission(visitor(1), Timestamp(4_999));
        // The wish of the other one, and the admission of just now.
        assert_eq!(slots(&mut demand, 4_999), 2);
        assert_eq!(slots(&mut demand, 8_999), 1);
        assert_eq!(slots(&mut demand, 9_000), 0);
    }

    #[test]
    fn wishes_take_bounded_memory() {
        let mut demand = Demand::default();
        for number in 0..2 * u32::try_from(WISHES_MAX).unwrap() {
            let mut id = [0; 16];
            id[..4].copy_from_slice(&number.to_le_bytes());
            demand.note_missing_slot(VisitorId(id), Timestamp(9_000));
        }
        assert_eq!(demand.slots.until.len(), WISHES_MAX);
    }

    #[test]
    fn spare_slots_are_requested_for_chance() {
        let wanted = |arrivals, spare| {
            let mut demand = Demand::default();
            (0..arrivals).for_each(|_| demand.note_admission(visitor(0), Timestamp(1_000)));
            demand.begin_request(0, spare, Timestamp(1_000)).slots
        };
        assert_eq!(wanted(0, 100), 0);
        assert_eq!(wanted(1, 100), 1 + 4 + 8);
        assert_eq!(wanted(9, 100), 9 + 12 + 8);
        assert_eq!(wanted(9, 5), 9 + 5);
        assert_eq!(wanted(9, 0), 9);
    }

    #[test]
    fn an_unused_credit_is_kept_until_the_renewal_or_the_seats_end() {
        let mut demand = Demand::default();
        let credits = |demand: &mut Demand, at| demand.begin_request(0, 0, Timestamp(at)).credits;
        for _ in 0..3 {
            demand.note_missing_credit(visitor(1), Timestamp(9_000));
            demand.note_missing_credit(visitor(2), Timestamp(9_000));
        }
        // `credits` has long stopped counting it.
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
    fn a_few_credits_are_kept_while_visitors_are_active() {
        let mut demand = Demand::default();
        assert_eq!(demand.begin_request(0, 0, Timestamp(0)).credits, 0);
        assert_eq!(demand.begin_request(1, 0, Timestamp(0)).credits, 1);
        assert_eq!(
            demand.begin_request(900, 0, Timestamp(0)).credits,
            CREDITS_MIN
        );
    }
}
