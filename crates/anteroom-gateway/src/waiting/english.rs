//! How are counts, lengths of time and points in time put into English words?
//!
//! Only phrases; which of them stand on a page, and in which sentence, is not known here. Every
//! rounding errs towards the longer wait and the shorter promise.

use anteroom_core::decision::WaitRange;
use anteroom_core::time::{Millis, Span};

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// A point in time, in the forms that a page needs. Always UTC: the server does not know where
/// the visitor is, the script does.
#[derive(Clone, Debug, Eq, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Moment {
    /// Unix time in ms.
    pub(super) at_ms: u64,
    /// RFC 3339, for the `datetime` attribute.
    pub(super) iso: String,
    /// For people, with the zone.
    pub(super) text: String,
}

impl Moment {
    /// `None` beyond the year 9999, where no calendar reaches.
    fn new(at: Millis, format: &str) -> Option<Self> {
        let at_ms = i64::try_from(at.0).ok()?;
        let stamp = jiff::Timestamp::from_millisecond(at_ms).ok()?;
        Some(Self {
            at_ms: at.0,
            iso: stamp.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            text: stamp.strftime(format).to_string(),
        })
    }

    /// `Saturday, 1 August 2026, 10:00 UTC`, with seconds where they are not zero.
    pub(super) fn of_day(at: Millis) -> Option<Self> {
        if at.0.is_multiple_of(MINUTE) {
            Self::new(at, "%A, %-d %B %Y, %H:%M UTC")
        } else {
            Self::new(at, "%A, %-d %B %Y, %H:%M:%S UTC")
        }
    }

    /// `10:00:05 UTC`, for what is near.
    pub(super) fn of_clock(at: Millis) -> Option<Self> {
        Self::new(at, "%H:%M:%S UTC")
    }
}

/// `1,204`.
pub(super) fn count(n: u32) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How long something is promised to last: whole units, rounded down.
pub(super) fn at_least(span: Span) -> String {
    let ms = span.0;
    if ms < 2 * MINUTE {
        units(ms / SECOND, "second")
    } else if ms < 2 * HOUR {
        units(ms / MINUTE, "minute")
    } else {
        units(ms / HOUR, "hour")
    }
}

/// How long until something that is fixed: whole units, rounded up.
pub(super) fn until(span: Span) -> String {
    let ms = span.0;
    if ms < MINUTE {
        "less than a minute".to_owned()
    } else if ms <= 120 * MINUTE {
        units(ms.div_ceil(MINUTE), "minute")
    } else if ms <= 2 * DAY {
        units(ms.div_ceil(HOUR), "hour")
    } else {
        units(ms.div_ceil(DAY), "day")
    }
}

/// A wait that is probably between two ends: the lower one rounded down, the upper one up. Big
/// waits get words instead of numbers, which would promise a precision that nobody has.
pub(super) fn range(wait: WaitRange) -> String {
    let low = wait.low.0.min(wait.high.0);
    let high = wait.high.0;
    if low >= DAY {
        return "more than a day".to_owned();
    }
    if low >= 4 * HOUR {
        return format!("more than {}", units(low / HOUR, "hour"));
    }
    if high <= MINUTE {
        return "less than a minute".to_owned();
    }
    let in_minutes = high <= 120 * MINUTE;
    let (high_size, high_unit) = if in_minutes {
        (MINUTE, "minute")
    } else {
        (HOUR, "hour")
    };
    let (low_size, low_unit) = if in_minutes || low < HOUR {
        (MINUTE, "minute")
    } else {
        (HOUR, "hour")
    };
    let (low, high) = (low / low_size, high.div_ceil(high_size));
    if low == 0 {
        format!("up to {}", units(high, high_unit))
    } else if low_unit != high_unit {
        format!("{} to {}", units(low, low_unit), units(high, high_unit))
    } else if low == high {
        format!("about {}", units(high, high_unit))
    } else {
        format!("{low} to {}", units(high, high_unit))
    }
}

fn units(n: u64, unit: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {unit}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_by_thousands() {
        for (n, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_204_000, "1,204,000"),
            (u32::MAX, "4,294,967,295"),
        ] {
            assert_eq!(count(n), expected);
        }
    }

    #[track_caller]
    fn check_range(low: u64, high: u64, expected: &str) {
        let wait = WaitRange {
            low: Span(low),
            middle: Span(low),
            high: Span(high),
        };
        assert_eq!(range(wait), expected);
    }

    #[test]
    fn a_wait_is_a_range_rounded_outwards() {
        check_range(0, 0, "less than a minute");
        check_range(5 * SECOND, MINUTE, "less than a minute");
        check_range(0, MINUTE + 1, "up to 2 minutes");
        check_range(59 * SECOND, 5 * MINUTE, "up to 5 minutes");
        check_range(10 * MINUTE, 20 * MINUTE, "10 to 20 minutes");
        check_range(90 * SECOND, 110 * SECOND, "1 to 2 minutes");
        check_range(5 * MINUTE, 5 * MINUTE, "about 5 minutes");
        check_range(80 * MINUTE, 110 * MINUTE, "80 to 110 minutes");
        check_range(40 * MINUTE, 3 * HOUR, "40 minutes to 3 hours");
        check_range(0, 5 * HOUR, "up to 5 hours");
        check_range(HOUR, 130 * MINUTE, "1 to 3 hours");
        check_range(3 * HOUR, 3 * HOUR, "about 3 hours");
        check_range(3 * HOUR, 9 * HOUR, "3 to 9 hours");
        check_range(5 * HOUR, 9 * HOUR, "more than 5 hours");
        check_range(30 * HOUR, 90 * HOUR, "more than a day");
    }

    #[test]
    fn an_absurd_range_is_put_into_words_too() {
        check_range(9 * MINUTE, 2 * MINUTE, "about 2 minutes");
        check_range(u64::MAX, u64::MAX, "more than a day");
        check_range(
            0,
            u64::MAX,
            &format!("up to {} hours", u64::MAX.div_ceil(HOUR)),
        );
    }

    #[test]
    fn promises_are_rounded_down_and_deadlines_up() {
        assert_eq!(at_least(Span::from_secs(10)), "10 seconds");
        assert_eq!(at_least(Span::from_secs(119)), "119 seconds");
        assert_eq!(at_least(Span::from_secs(359)), "5 minutes");
        assert_eq!(at_least(Span::from_secs(86_399)), "23 hours");
        assert_eq!(until(Span::from_secs(59)), "less than a minute");
        assert_eq!(until(Span::from_secs(60)), "1 minute");
        assert_eq!(until(Span::from_secs(61)), "2 minutes");
        assert_eq!(until(Span::from_secs(7_201)), "3 hours");
        assert_eq!(until(Span::from_secs(3 * 86_400)), "3 days");
    }

    #[test]
    fn points_in_time_name_their_zone() {
        let opening = Millis(1_785_578_400_000);
        let moment = Moment::of_day(opening).unwrap();
        assert_eq!(moment.text, "Saturday, 1 August 2026, 10:00 UTC");
        assert_eq!(moment.iso, "2026-08-01T10:00:00Z");
        let later = Millis(opening.0 + 5_250);
        assert_eq!(Moment::of_clock(later).unwrap().text, "10:00:05 UTC");
        let day = Moment::of_day(later).unwrap().text;
        assert_eq!(day, "Saturday, 1 August 2026, 10:00:05 UTC");
    }

    #[test]
    fn a_time_beyond_the_calendar_is_left_out() {
        assert_eq!(Moment::of_day(Millis::NEVER), None);
        assert_eq!(Moment::of_clock(Millis(i64::MAX as u64)), None);
    }
}
