//! Waiting visitors by rank, now and later if none of them refreshes: what a child reports, so that
//! its parent can go on without it.
//!
//! A node that is lost counts nobody any more, and its visitors refresh elsewhere. Each of them
//! carries the time until which it is counted, and another node counts it from then on. So the
//! parent lets the counts of a silent child run out at the times at which the child would have.

use alloc::vec::Vec;

use super::schedule::COUNT_GRAIN;
use crate::time::{DurationMs, Timestamp};
use crate::watermark::{WaitingCounts, compact_buckets};

/// Times of a forecast in milliseconds after the edge of the grid at which it begins.
///
/// Up to [`STEPS_UNTIL`] every change is at one of them. Later ones are up to two seconds apart,
/// and between two of them the count is a line. If they were further apart, visitors who refresh
/// together would be counted for too long.
const OFFSETS: [u64; POINTS] = offsets();
const POINTS: usize = 48;
const STEPS_UNTIL: u64 = 4_000;

const fn offsets() -> [u64; POINTS] {
    let mut offsets = [0; POINTS];
    let mut at = 1;
    while at < POINTS {
        let before = offsets[at - 1];
        offsets[at] = before
            + if before < STEPS_UNTIL {
                COUNT_GRAIN.0
            } else if before < 8_000 {
                1_000
            } else {
                2_000
            };
        at += 1;
    }
    offsets
}

/// Longest time for which a visitor is counted without a refresh: the longest refresh interval of
/// about 61 s, a quarter of it, a second, and a second by which clocks may differ.
pub const COUNTED_MAX: DurationMs = DurationMs(79_000);

/// Time after which nothing of a forecast counts: [`COUNTED_MAX`], rounded up.
const OVER_AFTER: u64 = 80_000;

/// Counts of one rank at the times of a forecast.
pub type ForecastCounts = [i64; POINTS];

/// Counts of a rank without visitors.
pub const NOBODY: ForecastCounts = [0; POINTS];

/// Waiting visitors by rank, now and later if none of them refreshes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct WaitingForecast {
    /// Edge of the grid at or before the time of the forecast, by the clock that made it.
    from: Timestamp,
    /// Time by which it is followed later, because the next one may be late. If visitors of a child
    /// far away ran out between two of its reports, they would be counted only now and then.
    late: DurationMs,
    /// Counts by rank, rising.
    ranks: Vec<(Timestamp, ForecastCounts)>,
}

impl WaitingForecast {
    /// Makes a forecast at `now` in which these ranks, which rise, are compact and have no
    /// visitors.
    pub(super) fn of_ranks(ranks: &[Timestamp], now: Timestamp) -> Self {
        let buckets = compact_buckets(ranks).into_iter();
        Self {
            from: now.floor_to(COUNT_GRAIN),
            late: DurationMs::ZERO,
            ranks: buckets.map(|rank| (rank, NOBODY)).collect(),
        }
    }

    /// Makes a forecast of visitors who are counted for as long as possible.
    #[cfg(test)]
    pub(crate) fn constant(counts: &WaitingCounts, now: Timestamp) -> Self {
        let ranks = counts.iter().map(|(rank, count)| (rank, [count; POINTS]));
        Self {
            from: now.floor_to(COUNT_GRAIN),
            late: DurationMs::ZERO,
            ranks: ranks.collect(),
        }
    }

    /// Makes a forecast from its parts. Ranks rise; others are left out.
    #[must_use]
    pub fn from_parts(
        (from, late): (Timestamp, DurationMs),
        ranks: impl Iterator<Item = (Timestamp, ForecastCounts)>,
    ) -> Self {
        let mut rising: Vec<(Timestamp, ForecastCounts)> = Vec::new();
        for (rank, counts) in ranks {
            if rising.last().is_none_or(|(newest, _)| *newest < rank) {
                rising.push((rank, counts));
            }
        }
        Self {
            from,
            late,
            ranks: rising,
        }
    }

    /// Adds up forecasts at `now`, each with the time by the clock that made it.
    pub(crate) fn sum<'a>(
        parts: impl Iterator<Item = (&'a Self, Timestamp)> + Clone,
        now: Timestamp,
    ) -> Self {
        let ranks = parts.clone().flat_map(|(part, _)| part.ranks.iter());
        let mut ranks: Vec<Timestamp> = ranks.map(|(rank, _)| *rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        let mut sum = Self::of_ranks(&ranks, now);
        for (part, at) in parts {
            let from = at.floor_to(COUNT_GRAIN);
            for (point, offset) in OFFSETS.into_iter().enumerate() {
                let counts = part.counts_at(from + DurationMs(offset));
                sum.add_at(point, &counts);
            }
        }
        sum.without_empty()
    }

    /// Adds a change of the counts at a time. [`Self::accumulated`] makes counts of changes.
    pub(super) fn add_change(&mut self, at: Timestamp, change: &WaitingCounts) {
        let after = at.since(self.from).0;
        let point = OFFSETS.partition_point(|offset| *offset < after);
        if point < POINTS {
            self.add_at(point, change);
        }
    }

    /// Returns the forecast of which this one has the changes.
    pub(super) fn accumulated(mut self) -> Self {
        for (_, counts) in &mut self.ranks {
            let mut sum = 0i64;
            for count in counts {
                sum = sum.saturating_add(*count);
                *count = sum;
            }
        }
        self.without_empty()
    }

    /// Adds counts at one of the times. Every rank is in a group, or the newest group takes it.
    fn add_at(&mut self, point: usize, counts: &WaitingCounts) {
        let mut at = 0;
        for (rank, count) in counts.iter() {
            while at + 1 < self.ranks.len() && self.ranks[at].0 < rank {
                at += 1;
            }
            if let Some((_, sums)) = self.ranks.get_mut(at) {
                sums[point] = sums[point].saturating_add(count);
            }
        }
    }

    /// Returns the forecast without ranks in which nobody is counted at any time.
    fn without_empty(mut self) -> Self {
        self.ranks.retain(|(_, counts)| *counts != NOBODY);
        self
    }

    /// Returns the forecast of a child whose next report may be so late.
    pub(crate) fn with_late_reports(self, late: DurationMs) -> Self {
        Self { late, ..self }
    }

    /// Returns the time by which it is followed later.
    #[must_use]
    pub fn late(&self) -> DurationMs {
        self.late
    }

    /// Whether nobody is counted, now or later.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// Whether nobody is counted from a time on.
    fn is_over(&self, at: Timestamp) -> bool {
        let after = at.since(self.from).0;
        let point = OFFSETS.partition_point(|offset| *offset <= after) - 1;
        let counts_nobody = |counts: &ForecastCounts| counts[point..].iter().all(|n| *n == 0);
        after >= OVER_AFTER || self.ranks.iter().all(|(_, counts)| counts_nobody(counts))
    }

    /// Returns the edge of the grid at which it begins.
    #[must_use]
    pub fn from(&self) -> Timestamp {
        self.from
    }

    /// Returns the counts at a time by the clock that made it.
    #[must_use]
    pub fn counts_at(&self, at: Timestamp) -> WaitingCounts {
        let after = at.since(self.from).0;
        if after >= OVER_AFTER {
            return WaitingCounts::new();
        }
        let next = OFFSETS.partition_point(|offset| *offset <= after);
        let point = next - 1;
        if after < STEPS_UNTIL {
            return self
                .ranks
                .iter()
                .map(|(rank, counts)| (*rank, counts[point]))
                .collect();
        }
        let begins = OFFSETS[point];
        let ends = OFFSETS.get(next).copied().unwrap_or(OVER_AFTER);
        let [since, width] = [after - begins, ends - begins].map(i128::from);
        // Rounded as a sum from the front on, so that many small counts are right together.
        let mut exact = 0i128;
        let mut rounded = 0i128;
        let counts = self.ranks.iter().map(|(rank, counts)| {
            let from = i128::from(counts[point]);
            let to = i128::from(counts.get(next).copied().unwrap_or(0));
            exact += from * width + (to - from) * since;
            let sum = (exact * 2 + width).div_euclid(width * 2);
            let count = sum - rounded;
            rounded = sum;
            (*rank, i64::try_from(count).unwrap_or(0))
        });
        counts.collect()
    }

    /// Iterates over the counts at all times, by rank.
    pub fn iter(&self) -> impl Iterator<Item = (Timestamp, &ForecastCounts)> {
        self.ranks.iter().map(|(rank, counts)| (*rank, counts))
    }
}

/// Forecast of a child as its parent has it, and the time up to which its parent has followed it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ReportedWaiting {
    /// Forecast in the newest report.
    pub forecast: WaitingForecast,
    /// Time of that report by the child's clock.
    pub sent_at: Timestamp,
    /// Milliseconds by which that clock is ahead of those of most children; 0 if they agree.
    pub ahead_ms: i64,
    /// Time by the child's clock for which its visitors are in the sums.
    pub counted_at: Timestamp,
}

/// Most by which the clock of a child may differ from those of the others for its forecast to be
/// followed by the same clock. So a visitor whose count passes from one child to another at a time
/// is in the sums once, whatever the time is.
const CLOCKS_AGREE: i64 = 2_000;

impl ReportedWaiting {
    /// Makes a report that a child sent at a time by its clock. `clock_at` is the time by the
    /// clocks of most children.
    pub(crate) fn new(forecast: WaitingForecast, sent_at: Timestamp, clock_at: Timestamp) -> Self {
        let [own, other] = [sent_at, clock_at].map(|at| i64::try_from(at.0).unwrap_or(i64::MAX));
        let ahead_ms = own.saturating_sub(other);
        let agrees = ahead_ms.abs() <= CLOCKS_AGREE;
        let reported = Self {
            forecast,
            sent_at,
            ahead_ms: if agrees { 0 } else { ahead_ms },
            counted_at: sent_at,
        };
        reported.followed(clock_at)
    }

    /// Returns the visitors who are in the sums.
    pub(crate) fn counts(&self) -> WaitingCounts {
        self.forecast.counts_at(self.counted_at)
    }

    /// Whether as many visitors of each rank are in the sums as by another report.
    pub(crate) fn counts_as(&self, other: &Self) -> bool {
        self.forecast == other.forecast && self.counted_at == other.counted_at
    }

    /// Returns the report as of a time by the clocks of most children.
    pub(crate) fn followed(self, clock_at: Timestamp) -> Self {
        if self.forecast.is_empty() {
            return self;
        }
        let own = Timestamp(clock_at.0.saturating_add_signed(self.ahead_ms));
        let at = (own - self.forecast.late).max(self.sent_at);
        if self.forecast.is_over(at) {
            return Self::default();
        }
        Self {
            counted_at: at,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(100_300);
    const BEGIN: Timestamp = Timestamp(100_000);

    fn counts(of: &[(u64, i64)]) -> WaitingCounts {
        of.iter().map(|&(rank, n)| (Timestamp(rank), n)).collect()
    }

    /// Returns the totals of a forecast so many milliseconds after the edge at which it begins.
    fn totals<const N: usize>(forecast: &WaitingForecast, after: [u64; N]) -> [i64; N] {
        after.map(|ms| forecast.counts_at(forecast.from() + DurationMs(ms)).total())
    }

    #[test]
    fn counts_of_the_next_seconds_change_exactly_when_visitors_are_overdue() {
        let mut forecast = WaitingForecast::of_ranks(&[Timestamp(1)], NOW);
        forecast.add_change(BEGIN, &counts(&[(1, 2)]));
        forecast.add_change(Timestamp(101_500), &counts(&[(1, -1)]));
        forecast.add_change(Timestamp(103_000), &counts(&[(1, -1)]));
        let forecast = forecast.accumulated();
        assert_eq!(
            totals(&forecast, [0, 1_499, 1_500, 2_999, 3_000]),
            [2, 2, 1, 1, 0]
        );
    }

    #[test]
    fn later_counts_are_on_the_line_between_two_times() {
        let mut forecast = WaitingForecast::of_ranks(&[Timestamp(1)], NOW);
        forecast.add_change(BEGIN, &counts(&[(1, 80)]));
        forecast.add_change(Timestamp(112_000), &counts(&[(1, -40)]));
        forecast.add_change(Timestamp(160_000), &counts(&[(1, -40)]));
        let forecast = forecast.accumulated();
        assert_eq!(
            totals(
                &forecast,
                [0, 10_000, 11_000, 12_000, 58_000, 59_000, 60_000]
            ),
            [80, 80, 60, 40, 40, 20, 0]
        );
    }

    #[test]
    fn the_last_visitors_run_out_by_the_longest_time() {
        let forecast = WaitingForecast::constant(&counts(&[(1, 16)]), NOW);
        assert_eq!(totals(&forecast, [78_000, 79_000, 80_000]), [16, 8, 0]);
        const { assert!(COUNTED_MAX.0 < OVER_AFTER) };
    }

    #[test]
    fn many_small_counts_are_right_together() {
        let ranks: Vec<Timestamp> = (0..60).map(|n| Timestamp(n * 1_000)).collect();
        let mut forecast = WaitingForecast::of_ranks(&ranks, NOW);
        let one_each = ranks.iter().map(|rank| (*rank, 1)).collect();
        forecast.add_change(BEGIN, &one_each);
        let ends = ranks.iter().map(|rank| (*rank, -1)).collect();
        forecast.add_change(Timestamp(120_000), &ends);
        let forecast = forecast.accumulated();
        for (ms, expected) in [(18_000, 60), (18_500, 45), (19_000, 30), (19_500, 15)] {
            let [found] = totals(&forecast, [ms]);
            assert!((found - expected).abs() <= 1, "{ms}: {found}");
        }
    }

    #[test]
    fn a_sum_counts_each_part_at_the_same_time() {
        let before = NOW - DurationMs(70_000);
        let one = WaitingForecast::constant(&counts(&[(1, 4), (2, -1)]), before);
        let mut other = WaitingForecast::of_ranks(&[Timestamp(2)], NOW);
        other.add_change(NOW + DurationMs(900), &counts(&[(2, 3)]));
        let other = other.accumulated();
        let sum = WaitingForecast::sum([(&one, NOW), (&other, NOW)].into_iter(), NOW);
        assert_eq!(totals(&sum, [0, 1_500]), [3, 6]);
        let late = before + DurationMs(80_000);
        assert!(WaitingForecast::sum([(&one, late)].into_iter(), late).is_empty());
    }

    #[test]
    fn a_message_has_few_ranks_however_many_wait() {
        let ranks: Vec<Timestamp> = (0..5_000).map(|n| Timestamp(n * 1_000)).collect();
        let mut forecast = WaitingForecast::of_ranks(&ranks, NOW);
        let all: WaitingCounts = ranks.iter().map(|rank| (*rank, 3)).collect();
        forecast.add_change(BEGIN, &all);
        let forecast = forecast.accumulated();
        assert!(forecast.iter().count() <= 64);
        assert_eq!(totals(&forecast, [0]), [15_000]);
    }
}
