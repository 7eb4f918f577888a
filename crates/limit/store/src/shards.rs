//! Table of clients in shards, each with a lock of its own.

use parking_lot::{Mutex, MutexGuard};

use crate::key::ClientKey;
use crate::table::Table;

/// Number of shards. Some dozens, so that threads seldom meet, and few enough that an idle limit
/// costs some kilobytes.
pub(crate) const SHARDS: usize = 64;
/// Overflow entries per shard: 4,096 in all. More would spare more innocent clients in a flood, at
/// 32 bytes each while it lasts.
const OVERFLOW_ENTRIES: usize = 64;

/// States of clients, each in the shard that its key selects. Several shards are locked in the
/// order of their numbers.
pub(crate) struct Shards<S>(Box<[Shard<S>]>);

/// Shard in a cache line of its own, so that threads in two shards do not contend.
#[repr(align(128))]
struct Shard<S>(Mutex<Table<S>>);

/// Fill level of a table of clients.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Fill {
    /// Clients with an entry of their own.
    pub keys: usize,
    /// Requests since the process began that were decided by an overflow entry, for lack of room.
    pub overflows: u64,
}

impl<S: Clone + Default + Eq> Shards<S> {
    /// Shards with room for about `keys_max` clients, which are spread over them by chance.
    pub(crate) fn new(keys_max: usize) -> Self {
        let shard = || Shard(Mutex::new(Table::new(keys_max / SHARDS, OVERFLOW_ENTRIES)));
        Self((0..SHARDS).map(|_| shard()).collect())
    }

    /// Changes the room to about `keys_max` clients. Clients that have an entry keep it.
    pub(crate) fn set_keys_max(&self, keys_max: usize) {
        for shard in &self.0 {
            shard.0.lock().set_entries_max(keys_max / SHARDS);
        }
    }

    /// Locks the shard of this number, below [`SHARDS`].
    pub(crate) fn lock(&self, shard: usize) -> MutexGuard<'_, Table<S>> {
        self.0[shard].0.lock()
    }

    /// Locks all shards.
    pub(crate) fn lock_all(&self) -> Vec<MutexGuard<'_, Table<S>>> {
        self.0.iter().map(|shard| shard.0.lock()).collect()
    }

    /// Evicts idle clients and frees memory, one shard after the other to keep locks short.
    pub(crate) fn sweep(&self, is_idle: &impl Fn(&S) -> bool) {
        for shard in &self.0 {
            let mut table = shard.0.lock();
            let count = table.len();
            table.evict_idle(count, is_idle);
            table.shrink(is_idle);
        }
    }

    /// Returns how full all shards are together.
    pub(crate) fn fill(&self) -> Fill {
        let mut fill = Fill::default();
        for shard in &self.0 {
            let table = shard.0.lock();
            fill.keys += table.len();
            fill.overflows = fill.overflows.saturating_add(table.overflowed());
        }
        fill
    }
}

/// Returns the number of a client's shard.
pub(crate) fn shard_of(key: ClientKey) -> usize {
    // The lowest bits choose the overflow entry, the highest are the hash in the table.
    usize::from(key.0.to_le_bytes()[5]) % SHARDS
}
