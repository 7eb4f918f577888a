//! A set of visitors whose sessions were ended, of which a copy costs next to nothing.
//!
//! A room's [`View`](super::view::View) is replaced after every logout, under the room's lock, and
//! contains this set. Copied as a whole, ten thousand logouts would cost fifty million steps. So
//! the set stands in buckets that all copies share: a change copies one bucket and no other.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use crate::id::VisitorId;
use crate::sync::Revocation;
use crate::time::Timestamp;

/// How many buckets: the square root of [`REVOKED_MAX`](crate::ledger::REVOKED_MAX), rounded up to
/// a power of two. With fewer of them a change copies more, with more of them a copy of the set
/// does.
const BUCKETS: usize = 128;
/// By the first bits of an id, which are random: reading the buckets in turn is reading in order.
const SHIFT: u32 = u8::BITS - BUCKETS.trailing_zeros();

/// Who may not pass any more, and until when that matters.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RevokedVisitors {
    /// Each in the order of its ids; none at all while the set is empty.
    buckets: Vec<Arc<Bucket>>,
    len: usize,
    confirmed: usize,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Bucket {
    entries: Vec<Entry>,
    /// No entry ends before this.
    first_until: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Entry {
    visitor: VisitorId,
    until: Timestamp,
    origin: Origin,
}

/// From where it is known that a session was ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Origin {
    /// It was ended here, and the parent has not confirmed that.
    Here,
    /// The parent has it on its list.
    Parent,
}

impl Bucket {
    fn find(&self, visitor: VisitorId) -> Result<usize, usize> {
        self.entries
            .binary_search_by_key(&visitor, |entry| entry.visitor)
    }
}

impl RevokedVisitors {
    /// Whether sessions of this visitor were ended.
    #[must_use]
    pub fn contains(&self, visitor: VisitorId) -> bool {
        self.entry(visitor).is_some()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All of them, in the order of their ids. They free no seat: that is the room's business with
    /// its parent.
    pub fn iter(&self) -> impl Iterator<Item = Revocation> + '_ {
        self.entries().map(|entry| Revocation {
            visitor: entry.visitor,
            seat_ends_at: None,
            until: entry.until,
        })
    }

    /// How many the parent has on its list.
    pub(super) fn confirmed(&self) -> usize {
        self.confirmed
    }

    /// From where it is known that this visitor's session was ended, if it was.
    pub(super) fn origin_of(&self, visitor: VisitorId) -> Option<Origin> {
        self.entry(visitor).map(|entry| entry.origin)
    }

    /// Puts a visitor into the set, or replaces what is known of it.
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

    /// Forgets those of whom no ticket can run any more. Buckets where that is nobody stay as they
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

    /// The parent has another list than before. Returns those who were on the old one, in the order
    /// of their ids.
    pub(super) fn forget_parent(&mut self) -> Vec<Revocation> {
        let confirmed = self.entries();
        let confirmed = confirmed.filter(|entry| entry.origin == Origin::Parent);
        let confirmed: Vec<Entry> = confirmed.copied().collect();
        for entry in &confirmed {
            self.put(entry.visitor, entry.until, Origin::Here);
        }
        let freeing_no_seat = confirmed.into_iter().map(|entry| Revocation {
            visitor: entry.visitor,
            seat_ends_at: None,
            until: entry.until,
        });
        freeing_no_seat.collect()
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
    fn ten_thousand_logouts_copy_a_part_of_the_set_that_grows_with_its_root() {
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
    fn whoever_is_over_leaves_the_set_and_nobody_else_is_touched() {
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
    fn all_are_read_in_the_order_of_their_ids() {
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
