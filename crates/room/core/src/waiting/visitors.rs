//! Map by visitor with little overhead: a million entries take forty bytes each, plus a table of
//! five-byte slots that is up to half empty.
//!
//! A hash table has up to twice as many slots as it needs, so its slots are small here: each has
//! only the index of an entry. The entries themselves are in a dense list, in no meaningful order.

use alloc::vec::Vec;
use core::hash::BuildHasher as _;

use hashbrown::HashTable;

use crate::hash::FixedState;
use crate::id::VisitorId;

/// Map by visitor: a dense list of entries, and a table of their indices.
#[derive(Clone, Debug)]
pub(super) struct Visitors<T> {
    entries: Vec<(VisitorId, T)>,
    indices: HashTable<u32>,
}

impl<T> Visitors<T> {
    /// Makes an empty map.
    pub(super) const fn new() -> Self {
        Self {
            entries: Vec::new(),
            indices: HashTable::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get_mut(&mut self, visitor: VisitorId) -> Option<&mut T> {
        let Self { entries, indices } = self;
        let index = indices.find(hash(visitor), |index| at(entries, *index).0 == visitor)?;
        entries.get_mut(*index as usize).map(|(_, entry)| entry)
    }

    /// Iterates over all entries, in no meaningful order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(VisitorId, T)> {
        self.entries.iter()
    }

    /// Adds a visitor who is not in the map yet.
    pub(super) fn insert(&mut self, visitor: VisitorId, entry: T) {
        let Self { entries, indices } = self;
        let Ok(index) = u32::try_from(entries.len()) else {
            return; // No memory has room for four billion entries.
        };
        entries.push((visitor, entry));
        indices.insert_unique(hash(visitor), index, |index| hash(at(entries, *index).0));
    }

    /// Removes an entry whose index the table no longer has.
    fn close_up(&mut self, index: u32) -> T {
        let Self { entries, indices } = self;
        // The last entry moves to the free index.
        let last = entries.len() - 1;
        if index as usize != last {
            let moved = hash(entries[last].0);
            let index_of_last = indices.find_mut(moved, |index| *index as usize == last);
            *index_of_last.expect("the table has the index of every entry") = index;
        }
        entries.swap_remove(index as usize).1
    }

    /// Keeps the entries for which `keep` returns true. Costs a look at each, and more only for
    /// those that it removes: millions may stay.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let mut index = 0;
        while let Some((visitor, entry)) = self.entries.get(index as usize) {
            if keep(entry) {
                index += 1;
                continue;
            }
            let visitor = *visitor;
            let found = self
                .indices
                .find_entry(hash(visitor), |known| *known == index);
            if let Ok(known) = found {
                known.remove();
            }
            // The entry that moved to this index is next.
            self.close_up(index);
        }
    }
}

fn at<T>(entries: &[(VisitorId, T)], index: u32) -> &(VisitorId, T) {
    &entries[index as usize]
}

fn hash(visitor: VisitorId) -> u64 {
    FixedState.hash_one(visitor)
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use super::*;

    const fn id(number: u64) -> VisitorId {
        let mut bytes = [0; 16];
        [bytes[3], bytes[11], ..] = number.to_le_bytes();
        VisitorId(bytes)
    }

    #[test]
    fn visitors_agree_with_an_ordered_map() {
        let mut seed = 1_u64;
        let mut draw = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        let mut visitors = Visitors::new();
        let mut expected = BTreeMap::new();
        for step in 0..20_000_u64 {
            let number = draw(700);
            match draw(5) {
                0 if step % 97 == 0 => {
                    visitors.retain(|value| value % 3 != 0);
                    expected.retain(|_, value| *value % 3 != 0);
                }
                _ => match visitors.get_mut(id(number)) {
                    Some(value) => {
                        assert_eq!(Some(&*value), expected.get(&number));
                        *value = step;
                        expected.insert(number, step);
                    }
                    None => {
                        assert_eq!(expected.insert(number, step), None);
                        visitors.insert(id(number), step);
                    }
                },
            }
            assert_eq!(visitors.len(), expected.len());
        }
        for (number, value) in expected {
            assert_eq!(visitors.get_mut(id(number)), Some(&mut { value }));
        }
    }
}
