//! Waiting visitors by rank, now and later if none of them refreshes: what a child reports, so that
//! its parent can go on without it.
//!
//! A node that is lost counts nobody any more, and its visitors refresh elsewhere. Each of them
//! carries the time until which it is counted, and another node counts it from then on. So the
//! parent lets the counts of a silent child run out at the times at which the child would have.

use alloc::vec::Vec;

use super::schedule::COUNT_GRAIN;
use crate::time::{DurationMs, Timestamp};
use crate::watermark::{WaitingCounts, compact_ranks};

/// Times of a forecast. They get further apart, and are on the grids on which visitors run out
/// ([`grain_of`]), so that every change is at one of them.
const POINTS: usize = 51;
/// Time up to which they are [`COUNT_GRAIN`] apart.
const FINE_UNTIL: u64 = 4_000;
/// Time up to which they are [`MIDDLE_GRAIN`] apart; later ones are [`COARSE_GRAIN`] apart.
const MIDDLE_UNTIL: u64 = 8_000;
const MIDDLE_GRAIN: u64 = 1_000;
const COARSE_GRAIN: u64 = 2_000;

/// Times in milliseconds after the edge at which a forecast begins, by the place of that edge on
/// the coarsest grid.
const OFFSETS: [[u64; POINTS]; 4] = [
    offsets(0),
    offsets(COUNT_GRAIN.0),
    offsets(2 * COUNT_GRAIN.0),
    offsets(3 * COUNT_GRAIN.0),
];

const fn offsets(place: u64) -> [u64; POINTS] {
    let mut offsets = [0; POINTS];
    let mut at = 1;
    while at < POINTS {
        let after = offsets[at - 1] + 1;
        let next = (place + after).next_multiple_of(grain_of(DurationMs(after)).0);
        offsets[at] = next - place;
        at += 1;
    }
    offsets
}

fn offsets_from(edge: Timestamp) -> &'static [u64; POINTS] {
    let place = edge.0 % COARSE_GRAIN / COUNT_GRAIN.0;
    &OFFSETS[usize::try_from(place).unwrap_or(0) % OFFSETS.len()]
}

/// Returns the grid on which a visitor runs out that does so after this time: those who do so
/// later need not be exact, and a forecast has few times.
pub(super) const fn grain_of(after: DurationMs) -> DurationMs {
    DurationMs(if after.0 <= FINE_UNTIL {
        COUNT_GRAIN.0
    } else if after.0 <= MIDDLE_UNTIL {
        MIDDLE_GRAIN
    } else {
        COARSE_GRAIN
    })
}

/// Longest time for which a visitor is counted without a refresh: the longest refresh interval of
/// about 61 s, a quarter of it, a second, the grid, and a second by which clocks may differ.
pub const COUNTED_MAX: DurationMs = DurationMs(81_000);

/// Time after which nothing of a forecast counts: [`COUNTED_MAX`], rounded up.
const OVER_AFTER: u64 = 82_000;

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
        let buckets = compact_ranks(ranks).into_iter();
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
            for (point, offset) in offsets_from(sum.from).iter().enumerate() {
                let counts = part.counts_at(from + DurationMs(*offset));
                sum.add_at(point, &counts);
            }
        }
        sum.without_empty()
    }

    /// Adds a change of the counts at a time. [`Self::accumulated`] makes counts of changes.
    pub(super) fn add_change(&mut self, at: Timestamp, change: &WaitingCounts) {
        let after = at.since(self.from).0;
        let offsets = offsets_from(self.from);
        let point = offsets.partition_point(|offset| *offset < after);
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
        let point = self.point_at(after);
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
        let point = self.point_at(after);
        let counts = self.ranks.iter();
        counts
            .map(|(rank, counts)| (*rank, counts[point]))
            .collect()
    }

    /// Returns the last of its times that is not later.
    fn point_at(&self, after: u64) -> usize {
        let offsets = offsets_from(self.from);
        offsets.partition_point(|offset| *offset <= after) - 1
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
const AHEAD_MAX: i64 = 2_000;

impl ReportedWaiting {
    /// Makes a report that a child sent at a time by its clock. `clock_at` is the time by the
    /// clocks of most children.
    pub(crate) fn new(forecast: WaitingForecast, sent_at: Timestamp, clock_at: Timestamp) -> Self {
        let [own, other] = [sent_at, clock_at].map(|at| i64::try_from(at.0).unwrap_or(i64::MAX));
        let ahead_ms = own.saturating_sub(other);
        let agrees = ahead_ms.abs() <= AHEAD_MAX;
        let reported = Self {
            forecast,
            sent_at,
            ahead_ms: if agrees { 0 } else { ahead_ms },
            counted_at: sent_at,
        };
        reported.followed(clock_at)
    }

    /// Whether the child's clock is that of most children.
    pub(crate) fn agrees(&self) -> bool {
        self.ahead_ms == 0
    }

    /// Makes up for a step of the other clocks that stood still before.
    pub(crate) fn catch_up(&mut self, step: DurationMs) {
        if self.ahead_ms > 0 {
            let step = i64::try_from(step.0).unwrap_or(i64::MAX);
            self.ahead_ms = self.ahead_ms.saturating_sub(step).max(0);
        }
    }

    /// Returns the visitors who are in the sums.
    pub(crate) fn counts(&self) -> WaitingCounts {
        self.forecast.counts_at(self.counted_at)
    }

    /// Whether as many visitors of each rank are in the sums as by another report.
    pub(crate) fn counts_as(&self, other: &Self) -> bool {
        self.forecast == other.forecast && self.counted_at == other.counted_at
    }

    /// Returns the report as of a time by the clocks of most children. Counts change at the edges
    /// of their grid. Following it twice between two edges changes nothing, so that a ledger that
    /// is read from a store before each request is the same as one that is kept.
    pub(crate) fn followed(self, clock_at: Timestamp) -> Self {
        if self.forecast.is_empty() {
            return self;
        }
        let clock_at = clock_at.floor_to(COUNT_GRAIN);
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
    fn later_counts_change_exactly_as_well_wherever_the_forecast_begins() {
        for begin in (100_000..110_000).step_by(500) {
            let now = Timestamp(begin);
            let mut forecast = WaitingForecast::of_ranks(&[Timestamp(1)], now);
            forecast.add_change(now, &counts(&[(1, 100)]));
            for left in (500..81_000).step_by(500) {
                let at = Timestamp(begin + left);
                if at.ceil_to(grain_of(DurationMs(left))) == at {
                    forecast.add_change(at, &counts(&[(1, -1)]));
                }
            }
            let forecast = forecast.accumulated();
            let mut expected = 100;
            for left in (500..81_000).step_by(500) {
                let at = Timestamp(begin + left);
                if at.ceil_to(grain_of(DurationMs(left))) == at {
                    expected -= 1;
                }
                let found = forecast.counts_at(at).total();
                assert_eq!(found, expected, "{left} ms after {begin}");
            }
        }
    }

    #[test]
    fn the_last_visitors_run_out_by_the_longest_time() {
        let forecast = WaitingForecast::constant(&counts(&[(1, 16)]), NOW);
        assert_eq!(totals(&forecast, [79_000, 81_999, 82_000]), [16, 16, 0]);
        assert!(
            OFFSETS
                .iter()
                .all(|offsets| offsets[POINTS - 1] + COARSE_GRAIN >= OVER_AFTER)
        );
        const { assert!(COUNTED_MAX.0 < OVER_AFTER) };
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
        let late = before + DurationMs(82_000);
        assert!(WaitingForecast::sum([(&one, late)].into_iter(), late).is_empty());
    }

    #[test]
    fn a_report_from_while_the_clock_stood_still_runs_out_when_it_says() {
        // The ledger's clock stands at NOW while a child reports a minute later.
        let sent_at = NOW + DurationMs(60_000);
        let forecast = WaitingForecast::constant(&counts(&[(1, 4)]), sent_at);
        let mut reported = ReportedWaiting::new(forecast, sent_at, NOW);
        assert_eq!(reported.counts().total(), 4);
        let step = DurationMs(90_000);
        reported.catch_up(step);
        let later = reported.followed(NOW + step);
        assert_eq!(later.counts().total(), 4, "30 s after the report");
        let end = sent_at + DurationMs(OVER_AFTER);
        assert_eq!(later.followed(end).counts().total(), 0);
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
