//! States of clients in bounded memory.
//!
//! # Floods of keys
//!
//! A client that chooses its own identity (a header, an IPv6 address) can appear as a million
//! clients. Then
//!
//! - idle entries make room: some are looked at for each new client;
//! - an entry that is not idle stays, so no flood resets a client that is over its limit;
//! - once the table is full, new clients share a fixed number of *overflow* entries. A client may
//!   then be rejected because of others, and is never admitted more often than its limit says;
//! - a client that gets an entry of its own later starts with a copy of its overflow entry.

use hashbrown::HashTable;

use crate::key::ClientKey;

/// Entries to look at for each new client. More than one, so that a table whose clients come and go
/// does not grow for ever.
const LOOKS: usize = 2;
/// Entries to look at when the table is full.
const LOOKS_WHEN_FULL: usize = 16;

/// Divisor of the length by which a full table grows; it grows by at least `GROWTH_MIN` entries.
const GROWTH: usize = 4;
const GROWTH_MIN: usize = 4;

/// States by key.
#[derive(Debug)]
pub(crate) struct Table<S> {
    entries: Vec<Entry<S>>,
    /// Index in `entries` of each key.
    index: HashTable<u32>,
    /// Entry to look at next.
    hand: usize,
    entries_max: usize,
    /// Overflow entries; empty as long as none is needed.
    overflow: Vec<S>,
    overflow_size: usize,
    overflowed: u64,
}

#[derive(Debug)]
struct Entry<S> {
    key: ClientKey,
    state: S,
}

/// Owner of the state that is changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum EntryOwner {
    /// The client, which has been seen before.
    Own,
    /// The client, which gets an entry now; it starts as its overflow entry stands.
    Newcomer,
    /// All clients that share the overflow entry.
    Overflow,
}

/// Entry of a client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Location {
    Own(usize),
    Overflow(usize),
    /// None yet, and there is room.
    Vacant,
}

impl<S: Clone + Default + Eq> Table<S> {
    /// A table of at most `entries_max` entries, between one and 2^32, and of `overflow_size`
    /// overflow entries, a power of two.
    pub(crate) fn new(entries_max: usize, overflow_size: usize) -> Self {
        debug_assert!(overflow_size.is_power_of_two());
        Self {
            entries: Vec::new(),
            index: HashTable::new(),
            hand: 0,
            entries_max: entries_max.clamp(1, u32::MAX as usize),
            overflow: Vec::new(),
            overflow_size,
            overflowed: 0,
        }
    }

    /// Changes the largest number of entries. Clients that have one keep it.
    pub(crate) fn set_entries_max(&mut self, entries_max: usize) {
        self.entries_max = entries_max.clamp(1, u32::MAX as usize);
    }

    /// Returns how many clients have an entry of their own.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns how many updates went to an overflow entry.
    pub(crate) fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// Whether a client has an entry of its own.
    pub(crate) fn is_known(&self, key: ClientKey) -> bool {
        self.own(key).is_some()
    }

    /// Changes the state of a client by `step`; `is_idle` decides which entries may be evicted.
    ///
    /// A client whose state is the default afterwards gets no entry.
    pub(crate) fn update<T>(
        &mut self,
        key: ClientKey,
        is_idle: impl Fn(&S) -> bool,
        step: impl FnOnce(&mut S, EntryOwner) -> T,
    ) -> T {
        match self.find(key, &is_idle) {
            Location::Own(at) => step(&mut self.entries[at].state, EntryOwner::Own),
            Location::Overflow(at) => {
                self.overflowed = self.overflowed.saturating_add(1);
                step(&mut self.overflow[at], EntryOwner::Overflow)
            }
            Location::Vacant => {
                let mut state = self.first_state(key, &is_idle);
                let outcome = step(&mut state, EntryOwner::Newcomer);
                if state != S::default() {
                    self.insert(key, state);
                }
                outcome
            }
        }
    }

    /// Removes the entry of a client and returns its state, or the state that it would start with.
    pub(crate) fn take(&mut self, key: ClientKey) -> S {
        if let Some(at) = self.own(key) {
            return self.forget(at);
        }
        self.first_state(key, &|_| false)
    }

    /// Sets the state of a client, whether there is room or not: it had an entry elsewhere before.
    pub(crate) fn put(&mut self, key: ClientKey, state: S) {
        match self.own(key) {
            Some(at) => self.entries[at].state = state,
            None => self.insert(key, state),
        }
    }

    fn find(&mut self, key: ClientKey, is_idle: &impl Fn(&S) -> bool) -> Location {
        if let Some(at) = self.own(key) {
            return Location::Own(at);
        }
        self.evict_idle(LOOKS, is_idle);
        if self.entries.len() < self.entries_max {
            return Location::Vacant;
        }
        self.evict_idle(LOOKS_WHEN_FULL, is_idle);
        if self.entries.len() < self.entries_max {
            return Location::Vacant;
        }
        if self.overflow.is_empty() {
            self.overflow.resize(self.overflow_size, S::default());
        }
        Location::Overflow(self.overflow_index(key))
    }

    fn own(&self, key: ClientKey) -> Option<usize> {
        let entries = &self.entries;
        let found = self
            .index
            .find(key.table_hash(), |at| entries[*at as usize].key == key);
        found.map(|at| *at as usize)
    }

    fn overflow_index(&self, key: ClientKey) -> usize {
        // Other bits than those of its hash.
        let bits = usize::try_from(key.0 & 0xFFFF_FFFF).unwrap_or_default();
        bits & (self.overflow_size - 1)
    }

    /// Returns the first state of a client without an entry.
    fn first_state(&self, key: ClientKey, is_idle: &impl Fn(&S) -> bool) -> S {
        match self.overflow.get(self.overflow_index(key)) {
            Some(state) if !is_idle(state) => state.clone(),
            _ => S::default(),
        }
    }

    fn insert(&mut self, key: ClientKey, state: S) {
        // There are fewer than `entries_max`, which is below 2^32.
        let Ok(at) = u32::try_from(self.entries.len()) else {
            return;
        };
        if self.entries.len() == self.entries.capacity() {
            // A quarter at a time: a table that doubles is half empty on a bad day.
            let more = (self.entries.len() / GROWTH).max(GROWTH_MIN);
            self.entries.reserve_exact(more);
        }
        self.entries.push(Entry { key, state });
        let entries = &self.entries;
        self.index.insert_unique(key.table_hash(), at, |at| {
            entries[*at as usize].key.table_hash()
        });
    }

    /// Looks at the next `count` entries and evicts those that are idle.
    pub(crate) fn evict_idle(&mut self, count: usize, is_idle: &impl Fn(&S) -> bool) {
        for _ in 0..count {
            if self.entries.is_empty() {
                return;
            }
            if self.hand >= self.entries.len() {
                self.hand = 0;
            }
            if is_idle(&self.entries[self.hand].state) {
                let _ = self.forget(self.hand);
            } else {
                self.hand += 1;
            }
        }
    }

    /// Removes an entry; the last one moves into its index.
    fn forget(&mut self, at: usize) -> S {
        let gone = self.entries[at].key;
        self.remove_from_index(gone, at);
        let last = self.entries.len() - 1;
        if at != last {
            let moved = self.entries[last].key;
            if let Some(index) = self
                .index
                .find_mut(moved.table_hash(), |index| *index as usize == last)
            {
                *index = u32::try_from(at).unwrap_or(u32::MAX);
            }
        }
        self.entries.swap_remove(at).state
    }

    fn remove_from_index(&mut self, key: ClientKey, at: usize) {
        let found = self
            .index
            .find_entry(key.table_hash(), |index| *index as usize == at);
        if let Ok(entry) = found {
            entry.remove();
        }
    }

    /// Frees memory that a flood has taken, once it is over.
    pub(crate) fn shrink(&mut self, is_idle: &impl Fn(&S) -> bool) {
        if !self.overflow.is_empty() && self.overflow.iter().all(is_idle) {
            self.overflow = Vec::new();
        }
        if self.entries.capacity() / 4 > self.entries.len() {
            let entries = &mut self.entries;
            entries.shrink_to(entries.len() * 2);
            let entries = &self.entries;
            self.index.shrink_to(entries.len() * 2, |at| {
                entries[*at as usize].key.table_hash()
            });
        }
    }
}

#[cfg(test)]
mod tests;
