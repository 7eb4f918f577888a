//! Counts of waiting visitors by bucket: the list that travels with every message and is summed for
//! every reply.
//!
//! It knows no visitors, and no order but that of the buckets.

use alloc::vec::Vec;

use crate::time::Timestamp;

/// Counts of waiting visitors by bucket.
///
/// # Why a list and not a map
///
/// Copies, merges and walks are far more frequent than look-ups of a single bucket, and new buckets
/// come at the end.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct WaitingCounts {
    /// Sorted by bucket. None of them is zero, unless the caller made the list so.
    counts: Vec<(Timestamp, u32)>,
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
    ) -> impl DoubleEndedIterator<Item = (Timestamp, u32)> + ExactSizeIterator + '_ {
        self.counts.iter().copied()
    }

    /// Returns the number of waiting visitors, saturating.
    #[must_use]
    pub fn total(&self) -> u32 {
        let counts = self.counts.iter();
        counts.fold(0u32, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Adds `count` visitors to a bucket.
    pub fn add(&mut self, bucket: Timestamp, count: u32) {
        if count == 0 {
            return;
        }
        match self.position(bucket) {
            Ok(at) => self.counts[at].1 = self.counts[at].1.saturating_add(count),
            Err(at) => self.counts.insert(at, (bucket, count)),
        }
    }

    /// Removes `count` visitors from a bucket, or all if there are fewer. Returns how many it
    /// removed.
    pub fn take(&mut self, bucket: Timestamp, count: u32) -> u32 {
        let Ok(at) = self.position(bucket) else {
            return 0;
        };
        let present = self.counts[at].1;
        if present > count {
            self.counts[at].1 = present - count;
            return count;
        }
        self.counts.remove(at);
        present
    }

    /// Adds all counts of `others`.
    pub fn absorb(&mut self, others: &Self) {
        let mut from = 0;
        let mut missing = 0;
        for &(bucket, count) in &others.counts {
            from = self.position_from(from, bucket);
            match self.counts.get_mut(from) {
                Some((known, sum)) if *known == bucket => *sum = sum.saturating_add(count),
                _ => missing += usize::from(count > 0),
            }
        }
        if missing > 0 {
            self.insert_missing(others, missing);
        }
    }

    /// Returns the count of one bucket.
    #[must_use]
    pub fn count_in(&self, bucket: Timestamp) -> u32 {
        self.position(bucket).map_or(0, |at| self.counts[at].1)
    }

    /// Subtracts all counts of `others`, down to zero.
    pub fn subtract(&mut self, others: &Self) {
        let mut from = 0;
        let mut has_empty = false;
        for &(bucket, count) in &others.counts {
            from = self.position_from(from, bucket);
            if let Some((known, sum)) = self.counts.get_mut(from)
                && *known == bucket
            {
                *sum = sum.saturating_sub(count);
                has_empty |= *sum == 0;
            }
        }
        if has_empty {
            self.counts.retain(|(_, count)| *count > 0);
        }
    }

    /// Removes all counts.
    pub fn clear(&mut self) {
        self.counts.clear();
    }

    /// Inserts those buckets of `others` that are not here. Works from the end, so that nothing is
    /// moved twice.
    fn insert_missing(&mut self, others: &Self, missing: usize) {
        let mut own = self.counts.len();
        let mut to = own + missing;
        self.counts.resize(to, (Timestamp::ZERO, 0));
        for &(bucket, count) in others.counts.iter().rev().filter(|(_, count)| *count > 0) {
            while own > 0 && self.counts[own - 1].0 > bucket {
                own -= 1;
                to -= 1;
                self.counts[to] = self.counts[own];
            }
            let is_known = own > 0 && self.counts[own - 1].0 == bucket;
            if !is_known {
                to -= 1;
                self.counts[to] = (bucket, count);
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

impl FromIterator<(Timestamp, u32)> for WaitingCounts {
    fn from_iter<I: IntoIterator<Item = (Timestamp, u32)>>(iter: I) -> Self {
        let mut counts: Vec<(Timestamp, u32)> = Vec::from_iter(iter);
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
        Self { counts }
    }
}

impl<const N: usize> From<[(Timestamp, u32); N]> for WaitingCounts {
    fn from(counts: [(Timestamp, u32); N]) -> Self {
        counts.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use super::*;

    fn counts(of: &[(u64, u32)]) -> WaitingCounts {
        of.iter().map(|&(b, n)| (Timestamp(b), n)).collect()
    }

    #[test]
    fn counts_in_any_order_are_sorted_and_merged_by_bucket() {
        let found = counts(&[(5, 1), (2, 2), (5, 3)]);
        assert_eq!(found, counts(&[(2, 2), (5, 4)]));
        assert_eq!((found.len(), found.total()), (2, 6));
    }

    #[test]
    fn changes_agree_with_an_ordered_map() {
        let mut word = 7u64;
        let mut draw = |below: u64| {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (word >> 33) % below
        };
        let mut found = WaitingCounts::new();
        let mut expected: BTreeMap<Timestamp, u32> = BTreeMap::new();
        for _ in 0..2_000 {
            let length = draw(6);
            let others: WaitingCounts = (0..length)
                .map(|_| (Timestamp(draw(40)), u32::try_from(draw(4)).unwrap()))
                .collect();
            if draw(2) == 0 {
                found.absorb(&others);
                for (bucket, count) in others.iter().filter(|(_, count)| *count > 0) {
                    *expected.entry(bucket).or_insert(0) += count;
                }
            } else {
                found.subtract(&others);
                for (bucket, count) in others.iter() {
                    let sum = expected.entry(bucket).or_insert(0);
                    *sum = sum.saturating_sub(count);
                }
            }
            let (bucket, count) = (Timestamp(draw(40)), u32::try_from(draw(3)).unwrap());
            if draw(2) == 0 {
                found.add(bucket, count);
                *expected.entry(bucket).or_insert(0) += count;
            } else {
                let present = expected.get(&bucket).copied().unwrap_or(0);
                assert_eq!(found.take(bucket, count), present.min(count));
                expected.insert(bucket, present.saturating_sub(count));
            }
            expected.retain(|_, count| *count > 0);
            let all: Vec<_> = expected.iter().map(|(&b, &n)| (b, n)).collect();
            assert_eq!(found.iter().collect::<Vec<_>>(), all);
        }
    }
}
