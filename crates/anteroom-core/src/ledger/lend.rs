//! How much is lent to a child that asks.
//!
//! A child gets what it wants while there is plenty, and an equal part of the rest when there is
//! not, so that the last seats are not all in one pocket. Renewal credits are not scarce: a
//! prolonged seat is counted already.

use super::{Ledger, LendingTerms};
use crate::id::NodeId;
use crate::sync::{Held, Reply, SyncRequest};
use crate::time::{Millis, Minute, Span};

/// Admissions are lent so far ahead of an even pace: one sync period and the time until the next
/// visitor asks.
const PACE_AHEAD: Span = Span(500);

/// Most credits that are lent to one child at once. A crash turns the unused ones into phantom
/// seats.
const CREDITS_MAX: u32 = 100_000;

impl Ledger {
    /// Prolongs the child's lease and grants what can be granted.
    pub(super) fn lend(
        &mut self,
        request: &SyncRequest,
        lending: LendingTerms,
        now: Millis,
    ) -> Reply {
        let ends_at = (now + lending.ttl).min(lending.ends_by);
        let minute = now.minute();
        let granted = self.grant(request, now);
        let inherited = core::mem::take(&mut self.left_waiting.counts);
        if let Some(child) = self.children.get_mut(&request.child) {
            child.ends_at = ends_at;
            if child.held.minute != minute {
                child.held.admissions = 0;
                child.held.minute = minute;
            }
            child.held.seats += granted.seats;
            child.held.admissions += granted.admissions;
            child.held.credits += granted.credits;
            if let Some(terms) = self.terms {
                child.longest_seat = child.longest_seat.max(terms.longest_seat);
            }
            for (&rank, &count) in &inherited {
                *child.waiting.entry(rank).or_insert(0) += count;
            }
            child.handed.clone_from(&inherited);
        }
        let mut answer = self.answer(request, granted, ends_at.since(now), now);
        answer.inherited = inherited;
        Reply::Lent(answer)
    }

    /// The reply to a goodbye: nothing is lent.
    pub(super) fn farewell(&self, request: &SyncRequest, now: Millis) -> Reply {
        Reply::Lent(self.answer(request, Held::default(), Span::ZERO, now))
    }

    fn grant(&self, request: &SyncRequest, now: Millis) -> Held {
        let minute = now.minute();
        let node = request.child;
        let Some(child) = self.children.get(&node) else {
            return Held::default();
        };
        let admissions_held = if child.held.minute == minute {
            child.held.admissions
        } else {
            0
        };
        let wanted = |held: u32| request.wants.slots.saturating_sub(held);
        let wanted_credits = request.wants.credits.min(CREDITS_MAX);
        Held {
            seats: self.part(self.seats_free(), wanted(child.held.seats), node),
            admissions: self.part(self.admissions_free(now), wanted(admissions_held), node),
            minute,
            credits: if self.reopens_at.is_some() {
                0
            } else {
                wanted_credits.saturating_sub(child.held.credits)
            },
        }
    }

    /// What one of several children gets of `free`: all that it wants while there is enough for
    /// everybody, an equal part among those who want something when there is not.
    fn part(&self, free: u32, wanted: u32, node: NodeId) -> u32 {
        let others = self.children.iter().filter(|(other, _)| **other != node);
        let unmet = others.map(|(_, child)| child.wants.saturating_sub(child.held.seats));
        let in_want = unmet.filter(|unmet| *unmet > 0);
        let (count, sum) = in_want.fold((1u32, wanted), |(count, sum), unmet| {
            (count + 1, sum.saturating_add(unmet))
        });
        if sum <= free {
            wanted
        } else {
            wanted.min(free.div_ceil(count))
        }
    }

    /// Seats that may be lent: neither taken, nor possibly taken, nor lent.
    pub(super) fn seats_free(&self) -> u32 {
        let Some(terms) = self.terms.filter(|_| self.reopens_at.is_none()) else {
            return 0;
        };
        let taken = u64::from(self.inside()) + u64::from(self.phantoms()) + self.seats_lent();
        saturating_u32(u64::from(terms.limits.total_active_users).saturating_sub(taken))
    }

    /// Admissions that may be lent now.
    pub(super) fn admissions_free(&self, now: Millis) -> u32 {
        let minute = now.minute();
        let lent: u64 = self
            .children
            .values()
            .filter(|child| child.held.minute == minute)
            .map(|child| u64::from(child.held.admissions))
            .sum();
        let used = u64::from(self.admitted_in(minute)) + lent;
        saturating_u32(
            self.admissions_allowed(now + PACE_AHEAD, minute)
                .saturating_sub(used),
        )
    }

    /// Admissions of `minute` that may have been used by `at`.
    ///
    /// Paced while people wait: the minute's share of the limit so far, rounded up so that a limit
    /// of one a minute is not spent waiting for the minute's end.
    pub(super) fn admissions_allowed(&self, at: Millis, minute: Minute) -> u64 {
        let Some(terms) = self.terms.filter(|_| self.reopens_at.is_none()) else {
            return 0;
        };
        let rate = u64::from(terms.limits.new_users_per_minute);
        if terms.pacing && self.waiting_total() > 0 {
            let elapsed = at.since(minute.starts_at()).0.min(60_000);
            (rate * elapsed).div_ceil(60_000)
        } else {
            rate
        }
    }
}

fn saturating_u32(figure: u64) -> u32 {
    u32::try_from(figure).unwrap_or(u32::MAX)
}
