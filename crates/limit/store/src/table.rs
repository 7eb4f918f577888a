//! What is remembered of clients, in bounded memory.
//!
//! # What a flood of keys does
//!
//! Whoever can choose what he is known by (a header, an address of IPv6) can be a million clients.
//! Then
//!
//! - entries that may be forgotten make place, a few are looked at for each that comes;
//! - an entry that may not be forgotten stays: no flood makes a client that is over its limit a new
//!   one;
//! - where there is no place left, newcomers share: each belongs to one of a fixed number of
//!   entries in the *crowd*, and is charged there with all others that do. So a client may be
//!   rejected because of others, and never goes through more often than its limit says;
//! - whoever gets an own entry later begins it as the crowd's stands, with all that it was charged.

use hashbrown::HashTable;

use crate::key::CallKey;

/// Entries that are looked at for each newcomer. More than one, so that a table whose clients come
/// and go does not grow with all who ever came.
const LOOKS: usize = 2;
/// The same where no place is left.
const LOOKS_WHEN_FULL: usize = 16;

/// A table that is full grows by such a part, and by at least so many entries.
const GROWTH: usize = 4;
const GROWTH_MIN: usize = 4;

/// States by key.
#[derive(Debug)]
pub(crate) struct Table<S> {
    entries: Vec<Entry<S>>,
    /// Where in `entries` a key is.
    places: HashTable<u32>,
    /// The entry that is looked at next.
    hand: usize,
    entries_max: usize,
    /// Empty as long as nobody needs it.
    crowd: Vec<S>,
    crowd_size: usize,
    crowded: u64,
}

#[derive(Debug)]
struct Entry<S> {
    key: CallKey,
    state: S,
}

/// Whose the state is that is changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum EntryOwner {
    /// The client's, from an earlier call.
    Own,
    /// The client's from now on; as the crowd's stands.
    Newcomer,
    /// Of all who share it.
    Crowd,
}

/// Where a client is remembered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum EntryPosition {
    Own(usize),
    Crowd(usize),
    /// Nowhere yet, and there is place.
    Free,
}

impl<S: Clone + Default + Eq> Table<S> {
    /// A table of at most so many entries of their own, at least one, and at most 2^32; and so many
    /// that are shared, a power of two.
    pub(crate) fn new(entries_max: usize, crowd_size: usize) -> Self {
        debug_assert!(crowd_size.is_power_of_two());
        Self {
            entries: Vec::new(),
            places: HashTable::new(),
            hand: 0,
            entries_max: entries_max.clamp(1, u32::MAX as usize),
            crowd: Vec::new(),
            crowd_size,
            crowded: 0,
        }
    }

    /// From now on there is place for so many. Whoever has an entry keeps it.
    pub(crate) fn set_entries_max(&mut self, entries_max: usize) {
        self.entries_max = entries_max.clamp(1, u32::MAX as usize);
    }

    /// How many clients have an entry of their own.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How often a client was charged together with others.
    pub(crate) fn crowded(&self) -> u64 {
        self.crowded
    }

    /// Whether a client has an entry of its own.
    pub(crate) fn is_known(&self, key: CallKey) -> bool {
        self.own(key).is_some()
    }

    /// Lets `step` change what is remembered of a client; `is_idle` says what may be forgotten.
    ///
    /// Whoever is as one who never called afterwards gets no entry for it.
    pub(crate) fn update<T>(
        &mut self,
        key: CallKey,
        is_idle: impl Fn(&S) -> bool,
        step: impl FnOnce(&mut S, EntryOwner) -> T,
    ) -> T {
        match self.find(key, &is_idle) {
            EntryPosition::Own(at) => step(&mut self.entries[at].state, EntryOwner::Own),
            EntryPosition::Crowd(at) => {
                self.crowded = self.crowded.saturating_add(1);
                step(&mut self.crowd[at], EntryOwner::Crowd)
            }
            EntryPosition::Free => {
                let mut state = self.first_state(key, &is_idle);
                let outcome = step(&mut state, EntryOwner::Newcomer);
                if state != S::default() {
                    self.insert(key, state);
                }
                outcome
            }
        }
    }

    /// What is remembered of a client: its own entry, which is taken out, or what it would begin
    /// with.
    pub(crate) fn take(&mut self, key: CallKey) -> S {
        if let Some(at) = self.own(key) {
            return self.forget(at);
        }
        self.first_state(key, &|_| false)
    }

    /// Gives a client that has none an entry of its own, whether there is place or not: it comes
    /// from where it had one.
    pub(crate) fn put(&mut self, key: CallKey, state: S) {
        match self.own(key) {
            Some(at) => self.entries[at].state = state,
            None => self.insert(key, state),
        }
    }

    fn find(&mut self, key: CallKey, is_idle: &impl Fn(&S) -> bool) -> EntryPosition {
        if let Some(at) = self.own(key) {
            return EntryPosition::Own(at);
        }
        self.look(LOOKS, is_idle);
        if self.entries.len() < self.entries_max {
            return EntryPosition::Free;
        }
        self.look(LOOKS_WHEN_FULL, is_idle);
        if self.entries.len() < self.entries_max {
            return EntryPosition::Free;
        }
        if self.crowd.is_empty() {
            self.crowd.resize(self.crowd_size, S::default());
        }
        EntryPosition::Crowd(self.of_crowd(key))
    }

    fn own(&self, key: CallKey) -> Option<usize> {
        let entries = &self.entries;
        let found = self
            .places
            .find(key.place(), |at| entries[*at as usize].key == key);
        found.map(|at| *at as usize)
    }

    fn of_crowd(&self, key: CallKey) -> usize {
        // Other bits than those that say where its place is.
        let bits = usize::try_from(key.0 & 0xFFFF_FFFF).unwrap_or_default();
        bits & (self.crowd_size - 1)
    }

    /// How whoever has no entry begins one.
    fn first_state(&self, key: CallKey, is_idle: &impl Fn(&S) -> bool) -> S {
        match self.crowd.get(self.of_crowd(key)) {
            Some(state) if !is_idle(state) => state.clone(),
            _ => S::default(),
        }
    }

    fn insert(&mut self, key: CallKey, state: S) {
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
        self.places
            .insert_unique(key.place(), at, |at| entries[*at as usize].key.place());
    }

    /// Looks at some entries, each in its turn, and forgets those that are idle.
    pub(crate) fn look(&mut self, count: usize, is_idle: &impl Fn(&S) -> bool) {
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

    /// Takes an entry out; the last one takes its place.
    fn forget(&mut self, at: usize) -> S {
        let gone = self.entries[at].key;
        self.take_place(gone, at);
        let last = self.entries.len() - 1;
        if at != last {
            let moved = self.entries[last].key;
            if let Some(place) = self
                .places
                .find_mut(moved.place(), |place| *place as usize == last)
            {
                *place = u32::try_from(at).unwrap_or(u32::MAX);
            }
        }
        self.entries.swap_remove(at).state
    }

    fn take_place(&mut self, key: CallKey, at: usize) {
        let found = self
            .places
            .find_entry(key.place(), |place| *place as usize == at);
        if let Ok(entry) = found {
            entry.remove();
        }
    }

    /// Gives memory back that a flood has taken, once it is over.
    pub(crate) fn shrink(&mut self, is_idle: &impl Fn(&S) -> bool) {
        if !self.crowd.is_empty() && self.crowd.iter().all(is_idle) {
            self.crowd = Vec::new();
        }
        if self.entries.capacity() / 4 > self.entries.len() {
            let entries = &mut self.entries;
            entries.shrink_to(entries.len() * 2);
            let entries = &self.entries;
            self.places
                .shrink_to(entries.len() * 2, |at| entries[*at as usize].key.place());
        }
    }
}

#[cfg(test)]
mod tests;
