//! Who shares one limit, and how many of its calls does each get now?
//!
//! Facts come in by `handle_*`. When [`QuotaLedger::is_due`], its owner looks how much is left of
//! the limit, asks for a [`QuotaLedger::plan`], charges what that takes in one call, and tells the
//! verdict ([`QuotaLedger::handle_verdict`]), which makes it assignments. All times are those of
//! one clock that never goes back.
//!
//! # Invariants
//!
//! - What is assigned was charged before, in the window in which it can be spent.
//! - A smaller assignment gives nothing back: what was charged stays charged until its window is
//!   over. So nobody gets more on the word of somebody else that it will take less.
//! - Whoever wants something gets some of what is left, unless it holds something.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::policy::Policy;
use crate::rate::Rate;
use crate::time::{DurationUs, TimestampUs};
use crate::verdict::Verdict;

use crate::quota::lasting::{self, MARGIN, seconds_until};
use crate::quota::level::{QuotaDemand, parts};
use crate::quota::member::{AHEAD, Member};

/// Whoever found nothing asks again after so long: a limit may have been raised. The end of a
/// window is waited for.
const ASK_EVERY: DurationUs = DurationUs::from_secs(1);

/// After others were faster for more than [`TRIES_AT_ONCE`].
const TRY_AGAIN_AFTER: DurationUs = DurationUs(50_000);

/// So often it is tried again at once when others were faster, each time for half as much.
const TRIES_AT_ONCE: u32 = 4;

/// So long before calls are over, they are replaced.
const BEFORE_THE_END: DurationUs = DurationUs(300_000);

/// For how long nothing is assigned to whoever can be assigned nothing; until something can be,
/// which is told at once.
const NOTHING_FOR_SECONDS: u32 = 60;

/// One of those who share a limit: a bucket at one end of one stream.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct MemberId(pub u64);

/// How a limit stands.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Calls that are left.
    pub calls: u32,
    /// The limit.
    pub limit: Rate,
    /// How long the window still takes, about.
    pub ends_in: DurationUs,
}

/// What is to be charged, and for whom.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Plan {
    shares: Vec<(MemberId, u32)>,
    /// What somebody let through whom nobody had assigned it.
    unpaid: u32,
}

impl Plan {
    /// How many calls are to be charged.
    #[must_use]
    pub fn calls(&self) -> u32 {
        let shares = self.shares.iter().map(|(_, calls)| *calls);
        shares.fold(self.unpaid, u32::saturating_add)
    }
}

/// What a member is told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Assignment {
    /// Whom.
    pub member: MemberId,
    /// How many calls it may let through; what it was assigned before is over. None at all if it is
    /// zero.
    pub calls: u32,
    /// For how many seconds.
    pub seconds: u32,
    /// Calls have to be spent by then; whoever tells it late tells fewer seconds.
    pub ends_at: TimestampUs,
}

/// Who shares one limit.
#[derive(Debug, Default)]
pub struct QuotaLedger {
    members: BTreeMap<MemberId, Member>,
    unpaid: u64,
    quiet_until: TimestampUs,
    /// How often in a row others were faster.
    tries: u32,
    /// Until when what members got is compared.
    compared_until: TimestampUs,
}

impl QuotaLedger {
    /// Somebody tells what it let through and what it refused since it last did. Whoever does so
    /// for the first time is a member from now on.
    pub fn handle_report(&mut self, member: MemberId, allowed: u64, denied: u64, now: TimestampUs) {
        let member = self
            .members
            .entry(member)
            .or_insert_with(|| Member::new(now));
        let unpaid = member.handle_report(allowed, denied, now);
        self.unpaid = self.unpaid.saturating_add(unpaid);
    }

    /// Calls went through that nobody charged, and whoever let them through is assigned nothing.
    pub fn handle_unpaid(&mut self, calls: u64) {
        self.unpaid = self.unpaid.saturating_add(calls);
    }

    /// Somebody is gone. What it holds it may still spend, and it stays charged.
    pub fn handle_gone(&mut self, member: MemberId) {
        self.members.remove(&member);
    }

    /// Whether nobody shares it any more, and nothing is to be charged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.unpaid == 0
    }

    /// How many share it.
    #[must_use]
    pub fn members(&self) -> usize {
        self.members.len()
    }

    /// Calls that are assigned and not known to be spent.
    #[must_use]
    pub fn held(&self, now: TimestampUs) -> u64 {
        self.members
            .values()
            .map(|member| u64::from(member.left(now)))
            .sum()
    }

    /// Whether it is to be looked now how the limit stands.
    #[must_use]
    pub fn is_due(&self, now: TimestampUs) -> bool {
        let is_told = |member: &Member| is_told(member, now);
        now >= self.quiet_until && (self.unpaid > 0 || self.members.values().any(is_told))
    }

    /// What is to be charged for whom. Without calls, there is nothing to be charged; but the plan
    /// is to be told to [`Self::handle_nothing`].
    #[must_use]
    pub fn plan(&mut self, room: Room, now: TimestampUs) -> Plan {
        self.compare_anew(room, now);
        // What does not fit is forgiven: it would take the place of what comes later.
        self.unpaid = self.unpaid.min(room.calls.into());
        let free = self.free(room.calls);
        let unpaid = u32::try_from(self.unpaid).map_or(free, |unpaid| unpaid.min(free));
        let Room { limit, ends_in, .. } = room;
        let lasts = DurationUs(ends_in.0.saturating_sub(MARGIN.0));
        if lasts < DurationUs::from_secs(1) {
            // It would be over before it arrives.
            self.quiet_until = now + if unpaid > 0 { TRY_AGAIN_AFTER } else { ends_in };
            let shares = Vec::new();
            return Plan { shares, unpaid };
        }
        let free = free - unpaid;
        let count = self.members.len();
        let wants = self.members.values().map(|member| {
            let is_told = is_told(member, now);
            // Who is told something new loses what it has.
            let has = if is_told { 0 } else { member.left(now) };
            let more = member.wants(lasts, limit, count).saturating_sub(has);
            let got = member.got;
            (QuotaDemand { got, more }, is_told)
        });
        let wants: Vec<_> = wants.collect();
        let parts = self.members.keys().zip(parts(&wants, free));
        let parts = parts.filter(|(_, part)| *part > 0);
        let shares = parts.map(|(id, part)| (*id, part)).collect();
        Plan { shares, unpaid }
    }

    /// What was planned could not be charged, or was nothing: whoever holds nothing is told so.
    /// `full_after` is what the look said: nothing comes free before, unless the limit changes.
    pub fn handle_nothing(&mut self, full_after: DurationUs, now: TimestampUs) -> Vec<Assignment> {
        self.tries = 0;
        if self.quiet_until <= now {
            let waits = match full_after {
                DurationUs::ZERO => TRY_AGAIN_AFTER,
                full_after => full_after.min(ASK_EVERY),
            };
            self.quiet_until = now + waits;
        }
        self.tell_nothing(now)
    }

    /// Nobody knows what became of the look or the charge: it is tried again after a while.
    /// Returned is who holds nothing meanwhile, or not for long.
    pub fn handle_failure(&mut self, now: TimestampUs) -> Vec<MemberId> {
        self.quiet_until = now + ASK_EVERY;
        let members = self.members.iter();
        let without = members.filter(|(_, member)| member.left(now) == 0 || ends_soon(member, now));
        without.map(|(id, _)| *id).collect()
    }

    /// What became of the charge of a plan: what members are to be told. `asked_at` is when it was
    /// sent out.
    #[must_use]
    pub fn handle_verdict(
        &mut self,
        plan: &Plan,
        (policy, verdict): (&Policy, &Verdict),
        (asked_at, now): (TimestampUs, TimestampUs),
    ) -> Vec<Assignment> {
        if !verdict.is_admitted() {
            // Others were faster. What is left is looked at again.
            self.tries += 1;
            let is_soon = self.tries <= TRIES_AT_ONCE;
            self.quiet_until = if is_soon { now } else { now + TRY_AGAIN_AFTER };
            return Vec::new();
        }
        self.tries = 0;
        self.unpaid = self.unpaid.saturating_sub(plan.unpaid.into());
        let ends_at = lasting::ends_at(policy, asked_at, verdict.full_after);
        let Some(seconds) = seconds_until(ends_at, now) else {
            // The window was over sooner than it seemed. What was charged is lost with it.
            self.quiet_until = now + verdict.full_after.min(ASK_EVERY);
            return self.tell_nothing(now);
        };
        let mut assignments = Vec::with_capacity(plan.shares.len());
        for &(id, calls) in &plan.shares {
            // Whoever is gone meanwhile is told nothing.
            let Some(member) = self.members.get_mut(&id) else {
                continue;
            };
            member.handle_assigned(calls, now, now + DurationUs::from_secs(seconds.into()));
            assignments.push(Assignment {
                member: id,
                calls,
                seconds,
                ends_at,
            });
        }
        assignments.extend(self.handle_nothing(verdict.full_after, now));
        if verdict.remaining > 0 {
            self.quiet_until = now;
        }
        assignments
    }

    /// Whoever holds nothing, or not for long, is told so: otherwise it would do what it does
    /// without an assignment.
    fn tell_nothing(&mut self, now: TimestampUs) -> Vec<Assignment> {
        let ends_at = now + DurationUs::from_secs(NOTHING_FOR_SECONDS.into());
        let members = self.members.iter_mut();
        let over = members.filter(|(_, member)| ends_soon(member, now));
        let told = over.map(|(id, member)| {
            member.handle_assigned(0, now, ends_at);
            Assignment {
                member: *id,
                calls: 0,
                seconds: NOTHING_FOR_SECONDS,
                ends_at,
            }
        });
        told.collect()
    }

    /// How many of the calls that are left are tried for. A charge is for all of them or for none;
    /// and where others take calls one by one, all that were left are not left any more when it
    /// arrives.
    fn free(&self, left: u32) -> u32 {
        let part = left.checked_shr(self.tries).unwrap_or(0);
        part.max(left.min(1))
    }

    /// What members got is compared within a window, and within a minute of a long one.
    fn compare_anew(&mut self, room: Room, now: TimestampUs) {
        if now >= self.compared_until {
            self.compared_until = now + room.ends_in.min(AHEAD);
            self.tries = 0;
            for member in self.members.values_mut() {
                member.got = 0;
            }
        }
    }
}

/// Whether it is to be told something new.
fn is_told(member: &Member, now: TimestampUs) -> bool {
    member.is_short(now) || ends_soon(member, now)
}

fn ends_soon(member: &Member, now: TimestampUs) -> bool {
    let held = member.held.as_ref();
    held.is_none_or(|held| held.ends_at <= now + BEFORE_THE_END)
}

#[cfg(test)]
mod tests;
