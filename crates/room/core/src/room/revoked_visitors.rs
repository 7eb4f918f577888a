//! Set of visitors with revoked sessions; a copy of it costs next to nothing.
//!
//! A room's [`View`](super::view::View) contains this set, and is replaced after every logout under
//! the room's lock. With full copies, ten thousand logouts would cost fifty million steps. So the
//! set is in buckets that all copies share: a change copies one bucket and no other.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use crate::id::VisitorId;
use crate::sync::Revocation;
use crate::time::Timestamp;

/// Number of buckets: the square root of [`REVOKED_MAX`](crate::ledger::REVOKED_MAX), rounded up to
/// a power of two. With fewer, a change copies more; with more, a copy of the set does.
const BUCKETS: usize = 128;
/// Shift of an id's first byte to its bucket. Its bits are random, and buckets in turn are in
/// order.
const SHIFT: u32 = u8::BITS - BUCKETS.trailing_zeros();

/// Visitors with revoked sessions, and the times until which their tickets may run.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RevokedVisitors {
    /// Buckets, each sorted by id; none at all while the set is empty.
    buckets: Vec<Arc<Bucket>>,
    len: usize,
    confirmed: usize,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Bucket {
    entries: Vec<Entry>,
    /// Time before which no entry ends.
    first_until: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Entry {
    visitor: VisitorId,
    until: Timestamp,
    origin: Origin,
}

/// Source of a revocation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Origin {
    /// Revoked here, and not confirmed by the parent.
    Here,
    /// Part of the parent's list.
    Parent,
}

impl Bucket {
    fn find(&self, visitor: VisitorId) -> Result<usize, usize> {
        self.entries
            .binary_search_by_key(&visitor, |entry| entry.visitor)
    }
}

impl RevokedVisitors {
    /// Whether sessions of this visitor were revoked.
    #[must_use]
    pub fn contains(&self, visitor: VisitorId) -> bool {
        self.entry(visitor).is_some()
    }

    /// Returns the number of visitors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Iterates over all of them, by id, as revocations that free no seat.
    pub fn iter(&self) -> impl Iterator<Item = Revocation> + '_ {
        self.entries().map(|entry| Revocation {
            visitor: entry.visitor,
            seat_ends_at: None,
            until: entry.until,
        })
    }

    /// Returns the number of visitors on the parent's list.
    pub(super) fn confirmed(&self) -> usize {
        self.confirmed
    }

    /// Returns the source of this visitor's revocation, if there is one.
    pub(super) fn origin_of(&self, visitor: VisitorId) -> Option<Origin> {
        self.entry(visitor).map(|entry| entry.origin)
    }

    /// Inserts or replaces a visitor.
    pub(super) fn put(&mut self, visitor: VisitorId, until: Timestamp, origin: Origin) {
        if self.buckets.is_empty() {
            self.buckets = vec![Arc::default(); BUCKETS];
        }
        let bucket = Arc::make_mut(&mut self.buckets[bucket_of(visitor)]);
        let entry = Entry {
            visitor,
            until,
            origin,
        };
        match bucket.find(visitor) {
            Ok(at) => {
                let known = core::mem::replace(&mut bucket.entries[at], entry);
                self.confirmed -= usize::from(known.origin == Origin::Parent);
            }
            Err(at) => {
                bucket.entries.insert(at, entry);
                self.len += 1;
            }
        }
        self.confirmed += usize::from(origin == Origin::Parent);
        bucket.first_until = Some(bucket.first_until.map_or(until, |first| first.min(until)));
    }

    /// Removes entries whose tickets have all expired. Buckets without such entries stay as they
    /// are.
    pub(super) fn drop_through(&mut self, now: Timestamp) {
        for bucket in &mut self.buckets {
            if bucket.first_until.is_none_or(|first| first > now) {
                continue;
            }
            let bucket = Arc::make_mut(bucket);
            bucket.entries.retain(|entry| {
                let is_over = entry.until <= now;
                self.len -= usize::from(is_over);
                self.confirmed -= usize::from(is_over && entry.origin == Origin::Parent);
                !is_over
            });
            bucket.first_until = bucket.entries.iter().map(|entry| entry.until).min();
        }
        if self.len == 0 {
            self.buckets = Vec::new();
        }
    }

    /// Prepares for another list of the parent. Returns the entries of the old one, by id.
    pub(super) fn forget_parent(&mut self) -> Vec<Revocation> {
        let confirmed = self.entries();
        let confirmed = confirmed.filter(|entry| entry.origin == Origin::Parent);
        let confirmed: Vec<Entry> = confirmed.copied().collect();
        for entry in &confirmed {
            self.put(entry.visitor, entry.until, Origin::Here);
        }
        let without_seats = confirmed.into_iter().map(|entry| Revocation {
            visitor: entry.visitor,
            seat_ends_at: None,
            until: entry.until,
        });
        without_seats.collect()
    }

    fn entry(&self, visitor: VisitorId) -> Option<&Entry> {
        let bucket = self.buckets.get(bucket_of(visitor))?;
        let at = bucket.find(visitor).ok()?;
        Some(&bucket.entries[at])
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.buckets.iter().flat_map(|bucket| &bucket.entries)
    }
}

fn bucket_of(visitor: VisitorId) -> usize {
    usize::from(visitor.0[0] >> SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::REVOKED_MAX;
    use crate::time::DurationMs;

    const NOW: Timestamp = Timestamp(1_000);

    /// Ids as random as those of visitors.
    fn id(number: u64) -> VisitorId {
        let spread = u128::from(number).wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645);
        VisitorId(spread.to_be_bytes())
    }

    #[test]
    fn ten_thousand_logouts_copy_few_entries() {
        let mut set = RevokedVisitors::default();
        let mut copied = 0;
        for number in 0..REVOKED_MAX as u64 {
            let view = set.clone();
            set.put(id(number), NOW, Origin::Here);
            let buckets = set.buckets.iter().enumerate();
            let own = buckets.filter(|&(at, bucket)| {
                let shown = view.buckets.get(at);
                !shown.is_some_and(|shown| Arc::ptr_eq(shown, bucket))
            });
            copied += own.map(|(_, bucket)| bucket.entries.len()).sum::<usize>();
        }
        assert_eq!(set.len(), REVOKED_MAX);
        assert!(set.contains(id(7)) && !set.contains(id(REVOKED_MAX as u64)));
        // As a whole: 50 005 000 entries.
        assert!(copied < REVOKED_MAX * 60, "{copied} entries");
    }

    #[test]
    fn expired_entries_leave_and_other_buckets_stay_shared() {
        let mut set = RevokedVisitors::default();
        for number in 0..1_000 {
            set.put(id(number), NOW + DurationMs(number), Origin::Parent);
        }
        let view = set.clone();
        set.drop_through(NOW - DurationMs(1));
        let pairs = set.buckets.iter().zip(&view.buckets);
        assert!(
            pairs
                .into_iter()
                .all(|(own, shown)| Arc::ptr_eq(own, shown))
        );
        set.drop_through(NOW + DurationMs(600));
        assert_eq!((set.len(), set.confirmed()), (399, 399));
        assert!(!set.contains(id(600)) && set.contains(id(601)));
        assert!(view.contains(id(600)), "a copy stays as it was");
        set.drop_through(NOW + DurationMs(999));
        assert_eq!(set, RevokedVisitors::default());
    }

    #[test]
    fn entries_are_read_in_the_order_of_ids() {
        let mut set = RevokedVisitors::default();
        let mut ids: Vec<_> = (0..1_000).map(id).collect();
        for &visitor in &ids {
            set.put(visitor, NOW, Origin::Here);
        }
        ids.sort_unstable();
        let read: Vec<_> = set.iter().map(|entry| entry.visitor).collect();
        assert_eq!(read, ids);
    }
}
