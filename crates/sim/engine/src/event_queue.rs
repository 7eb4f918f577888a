//! Queue of events by virtual time, in whole milliseconds.
//!
//! Events of the same millisecond leave in the order in which they entered, so that a run can be
//! repeated. The queue does not interpret events.

use std::collections::BTreeMap;

/// Number of milliseconds that are sorted one by one. Later events lie in a list per stretch of
/// that length, which is sorted when it begins. 65 s: most events are planned for less than that
/// ahead.
const SLOTS: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 16;
const SLOT_MASK: u64 = SLOTS as u64 - 1;
const NONE: u32 = u32::MAX;

/// Timing wheel: constant time per event, and no allocation while it does not grow.
#[derive(Debug)]
pub(crate) struct Wheel<E> {
    cells: Vec<Cell<E>>,
    free: u32,
    slots: Vec<List>,
    /// Bit set of the slots that have events.
    occupied: Vec<u64>,
    /// Lists of later stretches.
    far: BTreeMap<u64, List>,
    stretch: u64,
    now: u64,
}

#[derive(Debug)]
struct Cell<E> {
    event: E,
    next: u32,
    slot: u16,
}

/// Chain of cells, first in, first out.
#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

const EMPTY: List = List {
    head: NONE,
    tail: NONE,
};

impl<E: Copy> Wheel<E> {
    /// Creates an empty queue that starts at `now`.
    pub(crate) fn new(now: u64) -> Self {
        Self {
            cells: Vec::new(),
            free: NONE,
            slots: vec![EMPTY; SLOTS],
            occupied: vec![0; SLOTS / 64],
            far: BTreeMap::new(),
            stretch: now >> SLOT_BITS,
            now,
        }
    }

    /// Plans an event; one in the past comes next.
    pub(crate) fn push(&mut self, at: u64, event: E) {
        let at = at.max(self.now);
        let slot = slot_of(at);
        let cell = self.allocate(event, slot);
        let stretch = at >> SLOT_BITS;
        if stretch == self.stretch {
            self.append(slot, cell);
        } else {
            let list = self.far.entry(stretch).or_insert(EMPTY);
            chain(&mut self.cells, list, cell);
        }
    }

    /// Takes the next event, unless it comes later than `until`.
    pub(crate) fn pop(&mut self, until: u64) -> Option<(u64, E)> {
        loop {
            if let Some(slot) = self.next_occupied() {
                let at = (self.stretch << SLOT_BITS) | u64::from(slot);
                if at > until {
                    return None;
                }
                self.now = at;
                return Some((at, self.take_first(slot)));
            }
            let (&stretch, _) = self.far.first_key_value()?;
            if stretch << SLOT_BITS > until {
                return None;
            }
            self.enter(stretch);
        }
    }

    fn allocate(&mut self, event: E, slot: u16) -> u32 {
        let cell = Cell {
            event,
            next: NONE,
            slot,
        };
        if self.free == NONE {
            self.cells.push(cell);
            return u32::try_from(self.cells.len() - 1).expect("memory ends before indices do");
        }
        let at = self.free;
        self.free = self.cells[at as usize].next;
        self.cells[at as usize] = cell;
        at
    }

    fn append(&mut self, slot: u16, cell: u32) {
        chain(&mut self.cells, &mut self.slots[usize::from(slot)], cell);
        self.occupied[usize::from(slot / 64)] |= 1 << (slot % 64);
    }

    fn take_first(&mut self, slot: u16) -> E {
        let list = &mut self.slots[usize::from(slot)];
        let at = list.head;
        let cell = &mut self.cells[at as usize];
        list.head = cell.next;
        if list.head == NONE {
            list.tail = NONE;
            self.occupied[usize::from(slot / 64)] &= !(1 << (slot % 64));
        }
        cell.next = self.free;
        self.free = at;
        cell.event
    }

    /// Returns the next slot that has events.
    fn next_occupied(&self) -> Option<u16> {
        let from = if self.now >> SLOT_BITS == self.stretch {
            usize::from(slot_of(self.now))
        } else {
            0
        };
        let mut mask = u64::MAX << (from % 64);
        for word in from / 64..self.occupied.len() {
            let bits = self.occupied[word] & mask;
            if bits != 0 {
                let slot = word * 64 + bits.trailing_zeros() as usize;
                return u16::try_from(slot).ok();
            }
            mask = u64::MAX;
        }
        None
    }

    /// Sorts the list of a stretch into its slots, in the order in which they were planned.
    fn enter(&mut self, stretch: u64) {
        self.stretch = stretch;
        let Some(list) = self.far.remove(&stretch) else {
            return;
        };
        let mut at = list.head;
        while at != NONE {
            let cell = &mut self.cells[at as usize];
            let next = std::mem::replace(&mut cell.next, NONE);
            let slot = cell.slot;
            self.append(slot, at);
            at = next;
        }
    }
}

fn chain<E>(cells: &mut [Cell<E>], list: &mut List, cell: u32) {
    if list.tail == NONE {
        list.head = cell;
    } else {
        cells[list.tail as usize].next = cell;
    }
    list.tail = cell;
}

fn slot_of(at: u64) -> u16 {
    (at & SLOT_MASK) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(wheel: &mut Wheel<u32>, until: u64) -> Vec<(u64, u32)> {
        std::iter::from_fn(|| wheel.pop(until)).collect()
    }

    #[test]
    fn events_come_by_time_and_then_in_their_planned_order() {
        let mut wheel = Wheel::new(1_000);
        for (at, event) in [(5_000, 1), (2_000, 2), (5_000, 3), (900_000, 4), (2_000, 5)] {
            wheel.push(at, event);
        }
        wheel.push(900_000, 6);
        let all = drain(&mut wheel, u64::MAX);
        let expected = [
            (2_000, 2),
            (2_000, 5),
            (5_000, 1),
            (5_000, 3),
            (900_000, 4),
            (900_000, 6),
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn of_simultaneous_events_the_one_planned_earlier_comes_first() {
        let mut wheel = Wheel::new(0);
        wheel.push(70_000, 1);
        wheel.push(66_000, 2);
        assert_eq!(wheel.pop(66_000), Some((66_000, 2)));
        wheel.push(70_000, 3);
        assert_eq!(drain(&mut wheel, u64::MAX), [(70_000, 1), (70_000, 3)]);
    }

    #[test]
    fn no_event_comes_early_and_a_past_one_comes_next() {
        let mut wheel = Wheel::new(0);
        wheel.push(10, 1);
        assert_eq!(wheel.pop(9), None);
        assert_eq!(wheel.pop(10), Some((10, 1)));
        wheel.push(3, 2);
        assert_eq!(wheel.pop(10), Some((10, 2)));
        wheel.push(200_000, 3);
        assert_eq!(wheel.pop(199_999), None);
        wheel.push(199_999, 4);
        assert_eq!(drain(&mut wheel, 200_000), [(199_999, 4), (200_000, 3)]);
    }
}
