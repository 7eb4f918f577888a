//! Several limits charged as one: all of them, or none.

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
use crate::key::CallKey;
use crate::shards::{SHARDS, shard_of};
use crate::table::Table;

/// Limits that a call usually meets at most: for so many, nothing is taken from the heap.
const USUAL_CHARGES: usize = 4;

/// What is locked at once; in this order, so that two that charge several never wait for each
/// other.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Place {
    counts: usize,
    /// The number of a shard, or behind the last of them.
    shard: usize,
}

enum Locked<'c> {
    Usual(MutexGuard<'c, Table<State>>),
    Own(MutexGuard<'c, HashMap<CallKey, Own>>),
}

/// Charges several limits, or none of them: whether all admitted. Nobody sees some of them charged.
/// `verdicts` is what each said, in their order. Where one rejects, those that would have admitted
/// say how they stand without this call.
pub fn charge_all(
    charges: &[LocalAcquire<'_>],
    now: TimestampUs,
    verdicts: &mut Vec<Verdict>,
) -> bool {
    verdicts.clear();
    if let [charge] = charges {
        let verdict = charge.counts.charge(charge, now);
        verdicts.push(verdict);
        return verdict.is_admitted();
    }
    let mut held = lock_all(charges);
    let costs = charges.iter().map(|charge| charge.cost);
    let step = |at: usize, cost| {
        let charge: &LocalAcquire<'_> = &charges[at];
        step(&mut held, &LocalAcquire { cost, ..*charge }, now)
    };
    all_or_none(costs, step, verdicts)
}

/// Charges all of these or none, by a `step` that charges one; whether all admitted. Whoever calls
/// sees to it that nobody else charges them meanwhile.
pub(crate) fn all_or_none(
    costs: impl DoubleEndedIterator<Item = Cost> + ExactSizeIterator + Clone,
    mut step: impl FnMut(usize, Cost) -> Verdict,
    verdicts: &mut Vec<Verdict>,
) -> bool {
    verdicts.clear();
    for (at, cost) in costs.clone().enumerate() {
        verdicts.push(step(at, cost));
    }
    let is_admitted = verdicts.iter().all(Verdict::is_admitted);
    if !is_admitted {
        // The last first, as one client may stand there twice.
        for (at, cost) in costs.enumerate().rev() {
            if let (true, Cost::Take(taken)) = (verdicts[at].is_admitted(), cost) {
                // At once and under the same locks, so this is as if it had not called.
                step(at, Cost::Refund(taken));
            }
        }
        for (at, verdict) in verdicts.iter_mut().enumerate() {
            if verdict.is_admitted() {
                let standing = step(at, Cost::Peek);
                // A peek counts one, this call may have counted more: it is told that it fitted.
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

fn place(counts: &LocalCounts, shard: usize) -> Place {
    let counts = ptr::from_ref(counts).addr();
    Place { counts, shard }
}

fn lock_all<'c>(
    charges: &[LocalAcquire<'c>],
) -> SmallVec<[(Place, Locked<'c>); 2 * USUAL_CHARGES]> {
    let mut wanted: SmallVec<[(Place, &'c LocalCounts); 2 * USUAL_CHARGES]> = SmallVec::new();
    for LocalAcquire { counts, key, .. } in charges {
        wanted.push((place(counts, shard_of(*key)), counts));
        wanted.push((place(counts, SHARDS), counts));
    }
    let has_own = |counts: &LocalCounts| counts.has_own.load(Ordering::Acquire);
    wanted.sort_unstable_by_key(|(place, _)| *place);
    wanted.dedup_by_key(|(place, _)| *place);
    let locked = wanted.into_iter().filter_map(|(place, counts)| {
        let locked = match place.shard {
            shard @ ..SHARDS => Locked::Usual(counts.shards.lock(shard)),
            // A shard of these counts is held by now, so that this does not change.
            SHARDS.. if has_own(counts) => Locked::Own(counts.own.lock()),
            SHARDS.. => return None,
        };
        Some((place, locked))
    });
    locked.collect()
}

fn step(held: &mut [(Place, Locked<'_>)], charge: &LocalAcquire<'_>, now: TimestampUs) -> Verdict {
    if let Some(Locked::Own(own)) = locked(held, place(charge.counts, SHARDS))
        && let Some(own) = own.get_mut(&charge.key)
    {
        return own.step(charge, now);
    }
    match locked(held, place(charge.counts, shard_of(charge.key))) {
        Some(Locked::Usual(table)) => step_in(table, charge, now),
        _ => unreachable!("the shard of each charge was locked before"),
    }
}

fn locked<'h, 'c>(
    held: &'h mut [(Place, Locked<'c>)],
    wanted: Place,
) -> Option<&'h mut Locked<'c>> {
    let found = held.binary_search_by_key(&wanted, |(place, _)| *place);
    found.ok().map(|at| &mut held[at].1)
}
