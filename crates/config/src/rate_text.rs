//! Text form of a rate: `100/s`, `1000/h`, `20/10s`.
//!
//! The config file and the command line accept the same texts. Windows are whole seconds.

use std::fmt;
use std::str::FromStr;

use anteroom_limit::rate::Rate;
use anteroom_limit::time::DurationUs;

/// Longest window in seconds: a month of 31 days. A count over a longer window would have to
/// survive restarts and upgrades.
const WINDOW_SECS_MAX: u64 = 31 * 86_400;

/// Units from long to short: each in seconds, with its names, the first one for writing.
const UNITS: [(u64, &[&str]); 5] = [
    (604_800, &["w", "week", "weeks"]),
    (86_400, &["d", "day", "days"]),
    (3_600, &["h", "hour", "hours"]),
    (60, &["m", "min", "minute", "minutes"]),
    (1, &["s", "sec", "second", "seconds"]),
];

/// Number of requests in a window of whole seconds, up to 31 days.
///
/// `Display` writes it as [`FromStr`] reads it, in the longest unit that is exact.
///
/// # Examples
///
/// ```
/// let text: anteroom_config::RateText = "5 / 60 seconds".parse()?;
/// assert_eq!(text.to_string(), "5/m");
/// assert_eq!(text.rate().requests(), 5);
/// # Ok::<(), anteroom_config::RateTextError>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RateText(Rate);

/// Error of a text that is not a rate.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RateTextError {
    /// The text has no slash.
    #[error("rate has no window after a slash")]
    NoWindow,
    /// The text before the slash is not a whole number from 0 to 4294967295.
    #[error("requests are not a whole number from 0 to {}", u32::MAX)]
    Requests,
    /// The number after the slash has no unit.
    #[error("window has no unit")]
    NoUnit,
    /// Months differ in length.
    #[error("a month has no fixed length")]
    Month,
    /// The text after the slash is not a time.
    #[error("window is not a time")]
    Unit,
    /// The window is shorter than a second or longer than 31 days.
    #[error("window is not from 1s to 31d")]
    WindowOutOfRange,
}

impl RateText {
    /// Returns the rate.
    #[must_use]
    pub const fn rate(self) -> Rate {
        self.0
    }

    /// Returns the text form of a rate; a window is rounded up to whole seconds.
    #[must_use]
    pub const fn of(rate: Rate) -> Self {
        Self(rate)
    }
}

impl FromStr for RateText {
    type Err = RateTextError;

    fn from_str(text: &str) -> Result<Self, RateTextError> {
        let (calls, window) = text.split_once('/').ok_or(RateTextError::NoWindow)?;
        let calls = calls.trim();
        let is_whole = !calls.is_empty() && calls.bytes().all(|byte| byte.is_ascii_digit());
        let calls = calls.parse().ok().filter(|_| is_whole);
        let calls = calls.ok_or(RateTextError::Requests)?;
        let secs = window_secs(window.trim())?;
        if !(1..=WINDOW_SECS_MAX).contains(&secs) {
            return Err(RateTextError::WindowOutOfRange);
        }
        Rate::new(calls, DurationUs::from_secs(secs))
            .map(Self)
            .map_err(|_| RateTextError::WindowOutOfRange)
    }
}

/// Reads an optional number and a unit, as seconds.
fn window_secs(text: &str) -> Result<u64, RateTextError> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim_start();
    let names_it = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(unit));
    let Some((secs, _)) = UNITS.iter().find(|(_, names)| names_it(names)) else {
        return Err(match unit.to_ascii_lowercase().as_str() {
            "" if digits > 0 => RateTextError::NoUnit,
            "mo" | "month" | "months" => RateTextError::Month,
            "ms" | "us" | "y" | "year" | "years" => RateTextError::WindowOutOfRange,
            _ => RateTextError::Unit,
        });
    };
    if number.is_empty() {
        return Ok(*secs);
    }
    // A number that does not fit 64 bits is too long for a window.
    let times: Option<u64> = number.parse().ok();
    let secs = times.and_then(|times| times.checked_mul(*secs));
    secs.ok_or(RateTextError::WindowOutOfRange)
}

impl fmt::Display for RateText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secs = self.0.window().secs_ceil();
        write!(f, "{}/", self.0.requests())?;
        // Every window is a whole number of the smallest unit, a second.
        let whole = UNITS.iter().find(|(unit, _)| secs.is_multiple_of(*unit));
        let (unit, names) = whole.unwrap_or(&UNITS[UNITS.len() - 1]);
        match secs / unit {
            1 => f.write_str(names[0]),
            times => write!(f, "{times}{}", names[0]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_written_in_its_shortest_form() {
        let check = |text: &str, calls: u32, secs: u64, shortest: &str| {
            let read: RateText = text.parse().unwrap();
            let rate = read.rate();
            assert_eq!((rate.requests(), rate.window().secs_ceil()), (calls, secs));
            assert_eq!(read.to_string(), shortest, "{text}");
        };
        check("100/s", 100, 1, "100/s");
        check("100/min", 100, 60, "100/m");
        check("1000/h", 1_000, 3_600, "1000/h");
        check("50000/day", 50_000, 86_400, "50000/d");
        check("20/10s", 20, 10, "20/10s");
        check("5/15m", 5, 900, "5/15m");
        check(" 5 / 15 Minutes ", 5, 900, "5/15m");
        check("0/1second", 0, 1, "0/s");
        check("1/90sec", 1, 90, "1/90s");
        check("1/120seconds", 1, 120, "1/2m");
        check("1/24hours", 1, 86_400, "1/d");
        check("1/2hour", 1, 7_200, "1/2h");
        check("1/7days", 1, 604_800, "1/w");
        check("1/4weeks", 1, 2_419_200, "1/4w");
        check(
            "4294967295/31d",
            u32::MAX,
            WINDOW_SECS_MAX,
            "4294967295/31d",
        );
    }

    #[test]
    fn an_invalid_rate_is_rejected_with_its_reason() {
        use RateTextError::{Month, NoUnit, NoWindow, Requests, Unit, WindowOutOfRange};
        let check = |text: &str, error: RateTextError| {
            assert_eq!(text.parse::<RateText>(), Err(error), "{text:?}");
        };
        check("", NoWindow);
        check("100", NoWindow);
        for text in [
            "/s",
            "-1/s",
            "+1/s",
            "1.5/s",
            "x/s",
            "1 0/s",
            "4294967296/s",
        ] {
            check(text, Requests);
        }
        check("100/60", NoUnit);
        check("1/month", Month);
        for text in ["1/", "1/x", "1/-5s", "1/1.5h", "1/1h30m", "1/５s", "1/s/s"] {
            check(text, Unit);
        }
        for text in ["1/0s", "1/32d", "1/5w", "1/500ms", "1/year"] {
            check(text, WindowOutOfRange);
        }
        check("1/99999999999999999999s", WindowOutOfRange);
        check("1/18446744073709551615w", WindowOutOfRange);
    }
}
