//! Counts in the memory of this process: exact here, and nowhere else.
//!
//! The right store for one node, and behind a load balancer that brings each client to the same
//! one. A second node has counts of its own: both together admit twice as much.

mod several;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::{Policy, State};
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::{Outcome, Verdict};
use parking_lot::Mutex;

use crate::key::CallKey;
use crate::shards::{Shards, shard_of};
use crate::table::Table;

pub(crate) use several::all_or_none;
pub use several::charge_all;

pub use crate::shards::Fill;

/// What one limit remembers of its clients.
///
/// # Invariants
///
/// - A client is remembered in one place: among those with settings of their own, or in its shard.
/// - Whoever holds several locks took them in this order: counts by their address, of each the
///   shards by their number, then `own`.
pub struct LocalCounts {
    shards: Shards<State>,
    /// Clients with settings of their own. Never forgotten: what is idle by the usual settings may
    /// not be by theirs.
    own: Mutex<HashMap<CallKey, Own>>,
    /// Whether there are any: nearly no call has to look.
    has_own: AtomicBool,
}

/// A client with settings of its own.
struct Own {
    policy: Policy,
    state: State,
}

/// One call against one limit.
#[derive(Clone, Copy, Debug)]
pub struct LocalAcquire<'c> {
    /// Where it is counted.
    pub counts: &'c LocalCounts,
    /// The settings that hold for all clients of these counts that have none of their own.
    pub policy: &'c Policy,
    /// Who calls.
    pub key: CallKey,
    /// How much it counts.
    pub cost: Cost,
    /// How long it would be held at most: one that had to be held for longer is rejected.
    pub patience: DurationUs,
}

impl LocalCounts {
    /// For at most so many clients at once (about: they are spread over 64 parts, by chance), at
    /// least 64. Those beyond share entries: whoever has no place is charged together with others,
    /// and none goes through more often for it.
    #[must_use]
    pub fn new(keys_max: usize) -> Self {
        Self {
            shards: Shards::new(keys_max),
            own: Mutex::default(),
            has_own: AtomicBool::new(false),
        }
    }

    /// From now on there is place for so many. Nobody is forgotten for it.
    pub fn set_keys_max(&self, keys_max: usize) {
        self.shards.set_keys_max(keys_max);
    }

    /// Decides about one call, and charges it if it goes through.
    pub fn charge(&self, charge: &LocalAcquire<'_>, now: TimestampUs) -> Verdict {
        let mut table = self.shards.lock(shard_of(charge.key));
        if self.has_own.load(Ordering::Acquire)
            && let Some(own) = self.own.lock().get_mut(&charge.key)
        {
            return own.step(charge, now);
        }
        step_in(&mut table, charge, now)
    }

    /// What holds for a client whose settings are not the usual ones.
    #[must_use]
    pub fn own_policy(&self, key: CallKey) -> Option<Policy> {
        if !self.has_own.load(Ordering::Acquire) {
            return None;
        }
        self.own.lock().get(&key).map(|own| own.policy)
    }

    /// From now on these clients have settings of their own, and no others. What each was charged
    /// stays. Whoever has shared an entry, for want of place, begins with what was charged there.
    pub fn set_own(&self, policies: &HashMap<CallKey, Policy>) {
        // All at once: nobody is charged in between.
        let mut tables = self.shards.lock_all();
        let mut own = self.own.lock();
        let gone = own.extract_if(|key, _| !policies.contains_key(key));
        for (key, Own { state, .. }) in gone {
            tables[shard_of(key)].put(key, state);
        }
        for (key, policy) in policies {
            let known = own.entry(*key).or_insert_with(|| Own {
                policy: *policy,
                state: tables[shard_of(*key)].take(*key),
            });
            known.policy = *policy;
        }
        self.has_own.store(!own.is_empty(), Ordering::Release);
    }

    /// Forgets clients that are as if they had never called, and gives memory back; to be called
    /// now and then, as most of it happens along the way.
    pub fn sweep(&self, policy: &Policy, now: TimestampUs) {
        self.shards.sweep(&|state| policy.is_idle(state, now));
    }

    /// How full it is.
    #[must_use]
    pub fn fill(&self) -> Fill {
        let mut fill = self.shards.fill();
        fill.keys += self.own.lock().len();
        fill
    }
}

impl Own {
    fn step(&mut self, charge: &LocalAcquire<'_>, now: TimestampUs) -> Verdict {
        step(&self.policy, &mut self.state, charge, now)
    }
}

fn step_in(table: &mut Table<State>, charge: &LocalAcquire<'_>, now: TimestampUs) -> Verdict {
    let policy = charge.policy;
    table.update(
        charge.key,
        |state| policy.is_idle(state, now),
        |state, _| step(policy, state, charge, now),
    )
}

/// A step, and back if the call would have to be held for too long.
fn step(
    policy: &Policy,
    state: &mut State,
    charge: &LocalAcquire<'_>,
    now: TimestampUs,
) -> Verdict {
    let verdict = policy.step(state, now, charge.cost);
    let (Outcome::Admit { delay }, Cost::Take(taken)) = (verdict.outcome, charge.cost) else {
        return verdict;
    };
    if delay <= charge.patience {
        return verdict;
    }
    // Nobody has called in between, so this is as if it had not.
    let undone = policy.step(state, now, Cost::Refund(taken));
    let over = DurationUs(delay.0 - charge.patience.0);
    Verdict {
        outcome: Outcome::Reject {
            retry_after: Some(over),
        },
        ..undone
    }
}

impl fmt::Debug for LocalCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LocalCounts({:?})", self.fill())
    }
}

#[cfg(test)]
mod tests;
