//! What a ledger can tell about its room.

use alloc::collections::BTreeMap;

use super::{Departed, Ledger};
use crate::estimate::ASK_AFTER_FIRST;
use crate::order::ROUND;
use crate::sync::{MINUTES_KEPT, Outlook};
use crate::time::{Millis, Minute};
use crate::watermark::{WaitingCounts, Watermark};

impl Ledger {
    /// Visitors inside, as far as reported.
    #[must_use]
    pub fn inside(&self) -> u32 {
        let total: i64 = self
            .rows()
            .map(|row| row.total_after(self.closed_through))
            .sum();
        u32::try_from(total.max(0)).unwrap_or(u32::MAX)
    }

    /// Seats that departed children may have given without a word.
    #[must_use]
    pub fn phantoms(&self) -> u32 {
        let may_run = |gone: &&Departed| gone.ends_at > self.closed_through;
        let phantoms = self.departed.iter().filter(may_run);
        phantoms.fold(0, |sum, gone| sum.saturating_add(gone.phantoms))
    }

    /// Seats lent and, as far as known, unused.
    #[must_use]
    pub fn seats_lent(&self) -> u64 {
        self.children
            .values()
            .map(|child| u64::from(child.held.seats))
            .sum()
    }

    /// Admissions used in `minute`; what departed children held counts as used.
    #[must_use]
    pub fn admitted_in(&self, minute: Minute) -> u32 {
        self.admitted().get(&minute).copied().unwrap_or(0)
    }

    /// Who waits, in all.
    #[must_use]
    pub fn waiting_total(&self) -> u32 {
        let live = self
            .children
            .values()
            .flat_map(|child| child.waiting.values());
        let all = live.chain(self.left_waiting.counts.values());
        all.fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Everything, at `now`.
    #[must_use]
    pub fn outlook(&self, now: Millis) -> Outlook {
        let slots = self.slots_before(now + ASK_AFTER_FIRST, now);
        let waiting = self.waiting_total();
        let lag = self
            .children
            .values()
            .map(|child| now.since(child.closed_through))
            .max();
        Outlook {
            as_of: now,
            watermark: Watermark::of(&self.waiting(), slots),
            slots,
            slots_in_round: self.slots_before(now + ROUND, now),
            slots_to_spare: slots.saturating_sub(waiting),
            inside: self.inside(),
            phantoms: self.phantoms(),
            lent: u32::try_from(self.seats_lent()).unwrap_or(u32::MAX),
            seats_free: self.seats_free(),
            admissions_free: self.admissions_free(now),
            admitted: self.admitted().into_iter().collect(),
            waiting,
            closed_through: self.closed_through,
            epoch: self.epoch,
            reopens_at: self.reopens_at,
            nodes: u32::try_from(self.children.len()).unwrap_or(u32::MAX),
            closing_lag: lag.unwrap_or_default(),
        }
    }

    /// Slots for those who wait until `soon`, by when those who are called now have asked: seats
    /// free, or lent and unused, or about to end, as far as the minute's admissions allow.
    fn slots_before(&self, soon: Millis, now: Millis) -> u32 {
        let Some(terms) = self.terms.filter(|_| self.reopens_at.is_none()) else {
            return 0;
        };
        let ending: i64 = self
            .rows()
            .map(|row| row.between(self.closed_through, soon))
            .sum();
        let ending = u64::try_from(ending).unwrap_or(0);
        let taken = u64::from(self.inside()) + u64::from(self.phantoms());
        let seats = (u64::from(terms.limits.total_active_users) + ending).saturating_sub(taken);
        let minute = now.minute();
        let used = u64::from(self.admitted_in(minute));
        let admissions = self.admissions_allowed(soon, minute).saturating_sub(used);
        u32::try_from(seats.min(admissions)).unwrap_or(u32::MAX)
    }

    fn waiting(&self) -> WaitingCounts {
        let mut sum = self.left_waiting.counts.clone();
        for child in self.children.values() {
            for (&rank, &count) in &child.waiting {
                *sum.entry(rank).or_insert(0) += count;
            }
        }
        sum
    }

    fn admitted(&self) -> BTreeMap<Minute, u32> {
        let mut sum = self.settled_minutes.clone();
        let reported = self.children.values().flat_map(|child| &child.admitted);
        let departed = self.departed.iter().flat_map(|gone| &gone.admitted);
        for &(minute, count) in reported.chain(departed) {
            *sum.entry(minute).or_insert(0) += count;
        }
        let oldest = Minute(self.as_of.minute().0.saturating_sub(MINUTES_KEPT as u64));
        sum.retain(|minute, _| *minute > oldest);
        sum
    }
}
