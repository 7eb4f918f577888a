//! Grants: how much a child gets of what it requests.
//!
//! A child gets all that it requests while enough is free, and an equal share of the rest when it
//! is not, so that no child gets all of the last seats. Renewal credits are not scarce: an extended
//! seat is counted already.

use super::children::QUIET_AFTER;
use super::sums::Unmet;
use super::{LeaseTerms, Ledger, Upstream};
use crate::sync::{LeaseBalance, LeaseDemand, Reply, SyncRequest};
use crate::time::{DurationMs, Minute, Timestamp};

/// Admissions granted ahead of an even pace: one sync period and the time until the next refresh.
const PACE_AHEAD: DurationMs = DurationMs(500);

/// Most credits granted to one child at once: far more than it can use.
const CREDITS_MAX: u32 = 100_000_000;

impl Ledger {
    /// Extends the child's lease and grants what can be granted.
    pub(super) fn grant_lease(
        &mut self,
        request: &SyncRequest,
        lease_terms: LeaseTerms,
        now: Timestamp,
    ) -> Reply {
        let ttl = self.ttl(request, lease_terms);
        let granted = self.grant(request);
        let longest_seat = self.longest_grantable_seat();
        self.update_child_lease(request.child, |child| {
            // Its record may outlive its lease: its demand should be known all the same.
            child.ends_at = now + lease_terms.ttl;
            child.ends_at_child_at = child.ends_at_child_at.max(request.sent_at + ttl);
            child.quiet_at = now + QUIET_AFTER;
            // Admissions of the minute before are reported by now, or were not used.
            child
                .balance
                .turn_to(granted.minute.max(child.balance.minute));
            child.balance.seats += granted.seats;
            let first = child.demand.movers_now.min(granted.seats);
            child.demand.movers_now -= first;
            child.demand.movers_reserved += first;
            child.balance.credits += granted.credits;
            child.balance.add_admissions(&granted);
            child.granted = granted;
            child.longest_seat = child.longest_seat.max(longest_seat);
        });
        self.sums.next_end = self.sums.next_end.min(now + lease_terms.ttl);
        self.sums.next_quiet = self.sums.next_quiet.min(now + QUIET_AFTER);
        if let Some(upstream) = &mut self.upstream {
            upstream.grant(granted, now);
        }
        if self.upstream.is_none() {
            self.sums.refresh_compact_queue();
        }
        Reply::Granted(self.lease_reply(request, granted, ttl, now))
    }

    /// Returns the reply to a goodbye: no lease.
    pub(super) fn goodbye_reply(&self, request: &SyncRequest, now: Timestamp) -> Reply {
        Reply::Granted(self.lease_reply(request, LeaseBalance::default(), DurationMs::ZERO, now))
    }

    /// Returns the length of a lease: never longer than the one that it is granted from.
    fn ttl(&self, request: &SyncRequest, lease_terms: LeaseTerms) -> DurationMs {
        match &self.upstream {
            Some(upstream) => lease_terms
                .ttl
                .min(upstream.left(self.clock_at.max(request.sent_at))),
            None => lease_terms.ttl,
        }
    }

    /// Returns the longest seat that may be given under a lease of this ledger.
    pub(super) fn longest_grantable_seat(&self) -> DurationMs {
        let longest = self
            .settings
            .map_or(DurationMs::ZERO, |terms| terms.longest_seat);
        match &self.upstream {
            Some(upstream) => longest.min(upstream.lease.longest_seat()),
            None => longest,
        }
    }

    fn grant(&self, request: &SyncRequest) -> LeaseBalance {
        let minute = request.sent_at.minute();
        let nothing = LeaseBalance {
            minute,
            ..LeaseBalance::default()
        };
        let Some(child) = self
            .children
            .get(&request.child)
            .filter(|child| child.is_safe)
        else {
            return nothing;
        };
        let at = self.clock_at.max(request.sent_at);
        let is_over = |up: &Upstream| !up.lease.is_live(at);
        if self.upstream.as_deref().is_some_and(is_over) {
            return nothing;
        }
        let leased_admissions = child.balance.admissions_of(minute);
        let leased_ahead = child.balance.admissions_of(minute.next());
        let wanted = |held: u32| request.demand.slots.saturating_sub(held);
        let wanted_ahead = request.demand.next_minute.saturating_sub(leased_ahead);
        let free = self.seats_free();
        let first = request.demand.movers_now.min(free);
        let wanted_credits = request.demand.credits.min(CREDITS_MAX);
        let credits = wanted_credits.saturating_sub(child.balance.credits);
        let others = self.sums.unmet().without(Unmet::of(child));
        let admissions_free = self.admissions_free(request.sent_at, minute);
        let ahead_free = self.admissions_free(request.sent_at, minute.next());
        // A seat without an admission admits no visitor, nor an admission without a seat: other
        // children would miss them.
        let leased_seats = child.seats_to_admit();
        let seats = share(self.seats_to_admit(), wanted(leased_seats), others);
        let admissions = share(admissions_free, wanted(leased_admissions), others);
        let pairs = (leased_seats + seats).min(leased_admissions + admissions);
        let granted = LeaseBalance {
            seats: first + seats.min(pairs.saturating_sub(leased_seats)),
            admissions: admissions.min(pairs.saturating_sub(leased_admissions)),
            next_minute: share(ahead_free, wanted_ahead, others),
            minute,
            credits: match &self.upstream {
                Some(upstream) => credits.min(upstream.lease.balance().credits),
                None => credits,
            },
        };
        debug_assert!(
            granted.seats <= free
                && granted.admissions <= admissions_free
                && granted.next_minute <= ahead_free,
            "a grant was free"
        );
        // All of them may be used in the second around the turn of the minute.
        let windows = self.admissions_in_windows();
        let ahead = saturating_u32(windows.saturating_sub(granted.admissions.into()));
        LeaseBalance {
            next_minute: granted.next_minute.min(ahead),
            ..granted
        }
    }

    /// Returns what the children lack of their demand.
    #[must_use]
    pub fn unmet(&self) -> LeaseDemand {
        let unmet = self.sums.unmet();
        LeaseDemand {
            slots: saturating_u32(unmet.slots),
            movers_now: saturating_u32(unmet.first),
            movers_expected: saturating_u32(unmet.later),
            credits: saturating_u32(unmet.credits),
            // They come along with slots; no child requests them alone.
            next_minute: 0,
            movers_reserved: 0,
        }
    }

    /// Returns the seats that may be granted: neither taken, nor possibly taken, nor leased.
    #[must_use]
    pub fn seats_free(&self) -> u32 {
        if let Some(upstream) = &self.upstream {
            return upstream.lease.balance().seats;
        }
        let Some(terms) = self.settings.filter(|_| self.is_open()) else {
            return 0;
        };
        let taken = u64::from(self.active()) + u64::from(self.phantoms()) + self.seats_leased();
        // After the limit was lowered more may be taken than it allows.
        saturating_u32(u64::from(terms.limits.total_active_users).saturating_sub(taken))
    }

    /// Returns the free seats without those kept for active visitors who lack a seat in their
    /// present data center.
    #[must_use]
    pub fn seats_to_admit(&self) -> u32 {
        if self.owes_seats_to_others() {
            return 0;
        }
        let claims = saturating_u32(self.sums.unmet().claims());
        self.seats_free().saturating_sub(claims)
    }

    /// Whether free seats of this data center belong to active visitors in another one, by the
    /// root's last reply.
    pub(super) fn owes_seats_to_others(&self) -> bool {
        let claims = self.sums.unmet().claims();
        self.upstream.as_deref().is_some_and(|upstream| {
            upstream.is_snapshot_fresh(self.as_of)
                && u64::from(upstream.snapshot.seats_owed) > claims
        })
    }

    /// Returns the admissions of `minute` that may be granted at `at`.
    #[must_use]
    pub fn admissions_free(&self, at: Timestamp, minute: Minute) -> u32 {
        if let Some(upstream) = &self.upstream {
            return upstream.lease.balance().admissions_of(minute);
        }
        let used = u64::from(self.admitted_in(minute)) + self.admissions_leased(minute);
        if minute < self.recent.open_from {
            return 0;
        }
        let left = self
            .admissions_allowed(at + PACE_AHEAD, minute)
            .saturating_sub(used);
        saturating_u32(left.min(self.admissions_in_windows()))
    }

    /// Whether a second's admissions are used up, while the minute has more and nobody waits.
    pub(super) fn is_second_used_up(&self, at: Timestamp) -> bool {
        let minute = at.minute();
        if self.upstream.is_some()
            || self.waiting_total() > 0
            || self.admissions_free(at, minute) > 0
        {
            return false;
        }
        let used = u64::from(self.admitted_in(minute)) + self.admissions_leased(minute);
        let has_more = self.admissions_allowed(at, minute) > used;
        has_more && minute >= self.recent.open_from && self.is_minute_open()
    }

    /// Returns the admissions of `minute` in the children's balances.
    pub(super) fn admissions_leased(&self, minute: Minute) -> u64 {
        self.sums.leased_admissions(minute)
    }

    /// Returns the admissions of `minute` that may have been used by `at`.
    ///
    /// Paced while visitors wait: the minute's elapsed share of the limit, rounded up so that a
    /// limit of one a minute does not wait for the minute's end. Zero for a minute that is
    /// forgotten, or that no clock has reached.
    pub(super) fn admissions_allowed(&self, at: Timestamp, minute: Minute) -> u64 {
        let Some(terms) = self.settings.filter(|_| self.is_open()) else {
            return 0;
        };
        let running = self.clock_at.minute();
        if minute > running.next() || minute < self.agreed_now().minute().previous() {
            return 0;
        }
        let rate = u64::from(terms.limits.new_users_per_minute);
        if terms.pacing && self.waiting_total() > 0 {
            let elapsed = at.since(minute.starts_at()).0.min(60_000);
            (rate * elapsed).div_ceil(60_000)
        } else {
            rate
        }
    }
}

/// Returns one child's grant of `free`: all that it requests while there is enough for every child,
/// an equal share when there is not.
fn share(free: u32, wanted: u32, others: Unmet) -> u32 {
    if wanted == 0 || free == 0 {
        return 0;
    }
    let count = others.children.saturating_add(1);
    let sum = saturating_u32(others.slots.saturating_add(wanted.into()));
    if sum <= free {
        wanted
    } else {
        wanted.min(free.div_ceil(count))
    }
}

pub(super) fn saturating_u32(figure: u64) -> u32 {
    u32::try_from(figure).unwrap_or(u32::MAX)
}
