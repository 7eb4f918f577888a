//! Up to which arrival may those who wait take a slot? The one rule of the queue.
//!
//! Pure arithmetic over counts; who waits is known to [`crate::waiting`], what is free to
//! the ledger.

mod counts;

use crate::time::{DurationMs, Timestamp};
pub use counts::WaitingCounts;

/// Width of an arrival bucket. A second: order inside it is first to ask, first served; narrower
/// buckets would promise an order that clocks of several nodes do not have.
pub const BUCKET: DurationMs = DurationMs(1_000);

/// Who may take a slot now.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Watermark {
    /// Nobody: there is nothing to take.
    #[default]
    Nobody,
    /// Those who arrived in this bucket or an earlier one.
    UpTo(Timestamp),
    /// Everybody, those who come just now included: all who wait fit and slots are left over.
    Open,
}

/// Buckets at the front of the line that are told one by one. The watermark moves through them
/// before it is told anew.
pub const TOLD_EXACTLY: usize = 48;
/// Groups into which all later buckets are put.
const GROUPS: usize = 16;

/// The same counts in few figures, for a message: the front of the line as it is, what stands
/// behind in groups under their newest bucket. A watermark computed from them is never newer than
/// the true one.
#[must_use]
pub fn compact(waiting: &WaitingCounts) -> WaitingCounts {
    if waiting.len() <= TOLD_EXACTLY + GROUPS {
        return waiting.clone();
    }
    let front = waiting.iter().take(TOLD_EXACTLY);
    let in_group = (waiting.len() - TOLD_EXACTLY).div_ceil(GROUPS);
    let mut group = 0u32;
    let behind = waiting.iter().skip(TOLD_EXACTLY).enumerate();
    let grouped = behind.filter_map(|(at, (bucket, count))| {
        group = group.saturating_add(count);
        let is_last = (at + 1) % in_group == 0 || at + 1 == waiting.len() - TOLD_EXACTLY;
        is_last.then(|| (bucket, core::mem::take(&mut group)))
    });
    front.chain(grouped).collect()
}

/// How many stand before `rank` in a line that was told in few figures: all in earlier buckets, and
/// half of those in the same bucket or group.
#[must_use]
pub fn people_before(told: &WaitingCounts, rank: Timestamp) -> u32 {
    let mut before = 0u32;
    for (at, (bucket, count)) in told.iter().enumerate() {
        if bucket < rank {
            before = before.saturating_add(count);
            continue;
        }
        let is_among_them = bucket == rank || at >= TOLD_EXACTLY;
        return before.saturating_add(if is_among_them { count / 2 } else { 0 });
    }
    before
}

/// How many wait beside each other in the bucket of `rank`, itself included, in a line as
/// [`compact`] tells it; none if it stands in a group of buckets.
#[must_use]
pub fn people_beside(line: &WaitingCounts, rank: Timestamp) -> u32 {
    let mut exact = line.iter().take(TOLD_EXACTLY);
    let found = exact.find(|(bucket, _)| *bucket == rank);
    found.map_or(0, |(_, count)| count)
}

impl Watermark {
    /// The newest bucket such that everyone waiting at or before it fits into `slots`, but never
    /// older than the oldest bucket in which somebody waits: a crowd of one second that is larger
    /// than `slots` is served in part. It may fall from one call to the next.
    #[must_use]
    pub fn of(waiting: &WaitingCounts, slots: u32) -> Self {
        if slots == 0 {
            return Self::Nobody;
        }
        let mut fitting = 0u32;
        let mut newest = None;
        for (bucket, count) in waiting.iter().filter(|(_, count)| *count > 0) {
            fitting = fitting.saturating_add(count);
            if fitting > slots {
                return Self::UpTo(newest.unwrap_or(bucket));
            }
            newest = Some(bucket);
        }
        match newest {
            Some(bucket) if fitting == slots => Self::UpTo(bucket),
            _ => Self::Open,
        }
    }

    /// How many of those who wait may take a slot.
    #[must_use]
    pub fn count(self, waiting: &WaitingCounts) -> u32 {
        let covered = waiting
            .iter()
            .take_while(|&(bucket, _)| self.covers(bucket));
        covered.fold(0, |sum, (_, count)| sum.saturating_add(count))
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

    fn check(waiting: &[(u64, u32)], slots: u32, expected: Watermark) {
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
    fn a_crowd_of_one_second_above_the_slots_is_served_in_part() {
        check(&[(1, 100), (2, 1)], 7, Watermark::UpTo(Timestamp(1)));
    }

    #[test]
    fn without_slots_nobody_is_eligible() {
        check(&[(1, 1)], 0, Watermark::Nobody);
        check(&[], 0, Watermark::Nobody);
    }

    #[test]
    fn those_it_covers_are_counted() {
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
    fn a_long_queue_in_few_stats_never_admits_more() {
        let waiting: WaitingCounts = (0..5_000).map(|n| (Timestamp(n * 1_000), 3)).collect();
        let told = compact(&waiting);
        assert!(told.len() <= TOLD_EXACTLY + GROUPS, "{}", told.len());
        assert_eq!(told.total(), 15_000);
        assert_eq!(
            told.iter().last().map(|(bucket, _)| bucket),
            waiting.iter().last().map(|(bucket, _)| bucket)
        );
        let newest = |mark| match mark {
            Watermark::Nobody => Timestamp::ZERO,
            Watermark::UpTo(bucket) => bucket,
            Watermark::Open => Timestamp::NEVER,
        };
        for slots in [0, 1, 10, 140, 145, 1_000, 14_999, 15_000, 15_001] {
            let (exact, rough) = (Watermark::of(&waiting, slots), Watermark::of(&told, slots));
            assert!(
                newest(rough) <= newest(exact),
                "{slots}: {rough:?} {exact:?}"
            );
        }
        assert_eq!(Watermark::of(&told, 141), Watermark::of(&waiting, 141));
    }

    #[test]
    fn a_place_told_in_few_stats_is_off_by_half_a_group() {
        let waiting: WaitingCounts = (0..5_000).map(|n| (Timestamp(n * 1_000), 2)).collect();
        let told = compact(&waiting);
        let group = 2 * (5_000 - 48) / 16 / 2 + 2;
        for n in [0u32, 1, 47, 48, 100, 2_500, 4_999] {
            let place = people_before(&told, Timestamp(u64::from(n) * 1_000));
            let exact = 2 * n + 1;
            let most = if n < 48 { 0 } else { group };
            assert!(place.abs_diff(exact) <= most, "{n}: {place}, not {exact}");
        }
        assert_eq!(people_before(&told, Timestamp(9_000_000)), 10_000);
        assert_eq!(people_before(&WaitingCounts::new(), Timestamp(1)), 0);
    }

    #[test]
    fn empty_buckets_do_not_count_as_waiting() {
        check(&[(1, 0), (2, 5)], 3, Watermark::UpTo(Timestamp(2)));
    }
}
