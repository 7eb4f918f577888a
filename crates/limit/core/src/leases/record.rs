//! Stored record of one client, and the rules by which it is trusted later.
//!
//! The record is the state of the widened limit. Whole batches are taken from it when they are
//! granted, by the store's clock. It does not name the nodes with leases: a lease is prepaid, so no
//! node has to return anything.
//!
//! # What is not trusted
//!
//! - A record of another epoch, or no record in an epoch that began with a loss: everything that
//!   the limit allows counts as spent when the epoch began.
//! - A record whose time is further ahead than the limit reaches: the clock was set back. Up to
//!   there the clock stands still, as in all algorithms.
//! - A state that another window made: its counts are spent at once, as late as they can have been.
//!   A state of another algorithm: everything counts as spent when it was written.

use crate::algorithm::Algorithm;
use crate::cost::Cost;
use crate::counters::Oldest;
use crate::leases::epoch::{Before, Epoch, EpochId};
use crate::leases::widened::{LeasedLimit, TTL_LONGEST};
use crate::policy::{Policy, State};
use crate::registry::Remembers;
use crate::time::{DurationUs, TimestampUs};
use crate::token_bucket;
use crate::verdict::Verdict;

/// Record of one client in a store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Record {
    /// Epoch in which it was written.
    pub epoch: EpochId,
    /// Latest time of the store's clock at a grant.
    pub as_of: TimestampUs,
    /// Time before which nothing is granted.
    pub nothing_until: TimestampUs,
    /// Widened limit and length of leases of the last grant.
    pub lent_by: LeasedLimit,
    /// State with everything that was granted.
    pub state: State,
}

impl Record {
    /// Returns the trusted record of a client at `now`.
    pub(super) fn trusted(
        record: Option<&Self>,
        limit: &LeasedLimit,
        epoch: &Epoch,
        now: TimestampUs,
    ) -> Self {
        match record.filter(|record| record.epoch == epoch.id) {
            None => Self::unknown_client(limit, epoch),
            Some(record) if record.is_ahead(limit, now) => Self::all_spent(limit, epoch.id, now),
            Some(record) => record.read_by(limit),
        }
    }

    /// Returns the record of a client that the epoch does not know, as of the beginning of the
    /// epoch.
    #[must_use]
    pub fn unknown_client(limit: &LeasedLimit, epoch: &Epoch) -> Self {
        match epoch.before {
            Before::Lost => Self::all_spent(limit, epoch.id, epoch.began_at),
            Before::Unknown | Before::Nothing => Self {
                epoch: epoch.id,
                as_of: epoch.began_at,
                nothing_until: epoch.unknown_until(),
                lent_by: *limit,
                state: State::New,
            },
        }
    }

    /// Returns the time until which a rejection may be due to what was lost before the epoch.
    pub(super) fn uncertain_until(limit: &LeasedLimit, epoch: &Epoch) -> TimestampUs {
        match epoch.before {
            Before::Lost => expires_at(limit, epoch.began_at),
            Before::Unknown | Before::Nothing => epoch.unknown_until(),
        }
    }

    /// Returns the record of a client that has spent everything at `at`.
    fn all_spent(limit: &LeasedLimit, epoch: EpochId, at: TimestampUs) -> Self {
        let (nothing_until, state) = match all_taken(limit.widened(), at) {
            Some(state) => (TimestampUs(0), state),
            None => (expires_at(limit, at), State::New),
        };
        Self {
            epoch,
            as_of: at,
            nothing_until,
            lent_by: *limit,
            state,
        }
    }

    /// Whether waiting for the clock to catch up takes longer than waiting until everything
    /// expires.
    fn is_ahead(&self, limit: &LeasedLimit, now: TimestampUs) -> bool {
        let over_after = limit.widened().rate().window();
        self.as_of.max(self.nothing_until).since(now) > over_after.times(2)
    }

    /// Converts this record for a limit that may differ from the one that wrote it.
    fn read_by(&self, limit: &LeasedLimit) -> Self {
        let (old, new) = (self.lent_by.widened(), limit.widened());
        // Longer leases end later than the new limit expects.
        let longer = self.lent_by.ttl().0.saturating_sub(limit.ttl().0);
        let at = self.as_of + DurationUs(longer);
        let left = |policy: &Policy, state: &State| peek(policy, state, self.as_of).remaining;
        let mut nothing_until = self.nothing_until;
        let state = match Change::between(old, new) {
            Change::None => self.state.clone(),
            Change::Reading => {
                let spent = left(old, &State::New).saturating_sub(left(old, &self.state));
                state_with(new, spent, at)
            }
            Change::Level => {
                let whole = left(new, &State::New);
                state_with(new, whole.saturating_sub(left(old, &self.state)), at)
            }
            Change::Guess | Change::Algorithm => {
                nothing_until = nothing_until.max(expires_at(limit, at));
                State::New
            }
        };
        Self {
            nothing_until,
            lent_by: *limit,
            state,
            ..self.clone()
        }
    }

    /// Returns the time after which the record may be forgotten, if nothing more is granted: a new
    /// client would then get the same replies. It is never shorter than [`LeasedLimit::kept_for`].
    pub(super) fn forget_after(&self, now: TimestampUs) -> DurationUs {
        let full_after = peek(self.lent_by.widened(), &self.state, now).full_after;
        let kept_until = (self.as_of + self.lent_by.kept_for()).max(self.nothing_until);
        full_after.max(kept_until.since(now))
    }
}

/// Returns the time from which on no grant made until `at` matters, whatever it was.
fn expires_at(limit: &LeasedLimit, at: TimestampUs) -> TimestampUs {
    let window = limit.widened().rate().window();
    // A lease timed by another clock may run into the next window of this one.
    let last = at + TTL_LONGEST;
    if let Some(left) = limit.promised().resets_after(last) {
        return last + left;
    }
    at + window.max(limit.promised().rate().window() + limit.ttl())
}

/// Returns the verdict of a peek.
pub(super) fn peek(policy: &Policy, state: &State, now: TimestampUs) -> Verdict {
    policy.step(&mut state.clone(), now, Cost::Peek)
}

/// Returns the state of a new client that takes `calls` at `at`, or as many as it may.
fn state_with(policy: &Policy, calls: u32, at: TimestampUs) -> State {
    let mut state = State::New;
    let most = peek(policy, &state, at).remaining;
    policy.step(&mut state, at, Cost::take(calls.min(most)));
    state
}

/// Returns the state of a client that has just spent everything, if the algorithm frees it bit by
/// bit.
fn all_taken(policy: &Policy, at: TimestampUs) -> Option<State> {
    match policy.row().remembers {
        Remembers::Tokens => Some(State::TokenBucket(token_bucket::State::empty(at))),
        Remembers::Time => {
            let comes_back = policy.rate().requests() > 0;
            comes_back.then(|| state_with(policy, u32::MAX, at))
        }
        Remembers::Requests | Remembers::Counts => None,
    }
}

/// Difference between two limits that read the same state.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Change {
    /// None, or only the number of requests.
    None,
    /// The counters cover other intervals. Their sum moves into one of the new ones.
    Reading,
    /// The rest is kept and refills at the new rate. If it was kept as time (as the algorithm
    /// does), a slower rate would get more requests for it. Two nodes with different rates would
    /// then grant more together than either may.
    Level,
    /// The counters cover other intervals, and the oldest is an estimate. Other intervals
    /// underestimate once more, and two limits that alternate do so again and again. Everything
    /// counts as spent.
    Guess,
    /// One algorithm cannot read the state of the other. Everything counts as spent, and buckets
    /// fill from then on. One that filled meanwhile would add to the burst of the other limit.
    Algorithm,
}

impl Change {
    fn between(old: &Policy, new: &Policy) -> Self {
        if old.kind() != new.kind() {
            return Self::Algorithm;
        }
        match new.row().remembers {
            Remembers::Tokens => Self::None,
            Remembers::Time if old == new => Self::None,
            Remembers::Time => Self::Level,
            Remembers::Requests | Remembers::Counts => Self::between_windows(old, new),
        }
    }

    fn between_windows(old: &Policy, new: &Policy) -> Self {
        let layout = |policy: &Policy| {
            let count = policy.counters().map(|counters| counters.count());
            (policy.rate().window(), count)
        };
        if layout(old) == layout(new) {
            return Self::None;
        }
        match old.counters().map(|counters| counters.oldest()) {
            Some(Oldest::Falling) => Self::Guess,
            Some(Oldest::Whole) | None => Self::Reading,
        }
    }
}
