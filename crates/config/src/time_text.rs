//! Text forms of points in time and durations: RFC 3339 in UTC, and plain English.
//!
//! The waiting page writes other languages: it has the numbers.

use anteroom_room::time::{DurationMs, Timestamp};

/// Formats a point in time as `2020-08-03T23:46:00.000Z`: RFC 3339 in UTC, with milliseconds.
///
/// Times beyond the year 9999 are written as the last one that RFC 3339 has.
#[must_use]
pub fn rfc3339_millis(moment: Timestamp) -> String {
    format!("{:.3}", timestamp(moment))
}

/// Parses a point in time in RFC 3339, such as `2030-01-31T10:00:00+01:00`; `None` if it is none,
/// or before 1970.
#[must_use]
pub fn parse(text: &str) -> Option<Timestamp> {
    let moment = text.parse::<jiff::Timestamp>().ok()?;
    u64::try_from(moment.as_millisecond()).ok().map(Timestamp)
}

/// Formats a point in time as `2023-09-11T11:44:00Z`: RFC 3339 in UTC, cut to the second.
///
/// Times beyond the year 9999 are written as the last one that RFC 3339 has.
#[must_use]
pub fn rfc3339_secs(moment: Timestamp) -> String {
    format!("{:.0}", timestamp(moment))
}

fn timestamp(moment: Timestamp) -> jiff::Timestamp {
    i64::try_from(moment.0)
        .ok()
        .and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok())
        .unwrap_or(jiff::Timestamp::MAX)
}

/// Returns whole minutes, rounded up and at least 1: a wait is never "0 minutes".
#[must_use]
pub fn minutes(span: DurationMs) -> u64 {
    span.0.div_ceil(60_000).max(1)
}

/// Formats minutes as `1 minute`, `10 minutes`, `1 hour`, `2 hours 5 minutes`.
#[must_use]
pub fn minutes_in_words(minutes: u64) -> String {
    let (hours, minutes) = (minutes / 60, minutes % 60);
    match (hours, minutes) {
        (0, minutes) => counted(minutes, "minute"),
        (hours, 0) => counted(hours, "hour"),
        (hours, minutes) => format!("{} {}", counted(hours, "hour"), counted(minutes, "minute")),
    }
}

fn counted(number: u64, unit: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {unit}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_utc_with_milliseconds_or_without() {
        let moment = Timestamp(1_596_498_360_000);
        assert_eq!(rfc3339_millis(moment), "2020-08-03T23:46:00.000Z");
        assert_eq!(
            rfc3339_secs(moment + DurationMs(999)),
            "2020-08-03T23:46:00Z"
        );
        assert_eq!(rfc3339_millis(Timestamp::ZERO), "1970-01-01T00:00:00.000Z");
        assert_eq!(
            rfc3339_secs(Timestamp::NEVER),
            rfc3339_secs(Timestamp(i64::MAX.unsigned_abs()))
        );
        assert!(rfc3339_secs(Timestamp::NEVER).starts_with("9999-12-"));
    }

    #[test]
    fn minutes_are_rounded_up_and_never_none() {
        let check = |millis, expected| assert_eq!(minutes(DurationMs(millis)), expected);
        check(0, 1);
        check(1, 1);
        check(60_000, 1);
        check(60_001, 2);
        check(600_000, 10);
    }

    #[test]
    fn minutes_read_as_english() {
        let check = |minutes, expected| assert_eq!(minutes_in_words(minutes), expected);
        check(0, "0 minutes");
        check(1, "1 minute");
        check(10, "10 minutes");
        check(60, "1 hour");
        check(61, "1 hour 1 minute");
        check(125, "2 hours 5 minutes");
        check(120, "2 hours");
    }
}
