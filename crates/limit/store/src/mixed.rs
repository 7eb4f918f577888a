//! Counts of many limits in one memory of this process.
//!
//! [`crate::local`] has a memory for each limit. Here are limits by the thousand, most of them with
//! a handful of clients: they share one, and what is remembered of a client stands beside the
//! settings by which it was charged, for only those can say when it may be forgotten.
//!
//! A key belongs to one limit: whoever calls puts into it what tells limits apart, and what tells
//! their algorithms and windows apart. So a limit that changes goes on from where it was, and one
//! that becomes another begins anew.
//!
//! # What a flood of keys does
//!
//! The same as in [`crate::local`]: where there is no place left, newcomers share. Those who share
//! an entry are charged together if their limits count the same way, and apart otherwise, so that
//! none goes through more often for it.

use std::fmt;
use std::hint;
use std::mem;

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::{Policy, State};
use anteroom_limit::registry::Remembers;
use anteroom_limit::time::TimestampUs;
use anteroom_limit::verdict::Verdict;
use parking_lot::MutexGuard;
use smallvec::SmallVec;

use crate::key::CallKey;
use crate::local::all_or_none;
use crate::shards::{Fill, Shards, shard_of};
use crate::table::{EntryOwner, Table};

/// What many limits remember of their clients.
pub struct MixedCounts {
    shards: Shards<Kept>,
}

/// Limits that a question usually meets at most: for so many, nothing is taken from the heap.
const USUAL_CHARGES: usize = 16;

/// Shards that are locked, by their numbers.
type Held<'s> = SmallVec<[(usize, MutexGuard<'s, Table<Kept>>); USUAL_CHARGES]>;

/// One call against one limit.
#[derive(Clone, Copy, Debug)]
pub struct MixedAcquire<'c> {
    /// The settings that hold for this client.
    pub policy: &'c Policy,
    /// Who calls, and which limit counts it.
    pub key: CallKey,
    /// How much it counts.
    pub cost: Cost,
}

/// What an entry remembers.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
enum Kept {
    #[default]
    Nothing,
    One(Policy, State),
    /// In the crowd alone: clients whose limits do not count the same way.
    Several(Vec<(Policy, State)>),
}

impl MixedCounts {
    /// For at most so many clients at once (about: they are spread over 64 parts, by chance), at
    /// least 64. Those beyond share entries.
    #[must_use]
    pub fn new(keys_max: usize) -> Self {
        Self {
            shards: Shards::new(keys_max),
        }
    }

    /// Charges several limits, or none of them: whether all admitted. Nobody sees some of them
    /// charged. `verdicts` is what each said, in their order. Where one rejects, those that would
    /// have admitted say how they stand without this call.
    pub fn charge_all(
        &self,
        charges: &[MixedAcquire<'_>],
        now: TimestampUs,
        verdicts: &mut Vec<Verdict>,
    ) -> bool {
        if let [charge] = charges {
            let mut table = self.shards.lock(shard_of(charge.key));
            let verdict = step_in(&mut table, charge, now);
            verdicts.clear();
            verdicts.push(verdict);
            return verdict.is_admitted();
        }
        let mut held = self.lock_all(charges);
        // Clients lie anywhere in memory that no cache holds. Whoever looks for all of them first
        // waits for several at once; step by step it would be one after the other.
        for charge in charges {
            let (_, table) = &held[place_in(&held, charge.key)];
            hint::black_box(table.is_known(charge.key));
        }
        let costs = charges.iter().map(|charge| charge.cost);
        let step = |at: usize, cost| {
            let charge: &MixedAcquire<'_> = &charges[at];
            let place = place_in(&held, charge.key);
            step_in(&mut held[place].1, &MixedAcquire { cost, ..*charge }, now)
        };
        all_or_none(costs, step, verdicts)
    }

    /// Locks the shards of these, in the order in which all do.
    fn lock_all(&self, charges: &[MixedAcquire<'_>]) -> Held<'_> {
        let shards = charges.iter().map(|charge| shard_of(charge.key));
        let mut shards: SmallVec<[usize; USUAL_CHARGES]> = shards.collect();
        shards.sort_unstable();
        shards.dedup();
        let locked = shards.into_iter();
        locked
            .map(|shard| (shard, self.shards.lock(shard)))
            .collect()
    }

    /// Forgets clients that are as if they had never called, and gives memory back; to be called
    /// now and then.
    pub fn sweep(&self, now: TimestampUs) {
        self.shards.sweep(&|kept| kept.is_idle(now));
    }

    /// How full it is.
    #[must_use]
    pub fn fill(&self) -> Fill {
        self.shards.fill()
    }
}

/// Where the shard of this key stands among those that are locked.
fn place_in(held: &Held<'_>, key: CallKey) -> usize {
    let found = held.binary_search_by_key(&shard_of(key), |(shard, _)| *shard);
    let Ok(found) = found else {
        unreachable!("the shard of each charge was locked before");
    };
    found
}

fn step_in(table: &mut Table<Kept>, charge: &MixedAcquire<'_>, now: TimestampUs) -> Verdict {
    table.update(
        charge.key,
        |kept| kept.is_idle(now),
        |kept, whose| {
            if whose == EntryOwner::Newcomer {
                kept.keep_for(charge.policy);
            }
            kept.step(charge, whose, now)
        },
    )
}

/// Whether clients of both may be charged together. By a token bucket they may not if it fills at
/// another rate: what it got by the faster one would go to the slower. All others count calls in a
/// window, or time.
fn counts_alike(one: &Policy, other: &Policy) -> bool {
    if one.kind() != other.kind() {
        return false;
    }
    let counts_in = |policy: &Policy| {
        let count = policy.counters().map(|counters| counters.count());
        (policy.rate().window(), count)
    };
    match one.row().remembers {
        Remembers::Tokens => one == other,
        Remembers::Calls | Remembers::Counts | Remembers::Time => {
            counts_in(one) == counts_in(other)
        }
    }
}

impl Kept {
    fn is_idle(&self, now: TimestampUs) -> bool {
        match self {
            Self::Nothing => true,
            Self::One(policy, state) => policy.is_idle(state, now),
            Self::Several(all) => {
                let mut all = all.iter();
                all.all(|(policy, state)| policy.is_idle(state, now))
            }
        }
    }

    /// Of what the crowd remembers, leaves what a client of this limit shared.
    fn keep_for(&mut self, policy: &Policy) {
        *self = match mem::take(self) {
            Self::Several(all) => {
                let mut all = all.into_iter();
                let shared = all.find(|(kept, _)| counts_alike(kept, policy));
                shared.map_or(Self::Nothing, |(kept, state)| Self::One(kept, state))
            }
            Self::One(kept, state) if counts_alike(&kept, policy) => Self::One(kept, state),
            Self::One(..) | Self::Nothing => Self::Nothing,
        };
    }

    fn step(&mut self, charge: &MixedAcquire<'_>, whose: EntryOwner, now: TimestampUs) -> Verdict {
        let (policy, state) = self.place(charge.policy, whose, now);
        // Settings may have changed, and the newest say when this may be forgotten.
        *policy = *charge.policy;
        let verdict = policy.step(state, now, charge.cost);
        if matches!(self, Self::One(_, State::New)) {
            *self = Self::Nothing;
        }
        verdict
    }

    /// Where a client of this limit is remembered.
    fn place(
        &mut self,
        policy: &Policy,
        whose: EntryOwner,
        now: TimestampUs,
    ) -> (&mut Policy, &mut State) {
        match self {
            Self::Nothing => *self = Self::One(*policy, State::New),
            Self::One(kept, state) if whose == EntryOwner::Crowd && !counts_alike(kept, policy) => {
                let known = (*kept, mem::take(state));
                *self = Self::Several(vec![known, (*policy, State::New)]);
            }
            Self::One(..) => {}
            Self::Several(all) => {
                // Here, as it happens in a flood alone: so many stand here at most as are not over.
                all.retain(|(kept, state)| counts_alike(kept, policy) || !kept.is_idle(state, now));
                if !all.iter().any(|(kept, _)| counts_alike(kept, policy)) {
                    all.push((*policy, State::New));
                }
            }
        }
        match self {
            Self::One(kept, state) => (kept, state),
            Self::Several(all) => {
                let mut all = all.iter_mut();
                let found = all.find(|(kept, _)| counts_alike(kept, policy));
                let (kept, state) = found.expect("it was put there if it was not there");
                (kept, state)
            }
            Self::Nothing => unreachable!("it was made one above"),
        }
    }
}

impl fmt::Debug for MixedCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MixedCounts({:?})", self.fill())
    }
}

#[cfg(test)]
mod tests;
