//! Storage for short-lived values, in slots that are used again. A key never opens the slot for a
//! later value.

/// Address of a value: its slot, and the generation of that slot.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Key {
    pub(crate) index: u32,
    generation: u32,
}

/// Values by key.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

/// Slot with its generation beside its value, so that both share a cache line.
#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    tenant: Option<T>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    pub(crate) fn insert(&mut self, value: T) -> Key {
        if let Some(index) = self.free.pop() {
            let slot = &mut self.slots[index as usize];
            slot.tenant = Some(value);
            let generation = slot.generation;
            return Key { index, generation };
        }
        let index = u32::try_from(self.slots.len()).expect("memory ends before indices do");
        let generation = 0;
        self.slots.push(Slot {
            generation,
            tenant: Some(value),
        });
        Key { index, generation }
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.slot(key)?.tenant.as_mut()
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self.slot(key)?;
        let value = slot.tenant.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(key.index);
        Some(value)
    }

    fn slot(&mut self, key: Key) -> Option<&mut Slot<T>> {
        let slot = self.slots.get_mut(key.index as usize)?;
        (slot.generation == key.generation).then_some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_a_removed_value_opens_nothing() {
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
