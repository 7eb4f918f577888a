//! Counts of many limits in one table of this process.
//!
//! [`crate::local`] has a table per limit. Here thousands of limits, most of them with a handful of
//! clients, share one. Each entry keeps the policy of its last acquisition, since only that can
//! decide when the entry may be evicted.
//!
//! A key belongs to one limit: callers include in it what distinguishes limits, their algorithms
//! and their windows. So a limit whose ceiling changes keeps its counts, and one whose algorithm
//! changes starts anew.
//!
//! # Floods of keys
//!
//! As in [`crate::local`], new clients share overflow entries once the table is full. Clients that
//! share one are counted together if their limits count alike, and apart otherwise. So none is
//! admitted more often because of it.

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

use crate::key::ClientKey;
use crate::local::all_or_none;
use crate::shards::{Fill, Shards, shard_of};
use crate::table::{EntryOwner, Table};

/// States that many limits keep of their clients.
pub struct MixedCounts {
    shards: Shards<EntryState>,
}

/// Usual number of limits per request; up to this many need no heap allocation.
const USUAL_LIMITS: usize = 16;

/// Locked shards, by number.
type LockedShards<'s> = SmallVec<[(usize, MutexGuard<'s, Table<EntryState>>); USUAL_LIMITS]>;

/// Acquisition from one limit.
#[derive(Clone, Copy, Debug)]
pub struct MixedAcquire<'c> {
    /// Policy of this client.
    pub policy: &'c Policy,
    /// Client and limit.
    pub key: ClientKey,
    /// Cost of the request.
    pub cost: Cost,
}

/// Content of an entry.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
enum EntryState {
    #[default]
    Nothing,
    One(Policy, State),
    /// States of limits that do not count alike; in overflow entries only.
    Several(Vec<(Policy, State)>),
}

impl MixedCounts {
    /// Counts with room for about `keys_max` clients, at least 64; they are spread over 64 shards
    /// by chance. Clients beyond that share overflow entries.
    #[must_use]
    pub fn new(keys_max: usize) -> Self {
        Self {
            shards: Shards::new(keys_max),
        }
    }

    /// Acquires from all limits or from none, and returns whether all admitted. Other requests
    /// never see a partial acquisition. `verdicts` receives one verdict per limit, in order. When
    /// one limit rejects, the verdicts of the others report their state without this request.
    pub fn acquire_all(
        &self,
        acquires: &[MixedAcquire<'_>],
        now: TimestampUs,
        verdicts: &mut Vec<Verdict>,
    ) -> bool {
        if let [acquire] = acquires {
            let mut table = self.shards.lock(shard_of(acquire.key));
            let verdict = step_in(&mut table, acquire, now);
            verdicts.clear();
            verdicts.push(verdict);
            return verdict.is_allowed();
        }
        let mut locked = self.lock_all(acquires);
        // The entries are rarely in a CPU cache. Touching all of them first lets the misses
        // overlap; step by step they would add up.
        for acquire in acquires {
            let (_, table) = &locked[index_of(&locked, acquire.key)];
            hint::black_box(table.is_known(acquire.key));
        }
        let costs = acquires.iter().map(|acquire| acquire.cost);
        let step = |at: usize, cost| {
            let acquire: &MixedAcquire<'_> = &acquires[at];
            let index = index_of(&locked, acquire.key);
            step_in(
                &mut locked[index].1,
                &MixedAcquire { cost, ..*acquire },
                now,
            )
        };
        all_or_none(costs, step, verdicts)
    }

    /// Locks the shards of these, in the common lock order.
    fn lock_all(&self, acquires: &[MixedAcquire<'_>]) -> LockedShards<'_> {
        let shards = acquires.iter().map(|acquire| shard_of(acquire.key));
        let mut shards: SmallVec<[usize; USUAL_LIMITS]> = shards.collect();
        shards.sort_unstable();
        shards.dedup();
        let locked = shards.into_iter();
        locked
            .map(|shard| (shard, self.shards.lock(shard)))
            .collect()
    }

    /// Evicts idle clients and frees memory. Call it now and then.
    pub fn sweep(&self, now: TimestampUs) {
        self.shards.sweep(&|kept| kept.is_idle(now));
    }

    /// Returns how full the table is.
    #[must_use]
    pub fn fill(&self) -> Fill {
        self.shards.fill()
    }
}

/// Returns the index of a key's shard among the locked ones.
fn index_of(locked: &LockedShards<'_>, key: ClientKey) -> usize {
    let found = locked.binary_search_by_key(&shard_of(key), |(shard, _)| *shard);
    let Ok(found) = found else {
        unreachable!("the shard of each key was locked before");
    };
    found
}

fn step_in(table: &mut Table<EntryState>, acquire: &MixedAcquire<'_>, now: TimestampUs) -> Verdict {
    table.update(
        acquire.key,
        |kept| kept.is_idle(now),
        |kept, whose| {
            if whose == EntryOwner::Newcomer {
                kept.keep_for(acquire.policy);
            }
            kept.step(acquire, whose, now)
        },
    )
}

/// Whether clients of both policies may share one state. Token buckets of different rates may not:
/// what the faster one refilled would go to the slower one. All other algorithms count requests in
/// a window, or time.
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
        Remembers::Requests | Remembers::Counts | Remembers::Time => {
            counts_in(one) == counts_in(other)
        }
    }
}

impl EntryState {
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

    /// Keeps the part of an overflow entry that belongs to a client of this limit.
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

    fn step(&mut self, acquire: &MixedAcquire<'_>, whose: EntryOwner, now: TimestampUs) -> Verdict {
        let (policy, state) = self.state_for(acquire.policy, whose, now);
        // Policies may change, and the newest decides when this may be evicted.
        *policy = *acquire.policy;
        let verdict = policy.step(state, now, acquire.cost);
        if matches!(self, Self::One(_, State::New)) {
            *self = Self::Nothing;
        }
        verdict
    }

    /// Returns the state of a client of this limit, which is created if needed.
    fn state_for(
        &mut self,
        policy: &Policy,
        whose: EntryOwner,
        now: TimestampUs,
    ) -> (&mut Policy, &mut State) {
        match self {
            Self::Nothing => *self = Self::One(*policy, State::New),
            Self::One(kept, state)
                if whose == EntryOwner::Overflow && !counts_alike(kept, policy) =>
            {
                let known = (*kept, mem::take(state));
                *self = Self::Several(vec![known, (*policy, State::New)]);
            }
            Self::One(..) => {}
            Self::Several(all) => {
                // This happens in a flood only; it bounds the list to states that are not idle.
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
