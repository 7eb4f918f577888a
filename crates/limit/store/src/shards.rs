//! A memory of clients in parts, each behind a lock of its own.

use parking_lot::{Mutex, MutexGuard};

use crate::key::CallKey;
use crate::table::Table;

/// How many parts. Some dozens, so that threads seldom meet, and few enough that an idle limit
/// costs some kilobytes.
pub(crate) const SHARDS: usize = 64;
/// Entries that clients share when there is no place left, in each shard: 4,096 in all. More would
/// spare more innocent ones in a flood, at 32 bytes each while it lasts.
const CROWD: usize = 64;

/// What is remembered of clients, each in the shard that its key names. Whoever locks several takes
/// them by their numbers.
pub(crate) struct Shards<S>(Box<[Shard<S>]>);

/// In a cache line of its own, so that two threads in two shards do not wait for each other.
#[repr(align(128))]
struct Shard<S>(Mutex<Table<S>>);

/// How full a memory of clients is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Fill {
    /// Clients that are remembered, each alone.
    pub keys: usize,
    /// How often a client was asked about together with others, because there was no place left;
    /// since the process began.
    pub crowded: u64,
}

impl<S: Clone + Default + Eq> Shards<S> {
    /// With place for about so many clients: they are spread over the shards by chance.
    pub(crate) fn new(keys_max: usize) -> Self {
        let shard = || Shard(Mutex::new(Table::new(keys_max / SHARDS, CROWD)));
        Self((0..SHARDS).map(|_| shard()).collect())
    }

    /// From now on there is place for so many. Nobody is forgotten for it.
    pub(crate) fn set_keys_max(&self, keys_max: usize) {
        for shard in &self.0 {
            shard.0.lock().set_entries_max(keys_max / SHARDS);
        }
    }

    /// Locks the shard of this number, below [`SHARDS`].
    pub(crate) fn lock(&self, shard: usize) -> MutexGuard<'_, Table<S>> {
        self.0[shard].0.lock()
    }

    /// Locks all of them.
    pub(crate) fn lock_all(&self) -> Vec<MutexGuard<'_, Table<S>>> {
        self.0.iter().map(|shard| shard.0.lock()).collect()
    }

    /// Forgets clients that are idle, and gives memory back; one shard after the other, so that
    /// nobody waits for long.
    pub(crate) fn sweep(&self, is_idle: &impl Fn(&S) -> bool) {
        for shard in &self.0 {
            let mut table = shard.0.lock();
            let count = table.len();
            table.look(count, is_idle);
            table.shrink(is_idle);
        }
    }

    /// How full they are together.
    pub(crate) fn fill(&self) -> Fill {
        let mut fill = Fill::default();
        for shard in &self.0 {
            let table = shard.0.lock();
            fill.keys += table.len();
            fill.crowded = fill.crowded.saturating_add(table.crowded());
        }
        fill
    }
}

/// The number of the shard in which a client is.
pub(crate) fn shard_of(key: CallKey) -> usize {
    // The lowest bits choose within the crowd, the highest the place in the table.
    usize::from(key.0.to_le_bytes()[5]) % SHARDS
}
