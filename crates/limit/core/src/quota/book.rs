//! Ledger of one limit: its members, and how many requests each gets.
//!
//! Facts come in by `handle_*`. When [`QuotaLedger::is_due`], the owner reads how much of the limit
//! is left and calls [`QuotaLedger::plan`]. It takes the planned requests from the limit in one
//! step and passes the verdict to [`QuotaLedger::handle_verdict`], which returns assignments. All
//! times are those of one monotonic clock.
//!
//! # Invariants
//!
//! - Whatever is assigned was taken before, in the window in which it can be spent.
//! - A smaller assignment frees nothing: what was taken stays taken until its window ends. So no
//!   member gets more because another one promises to take less.
//! - A member with demand gets some of what is left, unless it still has an assignment.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::policy::Policy;
use crate::rate::Rate;
use crate::time::{DurationUs, TimestampUs};
use crate::verdict::Verdict;

use crate::quota::fair_share::{QuotaDemand, parts};
use crate::quota::lifetime::{self, MARGIN, seconds_until};
use crate::quota::member::{AHEAD, Member};

/// Time until the next try when nothing was left, as the limit may be raised. The end of a window
/// comes first if it is sooner.
const RETRY_EVERY: DurationUs = DurationUs::from_secs(1);

/// Pause after other clients were faster more than [`TRIES_AT_ONCE`] times.
const RACE_PAUSE: DurationUs = DurationUs(50_000);

/// Immediate tries when other clients were faster, each for half as many requests.
const TRIES_AT_ONCE: u32 = 4;

/// Time before the end of an assignment at which it is replaced.
const REPLACE_BEFORE_END: DurationUs = DurationUs(300_000);

/// Length of an empty assignment, in seconds. A non-empty one replaces it at once.
const EMPTY_FOR_SECONDS: u32 = 60;

/// Member of a limit: a bucket at one end of one stream.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct MemberId(pub u64);

/// Limit as read from the store.
#[derive(Clone, Copy, Debug)]
pub struct LimitStatus {
    /// Requests that are left.
    pub requests: u32,
    /// Rate of the limit.
    pub limit: Rate,
    /// Approximate time until the window ends.
    pub ends_in: DurationUs,
}

/// Requests to take from the limit, by member.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Plan {
    shares: Vec<(MemberId, u32)>,
    /// Requests that were allowed without an assignment.
    unassigned: u32,
}

impl Plan {
    /// Returns how many requests to take from the limit.
    #[must_use]
    pub fn requests(&self) -> u32 {
        let shares = self.shares.iter().map(|(_, calls)| *calls);
        shares.fold(self.unassigned, u32::saturating_add)
    }
}

/// Assignment for one member.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Assignment {
    /// Receiver.
    pub member: MemberId,
    /// Requests that it may allow. They replace its previous assignment; zero allows none.
    pub requests: u32,
    /// Length in seconds.
    pub seconds: u32,
    /// Time until which the requests must be spent. A sender that is late sends fewer seconds.
    pub ends_at: TimestampUs,
}

/// Ledger of one limit.
#[derive(Debug, Default)]
pub struct QuotaLedger {
    members: BTreeMap<MemberId, Member>,
    unassigned: u64,
    quiet_until: TimestampUs,
    /// Number of consecutive tries in which others were faster.
    tries: u32,
    /// End of the period in which assignments of members are compared.
    compared_until: TimestampUs,
}

impl QuotaLedger {
    /// Records requests that a member allowed and denied since its last report. Its first report
    /// makes it a member.
    pub fn handle_report(&mut self, member: MemberId, allowed: u64, denied: u64, now: TimestampUs) {
        let member = self
            .members
            .entry(member)
            .or_insert_with(|| Member::new(now));
        let unassigned = member.handle_report(allowed, denied, now);
        self.unassigned = self.unassigned.saturating_add(unassigned);
    }

    /// Records requests that were allowed without being taken from the limit, by a client without
    /// assignments.
    pub fn handle_unassigned(&mut self, calls: u64) {
        self.unassigned = self.unassigned.saturating_add(calls);
    }

    /// Removes a member. It may still spend its assignment, which stays taken.
    pub fn handle_departure(&mut self, member: MemberId) {
        self.members.remove(&member);
    }

    /// Whether there are no members and nothing is left to take.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.unassigned == 0
    }

    /// Returns the number of members.
    #[must_use]
    pub fn members(&self) -> usize {
        self.members.len()
    }

    /// Returns the requests that are assigned and not reported as spent.
    #[must_use]
    pub fn assigned(&self, now: TimestampUs) -> u64 {
        self.members
            .values()
            .map(|member| u64::from(member.left(now)))
            .sum()
    }

    /// Whether the owner must read the limit now.
    #[must_use]
    pub fn is_due(&self, now: TimestampUs) -> bool {
        let needs_assignment = |member: &Member| needs_assignment(member, now);
        now >= self.quiet_until
            && (self.unassigned > 0 || self.members.values().any(needs_assignment))
    }

    /// Returns the requests to take, by member. Pass a plan without requests to
    /// [`Self::handle_nothing`].
    #[must_use]
    pub fn plan(&mut self, status: LimitStatus, now: TimestampUs) -> Plan {
        self.reset_comparison(status, now);
        // Drop what does not fit: it would displace later requests.
        self.unassigned = self.unassigned.min(status.requests.into());
        let free = self.free(status.requests);
        let unassigned = u32::try_from(self.unassigned).map_or(free, |calls| calls.min(free));
        let LimitStatus { limit, ends_in, .. } = status;
        let lasts = DurationUs(ends_in.0.saturating_sub(MARGIN.0));
        if lasts < DurationUs::from_secs(1) {
            // The assignment would end before it arrives.
            self.quiet_until = now + if unassigned > 0 { RACE_PAUSE } else { ends_in };
            let shares = Vec::new();
            return Plan { shares, unassigned };
        }
        let free = free - unassigned;
        let count = self.members.len();
        let wants = self.members.values().map(|member| {
            let is_due = needs_assignment(member, now);
            // A new assignment voids the old one.
            let has = if is_due { 0 } else { member.left(now) };
            let more = member.wants(lasts, limit, count).saturating_sub(has);
            let got = member.got;
            (QuotaDemand { got, more }, is_due)
        });
        let wants: Vec<_> = wants.collect();
        let parts = self.members.keys().zip(parts(&wants, free));
        let parts = parts.filter(|(_, part)| *part > 0);
        let shares = parts.map(|(id, part)| (*id, part)).collect();
        Plan { shares, unassigned }
    }

    /// Handles a plan that was empty or could not be taken. Members without an assignment get an
    /// empty one. Nothing becomes free for `full_after`, unless the limit changes.
    pub fn handle_nothing(&mut self, full_after: DurationUs, now: TimestampUs) -> Vec<Assignment> {
        self.tries = 0;
        if self.quiet_until <= now {
            let waits = match full_after {
                DurationUs::ZERO => RACE_PAUSE,
                full_after => full_after.min(RETRY_EVERY),
            };
            self.quiet_until = now + waits;
        }
        self.assign_nothing(now)
    }

    /// Handles an unknown result of a read or a take: the owner tries again later. Returns the
    /// members without an assignment, or with one that ends soon.
    pub fn handle_failure(&mut self, now: TimestampUs) -> Vec<MemberId> {
        self.quiet_until = now + RETRY_EVERY;
        let members = self.members.iter();
        let without = members.filter(|(_, member)| member.left(now) == 0 || ends_soon(member, now));
        without.map(|(id, _)| *id).collect()
    }

    /// Handles the verdict on a plan and returns the assignments to send. `sent_at` is when the
    /// owner sent the plan.
    #[must_use]
    pub fn handle_verdict(
        &mut self,
        plan: &Plan,
        (policy, verdict): (&Policy, &Verdict),
        (sent_at, now): (TimestampUs, TimestampUs),
    ) -> Vec<Assignment> {
        if !verdict.is_allowed() {
            // Others were faster. Read the limit again.
            self.tries += 1;
            let is_soon = self.tries <= TRIES_AT_ONCE;
            self.quiet_until = if is_soon { now } else { now + RACE_PAUSE };
            return Vec::new();
        }
        self.tries = 0;
        self.unassigned = self.unassigned.saturating_sub(plan.unassigned.into());
        let ends_at = lifetime::ends_at(policy, sent_at, verdict.full_after);
        let Some(seconds) = seconds_until(ends_at, now) else {
            // The window ended sooner than expected, and what was taken ended with it.
            self.quiet_until = now + verdict.full_after.min(RETRY_EVERY);
            return self.assign_nothing(now);
        };
        let mut assignments = Vec::with_capacity(plan.shares.len());
        for &(id, requests) in &plan.shares {
            // A member that has left gets no assignment.
            let Some(member) = self.members.get_mut(&id) else {
                continue;
            };
            member.handle_assigned(requests, now, now + DurationUs::from_secs(seconds.into()));
            assignments.push(Assignment {
                member: id,
                requests,
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

    /// Assigns zero requests to members whose assignment has ended or ends soon. Without an
    /// assignment they would apply their own default.
    fn assign_nothing(&mut self, now: TimestampUs) -> Vec<Assignment> {
        let ends_at = now + DurationUs::from_secs(EMPTY_FOR_SECONDS.into());
        let members = self.members.iter_mut();
        let ending = members.filter(|(_, member)| ends_soon(member, now));
        let assignments = ending.map(|(id, member)| {
            member.handle_assigned(0, now, ends_at);
            Assignment {
                member: *id,
                requests: 0,
                seconds: EMPTY_FOR_SECONDS,
                ends_at,
            }
        });
        assignments.collect()
    }

    /// Returns how many of the requests that are left to try for. The store takes all of them or
    /// none. Where others take requests one by one, some of them are gone when the plan arrives.
    fn free(&self, left: u32) -> u32 {
        let part = left.checked_shr(self.tries).unwrap_or(0);
        part.max(left.min(1))
    }

    /// Starts a new comparison period: a window, or a minute of a longer one.
    fn reset_comparison(&mut self, status: LimitStatus, now: TimestampUs) {
        if now >= self.compared_until {
            self.compared_until = now + status.ends_in.min(AHEAD);
            self.tries = 0;
            for member in self.members.values_mut() {
                member.got = 0;
            }
        }
    }
}

/// Whether the member needs a new assignment.
fn needs_assignment(member: &Member, now: TimestampUs) -> bool {
    member.is_short(now) || ends_soon(member, now)
}

fn ends_soon(member: &Member, now: TimestampUs) -> bool {
    let held = member.held.as_ref();
    held.is_none_or(|held| held.ends_at <= now + REPLACE_BEFORE_END)
}

#[cfg(test)]
mod tests;
