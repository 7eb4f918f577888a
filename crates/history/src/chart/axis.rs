//! Axes: positions and labels of the grid lines, with round numbers and round times of day.

use std::ops::Range;

use anteroom_config::time_text::rfc3339_secs;
use anteroom_room::time::{DurationMs, Timestamp};
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use crate::chart::number::{grouped, rounded};

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// Distances between two lines of a time axis.
const STEPS: [u64; 20] = [
    SECOND,
    2 * SECOND,
    5 * SECOND,
    10 * SECOND,
    15 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    7 * DAY,
];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Range with labelled grid lines.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    range: Range<f64>,
    ticks: Vec<(f64, String)>,
    is_tenfold: bool,
}

impl Axis {
    /// Creates an axis from 0 to a round number at or above `max`, with at most six steps.
    pub fn count(max: f64) -> Self {
        let max = if max.is_finite() { max.max(1.0) } else { 1.0 };
        let step = round_step(max / 6.0);
        let steps = (max / step).ceil();
        let mut ticks = Vec::new();
        let mut at = 0.0;
        while at <= steps {
            ticks.push((at * step, grouped(rounded(at * step))));
            at += 1.0;
        }
        Self {
            range: 0.0..steps * step,
            ticks,
            is_tenfold: false,
        }
    }

    /// Creates an axis from 1 to a power of ten at or above `max`, each line ten times the last
    /// one, so that small numbers stay visible beside large ones. Values below 1 are drawn at 1.
    pub fn tenfold(max: f64) -> Self {
        let max = if max.is_finite() { max.max(10.0) } else { 10.0 };
        let mut ticks = vec![(1.0, grouped(1))];
        let mut at = 1.0;
        while at < max {
            at *= 10.0;
            ticks.push((at, grouped(rounded(at))));
        }
        Self {
            range: 1.0..at,
            ticks,
            is_tenfold: true,
        }
    }

    /// Creates an axis from 0 to 1, in percent.
    pub fn share() -> Self {
        let tick = |fifth: u32| (f64::from(fifth) / 5.0, format!("{} %", fifth * 20));
        Self {
            range: 0.0..1.0,
            ticks: (0..=5).map(tick).collect(),
            is_tenfold: false,
        }
    }

    /// Creates an axis from one whole number to another, with a unit behind each: `50 %`.
    pub fn between(from: u32, to: u32, step: u32, unit: &str) -> Self {
        let tick = |at: u32| (f64::from(at), format!("{at}{unit}"));
        let step = usize::try_from(step.max(1)).unwrap_or(1);
        Self {
            range: f64::from(from)..f64::from(to),
            ticks: (from..=to).step_by(step).map(tick).collect(),
            is_tenfold: false,
        }
    }

    /// Creates an axis of wall-clock time (UTC) over a run; values are milliseconds since its
    /// start.
    pub fn time(starts_at: Timestamp, length_ms: u64) -> Self {
        let length = length_ms.max(SECOND);
        let has_days = length > DAY;
        let lines_max = if has_days { 5 } else { 7 };
        let step = STEPS
            .into_iter()
            .find(|step| length / step <= lines_max)
            .unwrap_or_else(|| (length / lines_max).max(1).next_multiple_of(DAY));
        let first = starts_at.ceil_to(DurationMs(step)).0;
        let ticks = (0..=lines_max + 1)
            .map(|at| first.saturating_add(step.saturating_mul(at)))
            .take_while(|at| at - starts_at.0 <= length)
            .map(|at| {
                let label = time_label(Timestamp(at), step, has_days);
                (as_f64(at - starts_at.0), label)
            })
            .collect();
        Self {
            range: 0.0..as_f64(length),
            ticks,
            is_tenfold: false,
        }
    }

    /// Returns the positions and labels of the grid lines.
    pub fn ticks(&self) -> &[(f64, String)] {
        &self.ticks
    }

    /// Returns the position of a value between the ends, in 0..=1.
    pub fn position(&self, value: f64) -> f64 {
        let position = if self.is_tenfold {
            // The axis begins at 1, so there is no offset. `log10` of the standard library differs
            // between platforms.
            libm::log10(value.max(1.0)) / libm::log10(self.range.end)
        } else {
            (value - self.range.start) / (self.range.end - self.range.start)
        };
        position.clamp(0.0, 1.0)
    }
}

/// Returns 1, 2 or 5 times a power of ten, at least 1 and at least `least`.
fn round_step(least: f64) -> f64 {
    let mut power = 1.0;
    loop {
        for factor in [1.0, 2.0, 5.0] {
            if factor * power >= least {
                return factor * power;
            }
        }
        power *= 10.0;
    }
}

/// Returns a label: `11:45`, `11:45:30`, `11 Sep 12:00` or `11 Sep`.
fn time_label(at: Timestamp, step: u64, has_days: bool) -> String {
    let text = rfc3339_secs(at);
    let part = |range: Range<usize>| text.get(range).unwrap_or_default();
    let month: usize = part(5..7).parse().unwrap_or(1);
    let month = MONTHS.get(month.saturating_sub(1)).copied().unwrap_or("?");
    let day = part(8..10).trim_start_matches('0');
    let clock = if step.is_multiple_of(MINUTE) {
        part(11..16)
    } else {
        part(11..19)
    };
    if step.is_multiple_of(DAY) {
        format!("{day} {month}")
    } else if has_days {
        format!("{day} {month} {clock}")
    } else {
        clock.to_owned()
    }
}

/// Converts milliseconds of a run to a coordinate: exact below 2^53, which is 285,000 years.
#[expect(
    clippy::cast_precision_loss,
    reason = "a run is shorter than 285,000 years"
)]
pub const fn as_f64(ms: u64) -> f64 {
    ms as f64
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    #[expect(
        clippy::cast_possible_truncation,
        reason = "between the two ends, which are whole"
    )]
    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        from + (f64::from(to - from) * self.position(*value)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.ticks.iter().map(|(at, _)| *at).collect()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        let same = |at: f64| (at - value).abs() < f64::EPSILON;
        let known = self.ticks.iter().find(|(at, _)| same(*at));
        known.map_or_else(String::new, |(_, label)| label.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks().iter().map(|(_, label)| &**label).collect()
    }

    #[test]
    fn counts_end_at_a_round_number_and_have_few_lines() {
        let check = |max, expected: &[&str]| assert_eq!(labels(&Axis::count(max)), expected);
        check(0.0, &["0", "1"]);
        check(7.0, &["0", "2", "4", "6", "8"]);
        check(214.0, &["0", "50", "100", "150", "200", "250"]);
        check(
            20_900.0,
            &["0", "5,000", "10,000", "15,000", "20,000", "25,000"],
        );
        check(f64::NAN, &["0", "1"]);
    }

    #[test]
    fn each_line_is_ten_times_the_one_before() {
        let axis = Axis::tenfold(20_900.0);
        let lines = ["1", "10", "100", "1,000", "10,000", "100,000"];
        assert_eq!(labels(&axis), lines);
        let at = |value| axis.map(&value, (0, 500));
        assert_eq!([1.0, 10.0, 10_000.0, 100_000.0].map(at), [0, 100, 400, 500]);
        assert_eq!([0.0, -1.0, 1e9].map(at), [0, 0, 500]);
        assert_eq!(labels(&Axis::tenfold(f64::NAN)), ["1", "10"]);
    }

    #[test]
    fn times_are_wall_clock_times() {
        let start = Timestamp(1_694_432_754_000); // 2023-09-11T11:45:54Z
        let check = |length, expected: &[&str]| {
            assert_eq!(labels(&Axis::time(start, length)), expected);
        };
        check(10 * MINUTE, &["11:46", "11:48", "11:50", "11:52", "11:54"]);
        check(
            10 * SECOND,
            &[
                "11:45:54", "11:45:56", "11:45:58", "11:46:00", "11:46:02", "11:46:04",
            ],
        );
        check(
            2 * DAY,
            &[
                "11 Sep 12:00",
                "12 Sep 00:00",
                "12 Sep 12:00",
                "13 Sep 00:00",
            ],
        );
        check(30 * DAY, &["14 Sep", "21 Sep", "28 Sep", "5 Oct"]);
        assert!(labels(&Axis::time(Timestamp(u64::MAX - 5), u64::MAX)).len() < 9);
    }

    #[test]
    fn values_beyond_the_axis_are_drawn_at_its_edge() {
        let axis = Axis::count(10.0);
        assert_eq!(axis.map(&5.0, (100, 200)), 150);
        assert_eq!(axis.map(&-5.0, (100, 200)), 100);
        assert_eq!(axis.map(&50.0, (100, 200)), 200);
    }
}
