//! Admissions of the last seconds: how many may still be granted, so that no second and no sliding
//! minute has too many.
//!
//! The root counts two things. An admission is *outstanding* from its grant until a report says
//! that it was used, or returned. From then on, a used one is *recent* until its window is over. An
//! admission in a window that ends now is one or the other. So a grant that keeps their sum within
//! the limit keeps the window within it, on any number of nodes. Only the root needs this: below it
//! nodes share what is outstanding.
//!
//! # When a window is over
//!
//! Record time does not tell. It may stand still while nobody syncs, and jump when a child with a
//! better view of it comes. So children show it: a child that got a reply longer ago than the
//! window, by a clock that is never stepped, knows that all earlier reports are older
//! ([`crate::record_view`]). No clock is compared with another one.
//!
//! # Leases that nobody uses any more
//!
//! Admissions end with their minute, and with their lease. When all clocks have passed that end,
//! what was outstanding counts as used at that moment. A later report of it counts nothing. The
//! first report after a store came back counts all the same: the record may lack the grant.

use alloc::vec::Vec;

use super::{Child, DepartedChild, Ledger};
use crate::rules::NewUsersWindow;
use crate::sync::SyncRequest;
use crate::time::{DurationMs, Minute, Timestamp};

/// Width of the slots in which reports of the last second are counted.
const SLOT: DurationMs = DurationMs(125);
/// Width of the slots of earlier reports.
const SLOT_LATER: DurationMs = DurationMs(500);
/// Most slots: those of a sliding minute and of a second, and as many again for late replies. More
/// are merged, and then count for longer.
const SLOTS_MAX: usize = 160;
/// Time in which as many admissions as a second allows come free, as a rule: the second, and the
/// syncs that report admissions and show that it is over. Only forecasts use it.
const SECOND_IN_PRACTICE: DurationMs = DurationMs(1_500);
/// Length of a sliding window.
pub(super) const SLIDING_WINDOW: DurationMs = DurationMs(60_000);

/// Admissions that were reported as used lately, and admissions of ended leases.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RecentAdmissions {
    /// Admissions by the newest record time at which they were reported, in order.
    pub slots: Vec<(Timestamp, u32)>,
    /// Record time before which all reports are older than a second.
    pub second_from: Timestamp,
    /// Unused admissions of ended leases. They may be used until all clocks have passed the time.
    pub held: Vec<(Timestamp, u32)>,
    /// Oldest minute whose admissions may still be used. Those before have all been counted.
    pub open_from: Minute,
}

impl RecentAdmissions {
    fn add(&mut self, count: u64, now: Timestamp) {
        let Ok(count) = u32::try_from(count.min(u32::MAX.into())) else {
            return;
        };
        if count == 0 {
            return;
        }
        let slot = |at: Timestamp| at.0 / SLOT.0;
        match self.slots.last_mut() {
            Some((at, sum)) if slot(*at) == slot(now) => {
                *at = now;
                *sum = sum.saturating_add(count);
            }
            _ => self.slots.push((now, count)),
        }
    }

    /// Merges slots that no second needs any more, each into a later one.
    fn merge(&mut self) {
        let slot = |at: Timestamp| at.0 / SLOT_LATER.0;
        let second_from = self.second_from;
        let excess = self.slots.len().saturating_sub(SLOTS_MAX);
        let mut merged: Vec<(Timestamp, u32)> = Vec::with_capacity(self.slots.len());
        for (index, &(at, count)) in self.slots.iter().enumerate() {
            match merged.last_mut() {
                Some((before, sum))
                    if index <= excess || (at < second_from && slot(*before) == slot(at)) =>
                {
                    *before = at;
                    *sum = sum.saturating_add(count);
                }
                _ => merged.push((at, count)),
            }
        }
        self.slots = merged;
    }

    fn sum_from(&self, from: Timestamp) -> u64 {
        let counted = self.slots.iter().filter(|(at, _)| *at >= from);
        counted.map(|&(_, count)| u64::from(count)).sum()
    }

    fn held_total(&self) -> u64 {
        self.held.iter().map(|&(_, count)| u64::from(count)).sum()
    }
}

impl Ledger {
    /// Learns from a child which reports are older than a window. What it says counts for the
    /// present server only: another one may have forgotten some of them.
    pub(super) fn note_passed_windows(&mut self, request: &SyncRequest) {
        let names_this = request.parent == Some(self.incarnation);
        if !names_this || request.stamp.store != Some(self.store.identity) {
            return;
        }
        let passed = request.stamp.passed;
        if let Some(second) = passed.second {
            self.recent.second_from = self.recent.second_from.max(second);
        }
        if let Some(minute) = passed.minute {
            self.recent.slots.retain(|(at, _)| *at >= minute);
        }
    }

    /// Counts the admissions in a report that the record did not have. `returned` is the record of
    /// its child if that had departed.
    pub(super) fn count_used(&mut self, request: &SyncRequest, returned: Option<&DepartedChild>) {
        if self.upstream.is_some() {
            return;
        }
        let child = self.children.get(&request.child);
        let known = child.map(|child| child.admitted.as_slice());
        let known = known.or_else(|| returned.map(|gone| gone.admitted.as_slice()));
        let known = known.unwrap_or_default();
        let before = |minute| {
            let known = known.iter().find(|(of, _)| *of == minute);
            known.map_or(0, |(_, count)| *count)
        };
        // A record that came back may lack the grant, and then it never counted it as ended.
        let may_lack = self.probation.is_some() && child.is_none_or(|child| !child.has_reported);
        let open_from = self.recent.open_from;
        let uncounted = request.admitted.iter();
        let uncounted = uncounted.filter(|(minute, _)| may_lack || *minute >= open_from);
        let used =
            uncounted.map(|&(minute, count)| u64::from(count.saturating_sub(before(minute))));
        let used = used.sum();
        self.recent.add(used, self.as_of);
    }

    /// Keeps the unused admissions of a lease that ends: its child may not know that yet.
    pub(super) fn hold_admissions(&mut self, child: &Child) {
        if self.upstream.is_some() {
            return;
        }
        for (minute, count) in child.balance.by_minute() {
            if count > 0 && minute >= self.recent.open_from {
                let until = child.ends_at_child_at.min(minute.next().starts_at());
                self.recent.held.push((until, count));
            }
        }
    }

    /// Counts admissions as used that nobody can use any more: all clocks have passed the end of
    /// their minute or lease. Call it when the newest report has been recorded.
    pub(super) fn count_ended(&mut self) {
        if self.upstream.is_some() {
            return;
        }
        let agreed = self.agreed_now();
        let open_from = self.recent.open_from.max(agreed.minute());
        let still_open = self.sums.leased_from(open_from);
        let ended = self.sums.leased_from(self.recent.open_from) - still_open;
        let is_over = |(until, _): &(Timestamp, u32)| *until <= agreed;
        let held = self.recent.held.iter().filter(|held| is_over(held));
        let held: u64 = held.map(|&(_, count)| u64::from(count)).sum();
        self.recent.held.retain(|held| !is_over(held));
        self.recent.open_from = open_from;
        self.recent.add(ended + held, self.as_of);
        self.recent.merge();
    }

    /// Counts all admissions of a window as used, because the record does not show them.
    pub(super) fn count_unknown(&mut self) {
        if let Some(terms) = self.settings.filter(|_| self.upstream.is_none()) {
            let all = terms.limits.new_users_per_minute;
            self.recent.add(all.into(), self.as_of);
        }
    }

    /// Returns the admissions that may be granted now, whatever their minute, by the windows of
    /// true time. Below the root it is no limit.
    pub(super) fn admissions_in_windows(&self) -> u64 {
        let outstanding = self.sums.leased_from(self.recent.open_from);
        let (second, minute) = self.windows_left();
        second.min(minute).saturating_sub(outstanding)
    }

    /// Whether admissions come free little by little, and the children lack more than there are
    /// now. Those that are free are then kept for the other children who lack some.
    #[must_use]
    pub fn is_rationed(&self, at: Timestamp) -> bool {
        let unmet = self.sums.unmet().slots;
        let is_paced = self.settings.is_some_and(|terms| terms.pacing) && self.waiting_total() > 0;
        let is_gradual = is_paced || self.admissions_in_windows() <= unmet;
        is_gradual && u64::from(self.admissions_free(at, at.minute())) <= unmet
    }

    /// Whether a sliding minute has admissions left, or none is agreed on.
    pub(super) fn is_minute_open(&self) -> bool {
        let (_, minute) = self.windows_left();
        minute > self.sums.leased_from(self.recent.open_from)
    }

    /// Returns the admissions until `ahead` has passed, leased ones included: a forecast.
    pub(super) fn admissions_in_windows_within(&self, ahead: DurationMs) -> u64 {
        let (second, minute) = self.windows_left();
        let limits = self.settings.map(|terms| terms.limits);
        let each = limits.map_or(0, |limits| u64::from(limits.admissions_per_second()));
        let more = (each * ahead.0) / SECOND_IN_PRACTICE.0;
        let until = (self.as_of + ahead) - SLIDING_WINDOW;
        let passed = self.recent.sum_from(Timestamp::ZERO) - self.recent.sum_from(until);
        second
            .saturating_add(more)
            .min(minute.saturating_add(passed))
    }

    /// Returns the admissions that are left in the last second and in the last minute, leased ones
    /// included.
    fn windows_left(&self) -> (u64, u64) {
        let is_limit = |terms: &crate::sync::RoomFacts| !terms.needs_traffic;
        let terms = self.settings.filter(is_limit);
        let Some(terms) = terms.filter(|_| self.upstream.is_none()) else {
            return (u64::MAX, u64::MAX);
        };
        let left = |limit: u32, used: u64| {
            u64::from(limit).saturating_sub(used + self.recent.held_total())
        };
        let limits = terms.limits;
        let second = self.recent.sum_from(self.recent.second_from);
        let minute = match terms.window {
            NewUsersWindow::Minute => u64::MAX,
            NewUsersWindow::Sliding => {
                let all = self.recent.sum_from(Timestamp::ZERO);
                left(limits.new_users_per_minute, all)
            }
        };
        (left(limits.admissions_per_second(), second), minute)
    }
}
