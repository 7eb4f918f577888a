//! Watermark: the arrival up to which waiting visitors may take a slot. The one rule of the queue.
//!
//! Pure arithmetic over counts; [`crate::waiting`] knows the visitors, and the ledger the free
//! slots.

mod counts;

use alloc::vec::Vec;

use crate::time::{DurationMs, Timestamp};
pub use counts::WaitingCounts;

/// Width of an arrival bucket. A second: within it the first to refresh is served first; narrower
/// buckets would promise an order that clocks of several nodes do not have.
pub const BUCKET: DurationMs = DurationMs(1_000);

/// Waiting visitors who may take a slot now.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Watermark {
    /// Empty set: no slot is free.
    #[default]
    Nobody,
    /// Visitors who arrived in this bucket or an earlier one.
    UpTo(Timestamp),
    /// Everybody, newcomers included: all waiting visitors fit and slots are left over.
    Open,
}

/// Ranks within a bucket. Hundreds who come in one second would have one rank otherwise, and no
/// page could tell them when it is their turn.
pub const RANKS_IN_BUCKET: u64 = 8;
/// Difference of two ranks.
const RANK_STEP: DurationMs = DurationMs(BUCKET.0 / RANKS_IN_BUCKET);

/// Ranks at the front of the queue that [`compact`] keeps exact. The watermark moves within them
/// until the next snapshot.
pub const EXACT_RANKS: usize = 32;
/// Most groups that [`compact`] makes of all later ranks.
const GROUPS: usize = 32;
/// Groups of one width; those behind them are twice as wide.
const GROUPS_OF_WIDTH: usize = 4;

/// Returns the ranks under which a compact list counts these, which rise: the front of the queue
/// one by one, the rest in groups under the end of their time.
///
/// Groups get wider with the distance from the front, so that a position is exact to a part of
/// itself. All nodes make them on the same grids, each twice as wide as the one before, so that the
/// sum of their counts is as exact as each of them.
#[must_use]
pub fn compact_ranks(ranks: &[Timestamp]) -> Vec<Timestamp> {
    if ranks.len() <= EXACT_RANKS + GROUPS {
        return ranks.to_vec();
    }
    let (front, behind) = ranks.split_at(EXACT_RANKS);
    let mut width = RANK_STEP;
    loop {
        let groups = groups_from(behind, width);
        if groups.len() <= GROUPS {
            return front.iter().copied().chain(groups).collect();
        }
        width = width.times(2);
    }
}

/// Returns the ends of groups of which the first have this width.
fn groups_from(ranks: &[Timestamp], mut width: DurationMs) -> Vec<Timestamp> {
    let mut groups: Vec<Timestamp> = Vec::new();
    let mut of_width = 0;
    for &rank in ranks {
        if groups.last().is_some_and(|end| rank <= *end) {
            continue;
        }
        if of_width == GROUPS_OF_WIDTH {
            width = width.times(2);
            of_width = 0;
        }
        groups.push(rank.ceil_to(width));
        of_width += 1;
    }
    // The last one ends with its newest rank, or the positions in it would seem to be lower.
    if let (Some(end), Some(newest)) = (groups.last_mut(), ranks.last()) {
        *end = *newest;
    }
    groups
}

/// Returns the counts in few entries, for a message ([`compact_ranks`]). A watermark computed
/// from them is never newer than the true one.
#[must_use]
pub fn compact(waiting: &WaitingCounts) -> WaitingCounts {
    if waiting.len() <= EXACT_RANKS + GROUPS {
        return waiting.clone();
    }
    let ranks: Vec<Timestamp> = waiting.iter().map(|(rank, _)| rank).collect();
    let mut counts = waiting.iter().peekable();
    let compacted = compact_ranks(&ranks).into_iter().map(|newest| {
        let mut group = 0i64;
        while let Some((_, count)) = counts.next_if(|(bucket, _)| *bucket <= newest) {
            group = group.saturating_add(count);
        }
        (newest, group)
    });
    compacted.collect()
}

/// Returns how many visitors are before `rank` in a compact queue: all in earlier buckets, half of
/// those in the same bucket, and of a group of buckets as many as if they had come evenly.
#[must_use]
pub fn people_before(compacted: &WaitingCounts, rank: Timestamp) -> u32 {
    let mut before = 0i64;
    let mut earlier = Timestamp::ZERO;
    for (at, (bucket, count)) in compacted.iter().enumerate() {
        if bucket < rank {
            before = before.saturating_add(count);
            earlier = bucket;
            continue;
        }
        let part = if at < EXACT_RANKS {
            if bucket == rank { count / 2 } else { 0 }
        } else {
            let width = bucket.since(earlier).0.max(1);
            let until = (rank.since(earlier).0).saturating_sub(RANK_STEP.0 / 2);
            let part = u128::try_from(count).unwrap_or(0) * u128::from(until) / u128::from(width);
            i64::try_from(part).unwrap_or(count).min(count)
        };
        return people(before.saturating_add(part));
    }
    people(before)
}

/// Returns how many visitors share the bucket of `rank` in a compact queue, itself included; none
/// if it is in a group of buckets.
#[must_use]
pub fn people_beside(queue: &WaitingCounts, rank: Timestamp) -> u32 {
    let mut exact = queue.iter().take(EXACT_RANKS);
    let found = exact.find(|(bucket, _)| *bucket == rank);
    found.map_or(0, |(_, count)| people(count))
}

/// Returns a count as a number of people.
#[must_use]
pub fn people(count: i64) -> u32 {
    u32::try_from(count.max(0)).unwrap_or(u32::MAX)
}

impl Watermark {
    /// Returns the newest bucket such that everyone waiting at or before it fits into `slots`. It
    /// is never older than the oldest bucket with a waiting visitor: more arrivals in one second
    /// than `slots` are served in part. It may fall from one computation to the next.
    #[must_use]
    pub fn of(waiting: &WaitingCounts, slots: u32) -> Self {
        if slots == 0 {
            return Self::Nobody;
        }
        let mut fitting = 0i64;
        let mut newest = None;
        for (bucket, count) in waiting.iter().filter(|(_, count)| *count > 0) {
            fitting = fitting.saturating_add(count);
            if fitting > slots.into() {
                return Self::UpTo(newest.unwrap_or(bucket));
            }
            newest = Some(bucket);
        }
        match newest {
            Some(bucket) if fitting == slots.into() => Self::UpTo(bucket),
            _ => Self::Open,
        }
    }

    /// Returns how many of the waiting visitors may take a slot.
    #[must_use]
    pub fn count(self, waiting: &WaitingCounts) -> u32 {
        let covered = waiting
            .iter()
            .take_while(|&(bucket, _)| self.covers(bucket));
        people(covered.map(|(_, count)| count).sum())
    }

    /// Whether a visitor of this bucket may take a slot.
    #[must_use]
    pub fn covers(self, bucket: Timestamp) -> bool {
        match self {
            Self::Nobody => false,
            Self::UpTo(watermark) => bucket <= watermark,
            Self::Open => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(waiting: &[(u64, i64)], slots: u32, expected: Watermark) {
        let counts = waiting.iter().map(|&(b, n)| (Timestamp(b), n)).collect();
        assert_eq!(
            Watermark::of(&counts, slots),
            expected,
            "{waiting:?} {slots}"
        );
    }

    #[test]
    fn everyone_at_or_before_the_watermark_fits() {
        check(&[(1, 3), (2, 3), (3, 3)], 7, Watermark::UpTo(Timestamp(2)));
        check(&[(1, 3), (2, 3), (3, 3)], 6, Watermark::UpTo(Timestamp(2)));
    }

    #[test]
    fn a_second_with_more_arrivals_than_slots_is_served_in_part() {
        check(&[(1, 100), (2, 1)], 7, Watermark::UpTo(Timestamp(1)));
    }

    #[test]
    fn without_slots_nobody_is_eligible() {
        check(&[(1, 1)], 0, Watermark::Nobody);
        check(&[], 0, Watermark::Nobody);
    }

    #[test]
    fn visitors_within_the_watermark_are_counted() {
        let counts = [(Timestamp(1), 3), (Timestamp(2), 3), (Timestamp(3), 3)].into();
        for (watermark, expected) in [
            (Watermark::Nobody, 0),
            (Watermark::UpTo(Timestamp(2)), 6),
            (Watermark::Open, 9),
        ] {
            assert_eq!(watermark.count(&counts), expected, "{watermark:?}");
        }
    }

    #[test]
    fn newcomers_are_eligible_only_if_slots_are_left_over() {
        check(&[(1, 3), (2, 3)], 6, Watermark::UpTo(Timestamp(2)));
        check(&[(1, 3), (2, 3)], 7, Watermark::Open);
        check(&[], 1, Watermark::Open);
    }

    #[test]
    fn a_compact_queue_never_admits_more() {
        let waiting: WaitingCounts = (0..5_000).map(|n| (Timestamp(n * 1_000), 3)).collect();
        let compacted = compact(&waiting);
        assert!(
            compacted.len() <= EXACT_RANKS + GROUPS,
            "{}",
            compacted.len()
        );
        assert_eq!(compacted.total(), 15_000);
        assert_eq!(
            compacted.iter().last().map(|(bucket, _)| bucket),
            waiting.iter().last().map(|(bucket, _)| bucket)
        );
        let newest = |mark| match mark {
            Watermark::Nobody => Timestamp::ZERO,
            Watermark::UpTo(bucket) => bucket,
            Watermark::Open => Timestamp::NEVER,
        };
        for slots in [0, 1, 10, 140, 145, 1_000, 14_999, 15_000, 15_001] {
            let (exact, rough) = (
                Watermark::of(&waiting, slots),
                Watermark::of(&compacted, slots),
            );
            assert!(
                newest(rough) <= newest(exact),
                "{slots}: {rough:?} {exact:?}"
            );
        }
        assert_eq!(Watermark::of(&compacted, 94), Watermark::of(&waiting, 94));
    }

    #[test]
    fn a_position_in_a_group_is_as_if_its_visitors_had_come_evenly() {
        let waiting: WaitingCounts = (0..5_000).map(|n| (Timestamp(n * 1_000), 2)).collect();
        let compacted = compact(&waiting);
        for n in [0u32, 1, 47, 48, 100, 2_500, 4_999] {
            let position = people_before(&compacted, Timestamp(u64::from(n) * 1_000));
            assert_eq!(position, 2 * n + 1, "{n}");
        }
        assert_eq!(people_before(&compacted, Timestamp(9_000_000)), 10_000);
        assert_eq!(people_before(&WaitingCounts::new(), Timestamp(1)), 0);
    }

    #[test]
    fn empty_buckets_do_not_count_as_waiting() {
        check(&[(1, 0), (2, 5)], 3, Watermark::UpTo(Timestamp(2)));
    }
}
