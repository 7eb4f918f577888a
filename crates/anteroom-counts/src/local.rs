//! Counts in the memory of this process: exact here, and nowhere else.
//!
//! The right store for one node, and behind a load balancer that brings each client to the same one. A
//! second node has counts of its own: both together admit twice as much.

use std::collections::HashMap;
use std::fmt;

use anteroom_limits::algorithm::Algorithm as _;
use anteroom_limits::cost::Cost;
use anteroom_limits::policy::{Policy, State};
use anteroom_limits::time::Micros;
use anteroom_limits::verdict::Verdict;
use parking_lot::{Mutex, MutexGuard};

use crate::key::CallKey;
use crate::table::Table;

/// Parts of a limit's memory that are locked alone. Some dozens, so that threads seldom meet, and few
/// enough that an idle limit costs some kilobytes.
const SHARDS: usize = 64;
/// Entries that clients share when there is no place left, in each shard: 4,096 in all. More would spare
/// more innocent ones in a flood, at 32 bytes each while it lasts.
const CROWD: usize = 64;

/// What one limit remembers of its clients.
pub struct LocalCounts {
    shards: Box<[Shard]>,
    /// Clients with settings of their own. Never forgotten: what is idle by the usual settings may not be by
    /// theirs.
    own: Mutex<HashMap<CallKey, State>>,
}

/// In a cache line of its own, so that two threads in two shards do not wait for each other.
#[repr(align(128))]
struct Shard(Mutex<Table<State>>);

/// One call against one limit.
#[derive(Clone, Copy, Debug)]
pub struct Charge<'c> {
    /// Where it is counted.
    pub counts: &'c LocalCounts,
    /// The settings that hold for this client.
    pub policy: &'c Policy,
    /// Whether they are this client's own; if not, they must be the same for all clients of these counts.
    pub is_own: bool,
    /// Who calls.
    pub key: CallKey,
    /// How much it counts.
    pub cost: Cost,
}

/// How full the memory of a limit is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Fill {
    /// Clients that are remembered, each alone.
    pub keys: usize,
    /// How often a client was charged together with others, because there was no place left; since the
    /// process began.
    pub crowded: u64,
}

impl LocalCounts {
    /// For at most so many clients at once (about: they are spread over 64 parts, by chance), at least 64. Those
    /// beyond share entries: whoever has no place is charged together with others, and none goes through more
    /// often for it.
    #[must_use]
    pub fn new(keys_max: usize) -> Self {
        let shard = || Shard(Mutex::new(Table::new(keys_max / SHARDS, CROWD)));
        Self {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            own: Mutex::default(),
        }
    }

    /// Decides about one call. `is_own` as in [`Charge`].
    pub fn charge(
        &self,
        policy: &Policy,
        is_own: bool,
        key: CallKey,
        now: Micros,
        cost: Cost,
    ) -> Verdict {
        if is_own {
            self.adopt(key);
            let mut own = self.own.lock();
            return policy.step(own.entry(key).or_default(), now, cost);
        }
        let mut table = self.shards[shard_of(key)].0.lock();
        table.update(
            key,
            |state| policy.is_idle(state, now),
            |state| policy.step(state, now, cost),
        )
    }

    /// From now on the usual settings hold for all clients, until they are charged by their own again; what they
    /// were charged stays. To be called when it changes whose settings are their own.
    pub fn forget_own(&self) {
        // All at once, in the order of all others: nobody is charged in between.
        let mut tables: Vec<_> = self.shards.iter().map(|shard| shard.0.lock()).collect();
        for (key, state) in self.own.lock().drain() {
            tables[shard_of(key)].restore(key, state, |_| false);
        }
    }

    /// Makes sure that a client with settings of its own is among those; what it was charged before stays.
    fn adopt(&self, key: CallKey) {
        if self.own.lock().contains_key(&key) {
            return;
        }
        let mut table = self.shards[shard_of(key)].0.lock();
        let state = table.saved(key, |_| false);
        self.own.lock().entry(key).or_insert(state);
    }

    /// Forgets clients that are as if they had never called, and gives memory back; to be called now and then,
    /// as most of it happens along the way.
    pub fn sweep(&self, policy: &Policy, now: Micros) {
        for shard in &self.shards {
            let is_idle = |state: &State| policy.is_idle(state, now);
            let mut table = shard.0.lock();
            let count = table.len();
            table.look(count, &is_idle);
            table.shrink(&is_idle);
        }
    }

    /// How full it is.
    #[must_use]
    pub fn fill(&self) -> Fill {
        let mut fill = Fill {
            keys: self.own.lock().len(),
            crowded: 0,
        };
        for shard in &self.shards {
            let table = shard.0.lock();
            fill.keys += table.len();
            fill.crowded = fill.crowded.saturating_add(table.crowded());
        }
        fill
    }

    fn place(&self, charge: &Charge<'_>) -> Place {
        let shard = if charge.is_own {
            SHARDS
        } else {
            shard_of(charge.key)
        };
        Place {
            counts: std::ptr::from_ref(self).addr(),
            shard,
        }
    }
}

fn shard_of(key: CallKey) -> usize {
    // The lowest bits choose within the crowd, the highest the place in the table.
    usize::from(key.0.to_le_bytes()[5]) % SHARDS
}

/// What is locked at once; in this order, so that two that charge several never wait for each other.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Place {
    counts: usize,
    shard: usize,
}

enum Locked<'c> {
    Usual(MutexGuard<'c, Table<State>>),
    Own(MutexGuard<'c, HashMap<CallKey, State>>),
}

/// Charges several limits, or none of them: whether all admitted. Nobody sees some of them charged.
/// `verdicts` is what each said, in their order. Where one rejects, those that would have admitted say
/// how they stand without this call.
pub fn charge_all(charges: &[Charge<'_>], now: Micros, verdicts: &mut Vec<Verdict>) -> bool {
    verdicts.clear();
    if let [charge] = charges {
        let Charge {
            policy, key, cost, ..
        } = *charge;
        let verdict = charge.counts.charge(policy, charge.is_own, key, now, cost);
        verdicts.push(verdict);
        return verdict.is_admitted();
    }
    for charge in charges.iter().filter(|charge| charge.is_own) {
        charge.counts.adopt(charge.key);
    }
    let mut held = lock_all(charges);
    let mut saved = Vec::with_capacity(charges.len());
    for charge in charges {
        let locked = of(&mut held, charge);
        saved.push(locked.saved(charge, now));
        verdicts.push(locked.step(charge, now, charge.cost));
    }
    let is_admitted = verdicts.iter().all(Verdict::is_admitted);
    if !is_admitted {
        // The last first, as one client may stand there twice.
        for (charge, state) in charges.iter().zip(saved).rev() {
            of(&mut held, charge).restore(charge, state, now);
        }
        for (charge, verdict) in charges.iter().zip(verdicts) {
            if verdict.is_admitted() {
                *verdict = of(&mut held, charge).step(charge, now, Cost::Peek);
            }
        }
    }
    is_admitted
}

fn lock_all<'c>(charges: &[Charge<'c>]) -> Vec<(Place, Locked<'c>)> {
    let mut wanted: Vec<(Place, &Charge<'c>)> = charges
        .iter()
        .map(|charge| (charge.counts.place(charge), charge))
        .collect();
    wanted.sort_by_key(|(place, _)| *place);
    wanted.dedup_by_key(|(place, _)| *place);
    let locked = wanted.into_iter().map(|(place, charge)| {
        let counts = charge.counts;
        let locked = match counts.shards.get(place.shard) {
            Some(shard) => Locked::Usual(shard.0.lock()),
            None => Locked::Own(counts.own.lock()),
        };
        (place, locked)
    });
    locked.collect()
}

/// The part that a charge is about.
fn of<'h, 'c>(held: &'h mut [(Place, Locked<'c>)], charge: &Charge<'_>) -> &'h mut Locked<'c> {
    let wanted = charge.counts.place(charge);
    let found = held.binary_search_by_key(&wanted, |(place, _)| *place);
    let at = found.expect("the part of each charge was locked before");
    &mut held[at].1
}

impl Locked<'_> {
    fn step(&mut self, charge: &Charge<'_>, now: Micros, cost: Cost) -> Verdict {
        let Charge { policy, key, .. } = *charge;
        match self {
            Self::Usual(table) => table.update(
                key,
                |state| policy.is_idle(state, now),
                |state| policy.step(state, now, cost),
            ),
            Self::Own(own) => policy.step(own.entry(key).or_default(), now, cost),
        }
    }

    fn saved(&mut self, charge: &Charge<'_>, now: Micros) -> State {
        let Charge { policy, key, .. } = *charge;
        match self {
            Self::Usual(table) => table.saved(key, |state| policy.is_idle(state, now)),
            Self::Own(own) => own.get(&key).cloned().unwrap_or_default(),
        }
    }

    fn restore(&mut self, charge: &Charge<'_>, state: State, now: Micros) {
        let Charge { policy, key, .. } = *charge;
        match self {
            Self::Usual(table) => {
                table.restore(key, state, |state| policy.is_idle(state, now));
            }
            Self::Own(own) => {
                own.insert(key, state);
            }
        }
    }
}

impl fmt::Debug for LocalCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LocalCounts({:?})", self.fill())
    }
}

#[cfg(test)]
mod tests;
