//! Counts in the memory of this process: exact here, and unknown to other nodes.
//!
//! The right store for one node, or behind a load balancer that sends each client to one node. A
//! second node has counts of its own, so both together allow twice as much.

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

use crate::key::ClientKey;
use crate::shards::{Shards, shard_of};
use crate::table::Table;

pub use several::acquire_all;
pub(crate) use several::all_or_none;

pub use crate::shards::Fill;

/// States that one limit keeps of its clients.
///
/// # Invariants
///
/// - Each client has one entry: in `own` if it has a policy of its own, otherwise in its shard.
/// - Several locks are taken in this order: counts by their address; within each, shards by their
///   number, then `own`.
pub struct LocalCounts {
    shards: Shards<State>,
    /// Clients with a policy of their own. They are never evicted: a state that is idle by the
    /// common policy may not be idle by theirs.
    own: Mutex<HashMap<ClientKey, Own>>,
    /// Whether `own` has entries; nearly always false, which spares its lock.
    has_own: AtomicBool,
}

/// State of a client with a policy of its own.
struct Own {
    policy: Policy,
    state: State,
}

/// Acquisition from one limit.
#[derive(Clone, Copy, Debug)]
pub struct LocalAcquire<'c> {
    /// Counts that it acquires from.
    pub counts: &'c LocalCounts,
    /// Policy of all clients of these counts that have none of their own.
    pub policy: &'c Policy,
    /// Client that sends the request.
    pub key: ClientKey,
    /// Cost of the request.
    pub cost: Cost,
    /// Longest delay; a request that would be delayed longer is rejected.
    pub delay_max: DurationUs,
}

impl LocalCounts {
    /// Counts with room for about `keys_max` clients, at least 64; they are spread over 64 shards
    /// by chance. Clients beyond that share overflow entries, where they can only be rejected more
    /// often.
    #[must_use]
    pub fn new(keys_max: usize) -> Self {
        Self {
            shards: Shards::new(keys_max),
            own: Mutex::default(),
            has_own: AtomicBool::new(false),
        }
    }

    /// Changes the room to about `keys_max` clients. Clients that have an entry keep it.
    pub fn set_keys_max(&self, keys_max: usize) {
        self.shards.set_keys_max(keys_max);
    }

    /// Decides about one request, and takes its cost if it is admitted.
    pub fn acquire(&self, acquire: &LocalAcquire<'_>, now: TimestampUs) -> Verdict {
        let mut table = self.shards.lock(shard_of(acquire.key));
        if self.has_own.load(Ordering::Acquire)
            && let Some(own) = self.own.lock().get_mut(&acquire.key)
        {
            return own.step(acquire, now);
        }
        step_in(&mut table, acquire, now)
    }

    /// Returns the policy of a client that has one of its own.
    #[must_use]
    pub fn own_policy(&self, key: ClientKey) -> Option<Policy> {
        if !self.has_own.load(Ordering::Acquire) {
            return None;
        }
        self.own.lock().get(&key).map(|own| own.policy)
    }

    /// Replaces the set of clients with a policy of their own. Costs that they took stay counted. A
    /// client that shared an overflow entry starts with what was taken from that.
    pub fn set_own(&self, policies: &HashMap<ClientKey, Policy>) {
        // Under all locks, so that no request sees a part of it.
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

    /// Evicts idle clients and frees memory. Call it now and then; most evictions happen during
    /// requests.
    pub fn sweep(&self, policy: &Policy, now: TimestampUs) {
        self.shards.sweep(&|state| policy.is_idle(state, now));
    }

    /// Returns how full the counts are.
    #[must_use]
    pub fn fill(&self) -> Fill {
        let mut fill = self.shards.fill();
        fill.keys += self.own.lock().len();
        fill
    }
}

impl Own {
    fn step(&mut self, acquire: &LocalAcquire<'_>, now: TimestampUs) -> Verdict {
        step(&self.policy, &mut self.state, acquire, now)
    }
}

fn step_in(table: &mut Table<State>, acquire: &LocalAcquire<'_>, now: TimestampUs) -> Verdict {
    let policy = acquire.policy;
    table.update(
        acquire.key,
        |state| policy.is_idle(state, now),
        |state, _| step(policy, state, acquire, now),
    )
}

/// Takes a step, and undoes it if the request would be delayed for longer than its limit.
fn step(
    policy: &Policy,
    state: &mut State,
    acquire: &LocalAcquire<'_>,
    now: TimestampUs,
) -> Verdict {
    let verdict = policy.step(state, now, acquire.cost);
    let (Outcome::Allow { delay }, Cost::Take(taken)) = (verdict.outcome, acquire.cost) else {
        return verdict;
    };
    if delay <= acquire.delay_max {
        return verdict;
    }
    // Under the same lock, so the state is as if the request had never come.
    let undone = policy.step(state, now, Cost::Refund(taken));
    let over = DurationUs(delay.0 - acquire.delay_max.0);
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
