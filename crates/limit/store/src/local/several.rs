//! Acquisition from several limits at once: from all of them, or from none.

use std::collections::HashMap;
use std::ptr;
use std::sync::atomic::Ordering;

use anteroom_limit::cost::Cost;
use anteroom_limit::policy::State;
use anteroom_limit::time::TimestampUs;
use anteroom_limit::verdict::Verdict;
use parking_lot::MutexGuard;
use smallvec::SmallVec;

use super::{LocalAcquire, LocalCounts, Own, step_in};
use crate::key::ClientKey;
use crate::shards::{SHARDS, shard_of};
use crate::table::Table;

/// Usual number of limits per request; up to this many need no heap allocation.
const USUAL_LIMITS: usize = 4;

/// Identity of a lock. Its ordering is the lock order, so that two requests never deadlock.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct LockId {
    counts: usize,
    /// Number of a shard; `SHARDS` stands for `own`.
    shard: usize,
}

enum Locked<'c> {
    Usual(MutexGuard<'c, Table<State>>),
    Own(MutexGuard<'c, HashMap<ClientKey, Own>>),
}

/// Acquires from all limits or from none, and returns whether all admitted. Other requests never
/// see a partial acquisition. `verdicts` receives one verdict per limit, in order. When one limit
/// rejects, the verdicts of the others report their state without this request.
pub fn acquire_all(
    acquires: &[LocalAcquire<'_>],
    now: TimestampUs,
    verdicts: &mut Vec<Verdict>,
) -> bool {
    verdicts.clear();
    if let [acquire] = acquires {
        let verdict = acquire.counts.acquire(acquire, now);
        verdicts.push(verdict);
        return verdict.is_allowed();
    }
    let mut locks = lock_all(acquires);
    let costs = acquires.iter().map(|acquire| acquire.cost);
    let step = |at: usize, cost| {
        let acquire: &LocalAcquire<'_> = &acquires[at];
        step(&mut locks, &LocalAcquire { cost, ..*acquire }, now)
    };
    all_or_none(costs, step, verdicts)
}

/// Acquires from all or from none by `step`, which acquires from one, and returns whether all
/// admitted. The caller holds the locks of all of them.
pub(crate) fn all_or_none(
    costs: impl DoubleEndedIterator<Item = Cost> + ExactSizeIterator + Clone,
    mut step: impl FnMut(usize, Cost) -> Verdict,
    verdicts: &mut Vec<Verdict>,
) -> bool {
    verdicts.clear();
    for (at, cost) in costs.clone().enumerate() {
        verdicts.push(step(at, cost));
    }
    let is_admitted = verdicts.iter().all(Verdict::is_allowed);
    if !is_admitted {
        // In reverse order, as one client may be listed twice.
        for (at, cost) in costs.enumerate().rev() {
            if let (true, Cost::Take(taken)) = (verdicts[at].is_allowed(), cost) {
                // Under the same locks, so the state is as if the request had never come.
                step(at, Cost::Refund(taken));
            }
        }
        for (at, verdict) in verdicts.iter_mut().enumerate() {
            if verdict.is_allowed() {
                let standing = step(at, Cost::Peek);
                // A peek costs one, and this request may cost more; its own outcome stands.
                let outcome = verdict.outcome;
                *verdict = Verdict {
                    outcome,
                    ..standing
                };
            }
        }
    }
    is_admitted
}

fn lock_id(counts: &LocalCounts, shard: usize) -> LockId {
    let counts = ptr::from_ref(counts).addr();
    LockId { counts, shard }
}

fn lock_all<'c>(
    acquires: &[LocalAcquire<'c>],
) -> SmallVec<[(LockId, Locked<'c>); 2 * USUAL_LIMITS]> {
    let mut wanted: SmallVec<[(LockId, &'c LocalCounts); 2 * USUAL_LIMITS]> = SmallVec::new();
    for LocalAcquire { counts, key, .. } in acquires {
        wanted.push((lock_id(counts, shard_of(*key)), counts));
        wanted.push((lock_id(counts, SHARDS), counts));
    }
    let has_own = |counts: &LocalCounts| counts.has_own.load(Ordering::Acquire);
    wanted.sort_unstable_by_key(|(id, _)| *id);
    wanted.dedup_by_key(|(id, _)| *id);
    let locked = wanted.into_iter().filter_map(|(id, counts)| {
        let locked = match id.shard {
            shard @ ..SHARDS => Locked::Usual(counts.shards.lock(shard)),
            // The shard is locked by now, so that this cannot change.
            SHARDS.. if has_own(counts) => Locked::Own(counts.own.lock()),
            SHARDS.. => return None,
        };
        Some((id, locked))
    });
    locked.collect()
}

fn step(
    locks: &mut [(LockId, Locked<'_>)],
    acquire: &LocalAcquire<'_>,
    now: TimestampUs,
) -> Verdict {
    if let Some(Locked::Own(own)) = locked(locks, lock_id(acquire.counts, SHARDS))
        && let Some(own) = own.get_mut(&acquire.key)
    {
        return own.step(acquire, now);
    }
    match locked(locks, lock_id(acquire.counts, shard_of(acquire.key))) {
        Some(Locked::Usual(table)) => step_in(table, acquire, now),
        _ => unreachable!("the shard of each key was locked before"),
    }
}

fn locked<'h, 'c>(
    locks: &'h mut [(LockId, Locked<'c>)],
    wanted: LockId,
) -> Option<&'h mut Locked<'c>> {
    let found = locks.binary_search_by_key(&wanted, |(id, _)| *id);
    found.ok().map(|at| &mut locks[at].1)
}
