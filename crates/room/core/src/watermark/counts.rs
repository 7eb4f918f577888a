//! Counts of waiting visitors by bucket: the list that travels with every message and is summed for
//! every reply.
//!
//! It knows no visitors, and no order but that of the buckets.

use alloc::vec::Vec;

use crate::time::Timestamp;

/// Counts of waiting visitors by bucket. A count may be negative: a node subtracts a visitor that
/// it admitted while another node still counts it.
///
/// # Invariants
///
/// - Buckets rise, and no count is zero.
///
/// # Why a list and not a map
///
/// Copies, merges and walks are far more frequent than look-ups of a single bucket, and new buckets
/// come at the end.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct WaitingCounts {
    counts: Vec<(Timestamp, i64)>,
}

impl WaitingCounts {
    /// Makes empty counts.
    #[must_use]
    pub const fn new() -> Self {
        Self { counts: Vec::new() }
    }

    /// Returns the number of buckets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether there is no bucket.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Iterates over all counts, by bucket.
    pub fn iter(
        &self,
    ) -> impl DoubleEndedIterator<Item = (Timestamp, i64)> + ExactSizeIterator + Clone + '_ {
        self.counts.iter().copied()
    }

    /// Returns the number of waiting visitors.
    #[must_use]
    pub fn total(&self) -> i64 {
        let counts = self.counts.iter();
        counts.fold(0i64, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Adds `count` visitors to a bucket, or subtracts them.
    pub fn add(&mut self, bucket: Timestamp, count: i64) {
        if count == 0 {
            return;
        }
        match self.position(bucket) {
            Ok(at) => {
                let sum = self.counts[at].1.saturating_add(count);
                self.counts[at].1 = sum;
                if sum == 0 {
                    self.counts.remove(at);
                }
            }
            Err(at) => self.counts.insert(at, (bucket, count)),
        }
    }

    /// Adds all counts of `others`.
    pub fn absorb(&mut self, others: &Self) {
        self.combine(others, 1);
    }

    /// Subtracts all counts of `others`.
    pub fn subtract(&mut self, others: &Self) {
        self.combine(others, -1);
    }

    /// Returns the count of one bucket.
    #[must_use]
    pub fn count_in(&self, bucket: Timestamp) -> i64 {
        self.position(bucket).map_or(0, |at| self.counts[at].1)
    }

    /// Returns the counts with a negative one taken from the buckets before it, and then from those
    /// after it. The total stays, unless it is negative.
    ///
    /// Visitors are subtracted in the bucket in which they are counted, unless one of the two is in
    /// a group of buckets ([`super::compact`]).
    #[must_use]
    pub fn shown(&self) -> Self {
        if self.counts.iter().all(|(_, count)| *count > 0) {
            return self.clone();
        }
        let mut shown = self.clone();
        let mut owed = 0i64;
        for (_, count) in shown.counts.iter_mut().rev() {
            settle(count, &mut owed);
        }
        for (_, count) in &mut shown.counts {
            settle(count, &mut owed);
        }
        shown.counts.retain(|(_, count)| *count > 0);
        shown
    }

    /// Takes one visitor out of a bucket, or out of the next bucket that has one: a group of
    /// buckets is counted in its newest one.
    pub fn take_one(&mut self, bucket: Timestamp) {
        let from = self.position(bucket).unwrap_or_else(|at| at);
        if let Some((_, count)) = self.counts.get_mut(from) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(from);
            }
        }
    }

    /// Adds `sign` times the counts of `others`.
    fn combine(&mut self, others: &Self, sign: i64) {
        let mut from = 0;
        let mut missing = 0;
        let mut has_empty = false;
        for &(bucket, count) in &others.counts {
            from = self.position_from(from, bucket);
            match self.counts.get_mut(from) {
                Some((known, sum)) if *known == bucket => {
                    *sum = sum.saturating_add(count * sign);
                    has_empty |= *sum == 0;
                }
                _ => missing += 1,
            }
        }
        if missing > 0 {
            self.insert_missing(others, missing, sign);
        }
        if has_empty {
            self.counts.retain(|(_, count)| *count != 0);
        }
    }

    /// Inserts those buckets of `others` that are not here. Works from the end, so that nothing is
    /// moved twice.
    fn insert_missing(&mut self, others: &Self, missing: usize, sign: i64) {
        let mut own = self.counts.len();
        let mut to = own + missing;
        self.counts.resize(to, (Timestamp::ZERO, 0));
        for &(bucket, count) in others.counts.iter().rev() {
            while own > 0 && self.counts[own - 1].0 > bucket {
                own -= 1;
                to -= 1;
                self.counts[to] = self.counts[own];
            }
            let is_known = own > 0 && self.counts[own - 1].0 == bucket;
            if !is_known {
                to -= 1;
                self.counts[to] = (bucket, count * sign);
            }
        }
    }

    fn position(&self, bucket: Timestamp) -> Result<usize, usize> {
        // Most often it is the newest one, or newer.
        match self.counts.last() {
            Some((newest, _)) if *newest < bucket => Err(self.counts.len()),
            Some((newest, _)) if *newest == bucket => Ok(self.counts.len() - 1),
            _ => self
                .counts
                .binary_search_by_key(&bucket, |(known, _)| *known),
        }
    }

    /// Returns the first index from `from` on whose bucket is not before this one. A caller that
    /// walks both lists finds it near.
    fn position_from(&self, from: usize, bucket: Timestamp) -> usize {
        let rest = &self.counts[from..];
        let mut reach = 1;
        while rest
            .get(reach - 1)
            .is_some_and(|(known, _)| *known < bucket)
        {
            reach *= 2;
        }
        let near = &rest[reach / 2..rest.len().min(reach)];
        from + reach / 2 + near.partition_point(|(known, _)| *known < bucket)
    }
}

/// Takes what is owed out of a count. A negative count adds to what is owed.
fn settle(count: &mut i64, owed: &mut i64) {
    let left = count.saturating_sub(*owed);
    *count = left.max(0);
    *owed = left.saturating_neg().max(0);
}

impl FromIterator<(Timestamp, i64)> for WaitingCounts {
    fn from_iter<I: IntoIterator<Item = (Timestamp, i64)>>(iter: I) -> Self {
        let mut counts: Vec<(Timestamp, i64)> = Vec::from_iter(iter);
        if !counts.is_sorted_by(|a, b| a.0 < b.0) {
            counts.sort_by_key(|(bucket, _)| *bucket);
            counts.dedup_by(|later, kept| {
                let is_same = later.0 == kept.0;
                if is_same {
                    kept.1 = kept.1.saturating_add(later.1);
                }
                is_same
            });
        }
        counts.retain(|(_, count)| *count != 0);
        Self { counts }
    }
}

impl<const N: usize> From<[(Timestamp, i64); N]> for WaitingCounts {
    fn from(counts: [(Timestamp, i64); N]) -> Self {
        counts.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use super::*;

    fn counts(of: &[(u64, i64)]) -> WaitingCounts {
        of.iter().map(|&(b, n)| (Timestamp(b), n)).collect()
    }

    #[test]
    fn counts_in_any_order_are_sorted_and_merged_by_bucket() {
        let found = counts(&[(5, 1), (2, 2), (5, 3), (9, 1), (9, -1)]);
        assert_eq!(found, counts(&[(2, 2), (5, 4)]));
        assert_eq!((found.len(), found.total()), (2, 6));
    }

    #[test]
    fn negative_counts_are_shown_in_the_buckets_beside_them() {
        let check = |of: &[(u64, i64)], expected: &[(u64, i64)]| {
            assert_eq!(counts(of).shown(), counts(expected), "{of:?}");
        };
        check(&[(1, 2), (2, 3)], &[(1, 2), (2, 3)]);
        check(&[(1, 2), (2, 1), (3, -2), (4, 5)], &[(1, 1), (4, 5)]);
        check(&[(1, -2), (2, 1), (3, 4)], &[(3, 3)]);
        check(&[(1, 1), (2, -2), (3, 4)], &[(3, 3)]);
        check(&[(1, 1), (2, -2)], &[]);
    }

    #[test]
    fn a_visitor_is_taken_out_of_its_bucket_or_of_the_group_that_has_it() {
        let mut queue = counts(&[(1, 1), (2, 3), (9, 5)]);
        for bucket in [1, 2, 7, 10] {
            queue.take_one(Timestamp(bucket));
        }
        assert_eq!(queue, counts(&[(2, 2), (9, 4)]));
    }

    #[test]
    fn changes_agree_with_an_ordered_map() {
        let mut word = 7u64;
        let mut draw = |below: u64| {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (word >> 33) % below
        };
        let mut found = WaitingCounts::new();
        let mut expected: BTreeMap<Timestamp, i64> = BTreeMap::new();
        for _ in 0..2_000 {
            let length = draw(6);
            let others: WaitingCounts = (0..length)
                .map(|_| (Timestamp(draw(40)), i64::try_from(draw(7)).unwrap() - 3))
                .collect();
            let sign = if draw(2) == 0 {
                found.absorb(&others);
                1
            } else {
                found.subtract(&others);
                -1
            };
            for (bucket, count) in others.iter() {
                *expected.entry(bucket).or_insert(0) += sign * count;
            }
            let (bucket, count) = (Timestamp(draw(40)), i64::try_from(draw(5)).unwrap() - 2);
            found.add(bucket, count);
            *expected.entry(bucket).or_insert(0) += count;
            expected.retain(|_, count| *count != 0);
            let all: Vec<_> = expected.iter().map(|(&b, &n)| (b, n)).collect();
            assert_eq!(found.iter().collect::<Vec<_>>(), all);
            assert!(found.shown().iter().all(|(_, count)| count > 0));
            assert_eq!(found.shown().total(), found.total().max(0));
        }
    }
}
