//! Where do short-lived things live? In slots that are used again, each addressed by a key that
//! nobody confuses with a former tenant's.

/// The address of a thing: its slot, and the how-manyeth tenant of that slot it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Key {
    pub(crate) index: u32,
    generation: u32,
}

/// Things by key.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Option<T>>,
    generations: Vec<u32>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            generations: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    pub(crate) fn insert(&mut self, value: T) -> Key {
        if let Some(index) = self.free.pop() {
            self.slots[index as usize] = Some(value);
            let generation = self.generations[index as usize];
            return Key { index, generation };
        }
        let index = u32::try_from(self.slots.len()).expect("memory ends before indices do");
        self.slots.push(Some(value));
        self.generations.push(0);
        let generation = 0;
        Key { index, generation }
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        if self.generations.get(key.index as usize) != Some(&key.generation) {
            return None;
        }
        self.slots[key.index as usize].as_mut()
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        if self.generations.get(key.index as usize) != Some(&key.generation) {
            return None;
        }
        let value = self.slots[key.index as usize].take()?;
        let generation = &mut self.generations[key.index as usize];
        *generation = generation.wrapping_add(1);
        self.free.push(key.index);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_a_former_tenant_opens_nothing() {
        let mut slab = Slab::default();
        let first = slab.insert('a');
        assert_eq!(slab.remove(first), Some('a'));
        let second = slab.insert('b');
        assert_eq!(first.index, second.index);
        assert_eq!(slab.get_mut(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get_mut(second), Some(&mut 'b'));
    }
}
