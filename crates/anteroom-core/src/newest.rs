//! Which end did we last give this visitor? A bounded memory against parallel and replayed tickets.
//!
//! Without it, six parallel requests with one old ticket would move its seat six times, and the
//! room would seem fuller by five once the old end has passed. Forgetting an entry is therefore
//! harmless for the limits: counts drift upwards only.

use hashbrown::HashMap;

use crate::hash::FixedState;
use crate::id::VisitorId;
use crate::time::Millis;

/// Newest ends by visitor.
#[derive(Clone, Debug)]
pub struct NewestEnds {
    ends: HashMap<VisitorId, Millis, FixedState>,
    capacity: usize,
    sweep_at: usize,
}

impl NewestEnds {
    /// An empty memory for at most `capacity` visitors.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            ends: HashMap::with_hasher(FixedState),
            capacity,
            sweep_at: SWEEP_FIRST,
        }
    }

    /// The newest end given to `visitor`, if it is remembered.
    #[must_use]
    pub fn of(&self, visitor: VisitorId) -> Option<Millis> {
        self.ends.get(&visitor).copied()
    }

    /// Remembers an end. Returns `false` if there was no room.
    pub fn put(&mut self, visitor: VisitorId, ends_at: Millis, now: Millis) -> bool {
        if self.ends.len() >= self.sweep_at.min(self.capacity) {
            self.ends.retain(|_, end| *end > now);
            // Doubling keeps the cost of sweeps constant per insertion.
            self.sweep_at = (self.ends.len() * 2).max(SWEEP_FIRST);
        }
        if self.ends.len() >= self.capacity && !self.ends.contains_key(&visitor) {
            return false;
        }
        self.ends.insert(visitor, ends_at);
        true
    }

    /// Forgets a visitor who has left.
    pub fn forget(&mut self, visitor: VisitorId) {
        self.ends.remove(&visitor);
    }
}

/// First size at which ended entries are swept out; below it a sweep saves no memory worth having.
const SWEEP_FIRST: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    fn visitor(n: u32) -> VisitorId {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&n.to_le_bytes());
        VisitorId(id)
    }

    #[test]
    fn a_full_memory_forgets_ended_entries_first_and_refuses_after_that() {
        let mut newest = NewestEnds::new(2);
        assert!(newest.put(visitor(1), Millis(10), Millis(0)));
        assert!(newest.put(visitor(2), Millis(90), Millis(0)));
        assert!(!newest.put(visitor(3), Millis(90), Millis(5)));
        assert!(newest.put(visitor(3), Millis(90), Millis(10)));
        assert_eq!(newest.of(visitor(1)), None);
        assert_eq!(newest.of(visitor(2)), Some(Millis(90)));
    }
}
