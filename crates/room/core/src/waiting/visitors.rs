//! A map by visitor that costs little for each of them: a million stand in forty bytes each and a
//! five-byte slot, half of which are empty.
//!
//! A hash table has up to twice as many places as it needs, so what stands in it is small here:
//! only where an entry is. The entries themselves stand close together, in no order that means
//! anything.

use alloc::vec::Vec;
use core::hash::BuildHasher as _;

use hashbrown::HashTable;

use crate::hash::FixedState;
use crate::id::VisitorId;

/// See the top of this file.
#[derive(Clone, Debug)]
pub(super) struct Visitors<T> {
    entries: Vec<(VisitorId, T)>,
    places: HashTable<u32>,
}

impl<T> Visitors<T> {
    /// Nobody.
    pub(super) const fn new() -> Self {
        Self {
            entries: Vec::new(),
            places: HashTable::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get_mut(&mut self, visitor: VisitorId) -> Option<&mut T> {
        let Self { entries, places } = self;
        let place = places.find(hash(visitor), |place| at(entries, *place).0 == visitor)?;
        entries.get_mut(*place as usize).map(|(_, entry)| entry)
    }

    /// Adds somebody who is not there yet.
    pub(super) fn insert(&mut self, visitor: VisitorId, entry: T) {
        let Self { entries, places } = self;
        let Ok(place) = u32::try_from(entries.len()) else {
            return; // Four thousand million of them do not fit into any memory that this runs in.
        };
        entries.push((visitor, entry));
        places.insert_unique(hash(visitor), place, |place| hash(at(entries, *place).0));
    }

    pub(super) fn remove(&mut self, visitor: VisitorId) -> Option<T> {
        let Self { entries, places } = self;
        let found = places.find_entry(hash(visitor), |place| at(entries, *place).0 == visitor);
        let (place, _) = found.ok()?.remove();
        Some(self.close_up(place))
    }

    /// Takes an entry out that the table has no place for any more.
    fn close_up(&mut self, place: u32) -> T {
        let Self { entries, places } = self;
        // The last one takes the place that is free now.
        let last = entries.len() - 1;
        if place as usize != last {
            let moved = hash(entries[last].0);
            let of_last = places.find_mut(moved, |place| *place as usize == last);
            *of_last.expect("every entry has its place in the table") = place;
        }
        entries.swap_remove(place as usize).1
    }

    /// Keeps those of whom `stays` says so. Costs a look at each, and more only for those who go:
    /// there may be millions who stay.
    pub(super) fn retain(&mut self, mut stays: impl FnMut(&T) -> bool) {
        let mut place = 0;
        while let Some((visitor, entry)) = self.entries.get(place as usize) {
            if stays(entry) {
                place += 1;
                continue;
            }
            let visitor = *visitor;
            let found = self
                .places
                .find_entry(hash(visitor), |known| *known == place);
            if let Ok(known) = found {
                known.remove();
            }
            // Whoever takes this place is looked at next.
            self.close_up(place);
        }
    }
}

fn at<T>(entries: &[(VisitorId, T)], place: u32) -> &(VisitorId, T) {
    &entries[place as usize]
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
    fn it_answers_as_an_ordered_map_does() {
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
                0 => assert_eq!(visitors.remove(id(number)), expected.remove(&number)),
                1 if step % 997 == 0 => {
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
            assert_eq!(visitors.remove(id(number)), Some(value));
        }
    }
}
