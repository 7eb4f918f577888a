//! How much is lent to a child that asks.
//!
//! A child gets what it wants while there is plenty, and an equal part of the rest when there is
//! not, so that the last seats are not all in one pocket. Renewal credits are not scarce: a
//! prolonged seat is counted already.

use super::children::QUIET_AFTER;
use super::sums::Unmet;
use super::{LeaseTerms, Ledger, Upstream};
use crate::sync::{LeaseBalance, LeaseDemand, Reply, SyncRequest};
use crate::time::{DurationMs, Minute, Timestamp};

/// Admissions are lent so far ahead of an even pace: one sync period and the time until the next
/// visitor asks.
const PACE_AHEAD: DurationMs = DurationMs(500);

/// Most credits that are lent to one child at once: far more than it can use.
const CREDITS_MAX: u32 = 100_000_000;

impl Ledger {
    /// Prolongs the child's lease and grants what can be granted.
    pub(super) fn lend(
        &mut self,
        request: &SyncRequest,
        lending: LeaseTerms,
        now: Timestamp,
    ) -> Reply {
        let ttl = self.ttl(request, lending);
        let granted = self.grant(request);
        let inherited = self.take_left_waiting();
        let longest_seat = self.longest_to_lend();
        self.lend_to_child(request.child, &inherited, |child| {
            // Its record may outlive its lease: what it wants is to be known all the same.
            child.ends_at = now + lending.ttl;
            child.ends_there_at = request.sent_at + ttl;
            child.quiet_at = now + QUIET_AFTER;
            // What was lent of the minute before is reported by now, or was not used.
            child.held.turn_to(granted.minute.max(child.held.minute));
            child.held.seats += granted.seats;
            let first = child.wants.first.min(granted.seats);
            child.wants.first -= first;
            child.wants.kept += first;
            child.held.credits += granted.credits;
            child.held.add_admissions(&granted);
            child.longest_seat = child.longest_seat.max(longest_seat);
        });
        self.sums.next_end = self.sums.next_end.min(now + lending.ttl);
        self.sums.next_quiet = self.sums.next_quiet.min(now + QUIET_AFTER);
        if let Some(upstream) = &mut self.upstream {
            upstream.hand_on(granted, now);
        }
        if self.upstream.is_none() {
            self.sums.refresh_line();
        }
        let mut answer = self.answer(request, granted, ttl, now);
        answer.inherited = inherited;
        Reply::Granted(answer)
    }

    /// The reply to a goodbye: nothing is lent.
    pub(super) fn farewell(&self, request: &SyncRequest, now: Timestamp) -> Reply {
        Reply::Granted(self.answer(request, LeaseBalance::default(), DurationMs::ZERO, now))
    }

    /// How long a lease runs: never longer than the one under which it is lent.
    fn ttl(&self, request: &SyncRequest, lending: LeaseTerms) -> DurationMs {
        match &self.upstream {
            Some(upstream) => lending
                .ttl
                .min(upstream.left(self.heard_at.max(request.sent_at))),
            None => lending.ttl,
        }
    }

    /// The longest seat that may be given under a lease of this ledger.
    pub(super) fn longest_to_lend(&self) -> DurationMs {
        let longest = self
            .terms
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
        let Some(child) = self.children.get(&request.child) else {
            return nothing;
        };
        let at = self.heard_at.max(request.sent_at);
        let is_over = |up: &Upstream| !up.lease.is_live(at);
        if self.upstream.as_deref().is_some_and(is_over) {
            return nothing;
        }
        let admissions_held = child.held.admissions_of(minute);
        let ahead_held = child.held.admissions_of(minute.next());
        let wanted = |held: u32| request.wants.slots.saturating_sub(held);
        let wanted_ahead = request.wants.ahead.saturating_sub(ahead_held);
        let free = self.seats_free();
        let first = request.wants.first.min(free);
        let wanted_credits = request.wants.credits.min(CREDITS_MAX);
        let credits = wanted_credits.saturating_sub(child.held.credits);
        let others = self.sums.unmet().without(Unmet::of(child));
        let admissions_free = self.admissions_free(request.sent_at, minute);
        let ahead_free = self.admissions_free(request.sent_at, minute.next());
        // A seat without an admission lets nobody in, nor an admission without a seat: they would
        // only be missing elsewhere.
        let seats_held = child.seats_to_admit();
        let seats = part(self.seats_to_admit(), wanted(seats_held), others);
        let admissions = part(admissions_free, wanted(admissions_held), others);
        let pairs = (seats_held + seats).min(admissions_held + admissions);
        let granted = LeaseBalance {
            seats: first + seats.min(pairs.saturating_sub(seats_held)),
            admissions: admissions.min(pairs.saturating_sub(admissions_held)),
            ahead: part(ahead_free, wanted_ahead, others),
            minute,
            credits: match &self.upstream {
                Some(upstream) => credits.min(upstream.lease.held().credits),
                None => credits,
            },
        };
        debug_assert!(
            granted.seats <= free
                && granted.admissions <= admissions_free
                && granted.ahead <= ahead_free,
            "what is lent was free"
        );
        granted
    }

    /// What the children would like to hold and do not.
    #[must_use]
    pub fn unmet(&self) -> LeaseDemand {
        let unmet = self.sums.unmet();
        LeaseDemand {
            slots: saturating_u32(unmet.slots),
            first: saturating_u32(unmet.first),
            later: saturating_u32(unmet.later),
            credits: saturating_u32(unmet.credits),
            // They come along with slots, and nobody asks for them alone.
            ahead: 0,
            kept: 0,
        }
    }

    /// Seats that may be lent: neither taken, nor possibly taken, nor lent.
    #[must_use]
    pub fn seats_free(&self) -> u32 {
        if let Some(upstream) = &self.upstream {
            return upstream.lease.held().seats;
        }
        let Some(terms) = self.terms.filter(|_| self.reserve.is_none()) else {
            return 0;
        };
        let taken = u64::from(self.inside()) + u64::from(self.phantoms()) + self.seats_lent();
        // After the limit was lowered more may be taken than it allows.
        saturating_u32(u64::from(terms.limits.total_active_users).saturating_sub(taken))
    }

    /// Those of them that are not kept for visitors who are inside and lack a seat where they are.
    #[must_use]
    pub fn seats_to_admit(&self) -> u32 {
        if self.owes_elsewhere() {
            return 0;
        }
        let claims = saturating_u32(self.sums.unmet().claims());
        self.seats_free().saturating_sub(claims)
    }

    /// Whether a seat that this data center has no use for belongs to somebody who is inside and in
    /// another one, as the world said.
    pub(super) fn owes_elsewhere(&self) -> bool {
        let claims = self.sums.unmet().claims();
        self.upstream.as_deref().is_some_and(|upstream| {
            upstream.is_snapshot_fresh(self.as_of)
                && u64::from(upstream.snapshot.seats_owed) > claims
        })
    }

    /// Admissions of `minute` that may be lent at `at`.
    #[must_use]
    pub fn admissions_free(&self, at: Timestamp, minute: Minute) -> u32 {
        if let Some(upstream) = &self.upstream {
            return upstream.lease.held().admissions_of(minute);
        }
        let used = u64::from(self.admitted_in(minute)) + self.admissions_lent(minute);
        saturating_u32(
            self.admissions_allowed(at + PACE_AHEAD, minute)
                .saturating_sub(used),
        )
    }

    /// Admissions of `minute` that children hold.
    pub(super) fn admissions_lent(&self, minute: Minute) -> u64 {
        self.sums.admissions_held(minute)
    }

    /// Admissions of `minute` that may have been used by `at`.
    ///
    /// Paced while people wait: the minute's share of the limit so far, rounded up so that a limit
    /// of one a minute is not spent waiting for the minute's end. Of a minute that is forgotten, or
    /// that no clock has reached, there are none.
    pub(super) fn admissions_allowed(&self, at: Timestamp, minute: Minute) -> u64 {
        let Some(terms) = self.terms.filter(|_| self.reserve.is_none()) else {
            return 0;
        };
        let running = self.heard_at.minute();
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

/// What one of several children gets of `free`: all that it wants while there is enough for
/// everybody, an equal part among those who want something when there is not.
fn part(free: u32, wanted: u32, others: Unmet) -> u32 {
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
