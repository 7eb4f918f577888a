//! Newest seat ends by visitor: a bounded memory against parallel and replayed tickets.
//!
//! Without it, six parallel requests with one old ticket would move its seat six times. The room
//! would then seem fuller by five once the old end has passed. Forgetting an entry is harmless for
//! the limits: counts drift upwards only.

use hashbrown::HashMap;

use crate::hash::FixedState;
use crate::id::VisitorId;
use crate::time::{DurationMs, Timestamp};

/// Newest seats by visitor, up to a capacity.
#[derive(Clone, Debug)]
pub struct NewestEnds {
    seats: HashMap<VisitorId, NewestSeat, FixedState>,
    capacity: usize,
    sweep_at: usize,
    swept_at: Timestamp,
}

/// Seat that a visitor was given or had extended last.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NewestSeat {
    /// End of the seat.
    pub ends_at: Timestamp,
    /// Time of the visitor's admission.
    pub accepted_at: Timestamp,
}

impl NewestEnds {
    /// Makes an empty memory for at most `capacity` visitors.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            seats: HashMap::with_hasher(FixedState),
            capacity,
            sweep_at: SWEEP_FIRST,
            swept_at: Timestamp::ZERO,
        }
    }

    /// Returns the newest seat given to `visitor`, if it is remembered.
    #[must_use]
    pub fn of(&self, visitor: VisitorId) -> Option<NewestSeat> {
        self.seats.get(&visitor).copied()
    }

    /// Remembers a seat. Returns `false` if the memory is full.
    pub fn put(&mut self, visitor: VisitorId, seat: NewestSeat, now: Timestamp) -> bool {
        let is_large = self.seats.len() >= self.sweep_at.min(self.capacity);
        if is_large && now.since(self.swept_at) >= SWEEP_PERIOD {
            self.seats.retain(|_, seat| seat.ends_at > now);
            // Doubling keeps the cost of sweeps constant per insertion.
            self.sweep_at = (self.seats.len() * 2).max(SWEEP_FIRST);
            self.swept_at = now;
        }
        if self.seats.len() >= self.capacity && !self.seats.contains_key(&visitor) {
            return false;
        }
        self.seats.insert(visitor, seat);
        true
    }

    /// Iterates over all visitors with their newest seats, in no meaningful order.
    pub fn iter(&self) -> impl Iterator<Item = (VisitorId, NewestSeat)> + '_ {
        self.seats.iter().map(|(visitor, seat)| (*visitor, *seat))
    }

    /// Forgets a visitor who has left.
    pub fn forget(&mut self, visitor: VisitorId) {
        self.seats.remove(&visitor);
    }
}

/// First size at which ended entries are swept out; below it a sweep saves no memory worth having.
const SWEEP_FIRST: usize = 1_024;
/// Shortest time between two sweeps, so that a full memory is not swept for every visitor.
const SWEEP_PERIOD: DurationMs = DurationMs(1_000);

#[cfg(test)]
mod tests {
    use super::*;

    fn visitor(n: u32) -> VisitorId {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&n.to_le_bytes());
        VisitorId(id)
    }

    fn seat(ends_at: u64) -> NewestSeat {
        NewestSeat {
            ends_at: Timestamp(ends_at),
            accepted_at: Timestamp(0),
        }
    }

    #[test]
    fn a_full_memory_forgets_ended_entries_first_and_then_rejects() {
        let mut newest = NewestEnds::new(2);
        assert!(newest.put(visitor(1), seat(5_000), Timestamp(0)));
        assert!(newest.put(visitor(2), seat(90_000), Timestamp(0)));
        assert!(!newest.put(visitor(3), seat(90_000), Timestamp(2_000)));
        assert!(newest.put(visitor(3), seat(90_000), Timestamp(5_000)));
        assert_eq!(newest.of(visitor(1)), None);
        assert_eq!(newest.of(visitor(2)), Some(seat(90_000)));
    }
}
