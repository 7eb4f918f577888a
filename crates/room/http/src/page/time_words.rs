//! Durations and points in time in words. Rounding errs towards the longer wait and the shorter
//! promise.

use std::fmt::{Display, Formatter};

use anteroom_room::queue_position::WaitRange;
use anteroom_room::time::{DurationMs, Timestamp};
use jiff::civil::DateTime;
use jiff::tz::Offset;
use serde::ser::{Serialize, SerializeStruct as _, Serializer};

use crate::page::grammar::filled;
use crate::page::texts::Texts;

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Point in time, as a page writes it in UTC. The server does not know the visitor's time zone; the
/// script does, and converts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Moment {
    at: Timestamp,
    time: DateTime,
    form: Form,
}

impl Moment {
    /// Returns a point in time with its day; `None` after the year 9999, the end of the calendar.
    pub(crate) fn of_day(at: Timestamp) -> Option<Self> {
        Self::in_form(at, Form::Day)
    }

    /// Returns a point in time of today, with seconds.
    pub(crate) fn of_clock(at: Timestamp) -> Option<Self> {
        Self::in_form(at, Form::Seconds)
    }

    fn in_form(at: Timestamp, form: Form) -> Option<Self> {
        let time = calendar(at)?;
        Some(Self { at, time, form })
    }

    /// Returns the time itself.
    pub(crate) const fn at(&self) -> Timestamp {
        self.at
    }

    /// Returns the time for the `datetime` attribute: RFC 3339.
    pub(crate) fn iso(&self) -> String {
        let mut iso = String::with_capacity("2026-08-01T10:00:05Z".len());
        let year = self.time.year().unsigned_abs();
        push_two(&mut iso, year / 100);
        push_two(&mut iso, year % 100);
        for part in [self.time.month(), self.time.day()] {
            iso.push('-');
            push_two(&mut iso, part.unsigned_abs().into());
        }
        iso.push('T');
        push_clock(&mut iso, self.time, true);
        iso.push('Z');
        iso
    }
}

/// Writes the text for people: `2026-08-01 10:00 UTC`, with seconds if they are not zero, or
/// `10:00:05 UTC`, or less.
impl Display for Moment {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let has_seconds = match self.form {
            Form::Day => !self.at.0.is_multiple_of(MINUTE),
            Form::Seconds => true,
            Form::Zoned | Form::Bare => false,
        };
        if self.form == Form::Day {
            write!(f, "{} ", self.time.date())?;
        }
        let mut clock = String::with_capacity("10:00:05 UTC".len());
        push_clock(&mut clock, self.time, has_seconds);
        if self.form != Form::Bare {
            clock.push_str(" UTC");
        }
        f.write_str(&clock)
    }
}

/// Writes `atMs`, Unix time in ms; `iso` and `text`, as on the page.
impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Moment", 3)?;
        fields.serialize_field("atMs", &self.at.0)?;
        fields.serialize_field("iso", &self.iso())?;
        fields.serialize_field("text", &format_args!("{self}"))?;
        fields.end()
    }
}

/// Part of a text of the page: words, or a point in time.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Part<'a> {
    /// Words.
    Words(&'a str),
    /// Point in time, in UTC, and how the script writes it.
    Time(Moment, Form),
}

/// Form of a point in time; a sign ends it in a text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    /// `{1785578400000}`: hour and minute with the zone.
    Zoned,
    /// `{1785578400000-}`: hour and minute.
    Bare,
    /// `{1785578400000+}`: the day as well.
    Day,
    /// `{1785578400000*}`: with seconds.
    Seconds,
}

impl Form {
    /// Returns the sign of the form.
    pub(crate) const fn sign(self) -> &'static str {
        match self {
            Self::Zoned => "",
            Self::Bare => "-",
            Self::Day => "+",
            Self::Seconds => "*",
        }
    }
}

/// Splits a text at its points in time.
pub(crate) fn parts(text: &str) -> Vec<Part<'_>> {
    let mut pieces = text.split('{');
    let mut parts = Vec::from_iter(pieces.next().map(Part::Words));
    for piece in pieces {
        let (mark, rest) = piece.split_once('}').unwrap_or((piece, ""));
        let digits = mark.trim_end_matches(['-', '+', '*']);
        let form = [Form::Bare, Form::Day, Form::Seconds];
        let form = form.into_iter().find(|form| mark.ends_with(form.sign()));
        let form = form.unwrap_or(Form::Zoned);
        let at = digits.parse().ok().map(Timestamp);
        if let Some(moment) = at.and_then(|at| Moment::in_form(at, form)) {
            parts.push(Part::Time(moment, form));
        }
        parts.push(Part::Words(rest));
    }
    parts
}

fn calendar(at: Timestamp) -> Option<DateTime> {
    let at_ms = i64::try_from(at.0).ok()?;
    let stamp = jiff::Timestamp::from_millisecond(at_ms).ok()?;
    Some(Offset::UTC.to_datetime(stamp))
}

/// Appends `10:00:05` or `10:00`. Every page has such times, and a formatter with a pattern would
/// take as long as the rest of the page.
fn push_clock(text: &mut String, time: DateTime, has_seconds: bool) {
    let seconds = has_seconds.then(|| time.second());
    push_two(text, time.hour().unsigned_abs().into());
    for part in [Some(time.minute()), seconds].into_iter().flatten() {
        text.push(':');
        push_two(text, part.unsigned_abs().into());
    }
}

/// Appends a number from 0 to 99 as two digits.
fn push_two(text: &mut String, number: u16) {
    for digit in [number / 10 % 10, number % 10] {
        text.push(char::from_digit(digit.into(), 10).unwrap_or('0'));
    }
}

/// Grammatical form of a duration in a sentence.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Case {
    /// Form without a preposition.
    Alone,
    /// Form after "within" and the like.
    Bound,
}

/// Formats the duration of a promise: whole units, rounded down.
pub(crate) fn at_least(texts: &Texts, span: DurationMs, case: Case) -> String {
    let grammar = &texts.grammar;
    let ms = span.0;
    let (n, unit) = if ms < 2 * MINUTE {
        (ms / SECOND, grammar.seconds)
    } else if ms < 2 * HOUR {
        (ms / MINUTE, grammar.minutes)
    } else {
        (ms / HOUR, grammar.hours)
    };
    let forms = match case {
        Case::Alone => unit.alone,
        Case::Bound => unit.bound,
    };
    grammar.units(n, forms)
}

/// Formats the time until a fixed moment: whole units, rounded up.
pub(crate) fn until(texts: &Texts, span: DurationMs) -> String {
    let grammar = &texts.grammar;
    let ms = span.0;
    let minutes = ms.div_ceil(MINUTE);
    if ms < MINUTE {
        texts.less_than_minute.to_owned()
    } else if minutes < 60 {
        grammar.units(minutes, grammar.minutes.alone)
    } else if ms <= DAY {
        let hours = grammar.units(minutes / 60, grammar.hours.alone);
        match minutes % 60 {
            0 => hours,
            rest => format!("{hours} {}", grammar.units(rest, grammar.minutes.alone)),
        }
    } else if ms <= 2 * DAY {
        grammar.units(ms.div_ceil(HOUR), grammar.hours.alone)
    } else {
        grammar.units(ms.div_ceil(DAY), grammar.days.alone)
    }
}

/// Formats the range of an estimated wait: the lower end rounded down, the upper one up. Long waits
/// get words, because numbers would promise too much precision.
pub(crate) fn range(texts: &Texts, wait: WaitRange) -> String {
    let grammar = &texts.grammar;
    let low = wait.low.0.min(wait.high.0);
    let high = wait.high.0;
    let with = |text: &str, time: String| filled(text, "{time}", &time);
    if low >= DAY {
        return texts.more_than_day.to_owned();
    }
    if low >= 4 * HOUR {
        return with(
            texts.more_than,
            grammar.units(low / HOUR, grammar.hours.bound),
        );
    }
    if high <= MINUTE {
        return texts.less_than_minute.to_owned();
    }
    let is_in_minutes = high <= 120 * MINUTE;
    let (high_size, high_unit) = if is_in_minutes {
        (MINUTE, grammar.minutes)
    } else {
        (HOUR, grammar.hours)
    };
    let is_low_in_minutes = is_in_minutes || low < HOUR;
    let low_size = if is_low_in_minutes { MINUTE } else { HOUR };
    let (low, high) = (low / low_size, high.div_ceil(high_size));
    if low == 0 {
        with(texts.up_to, grammar.units(high, high_unit.bound))
    } else if is_low_in_minutes != is_in_minutes {
        let low = grammar.units(low, grammar.minutes.alone);
        let high = grammar.units(high, high_unit.alone);
        let text = filled(texts.range, "{from}", &format!("{low} "));
        text.replace("{to}", &format!(" {high}")).replace("  ", " ")
    } else if low == high {
        with(texts.about, grammar.units(high, high_unit.bound))
    } else {
        grammar.unit_range(texts.range, low, high, high_unit.alone)
    }
}

#[cfg(test)]
mod tests {
    use anteroom_config::language::Language;

    use super::*;

    #[track_caller]
    fn check(language: Language, low: u64, high: u64, expected: &str) {
        let wait = WaitRange {
            low: DurationMs(low),
            middle: DurationMs(low),
            high: DurationMs(high),
        };
        assert_eq!(range(Texts::of(language), wait), expected);
    }

    #[track_caller]
    fn check_range(low: u64, high: u64, expected: &str) {
        check(Language::English, low, high, expected);
    }

    #[test]
    fn a_wait_is_a_range_rounded_outwards() {
        check_range(0, 0, "Less than a minute");
        check_range(5 * SECOND, MINUTE, "Less than a minute");
        check_range(0, MINUTE + 1, "Up to 2 minutes");
        check_range(59 * SECOND, 5 * MINUTE, "Up to 5 minutes");
        check_range(10 * MINUTE, 20 * MINUTE, "10–20 minutes");
        check_range(90 * SECOND, 110 * SECOND, "1–2 minutes");
        check_range(5 * MINUTE, 5 * MINUTE, "About 5 minutes");
        check_range(80 * MINUTE, 110 * MINUTE, "80–110 minutes");
        check_range(40 * MINUTE, 3 * HOUR, "40 minutes – 3 hours");
        check_range(0, 5 * HOUR, "Up to 5 hours");
        check_range(HOUR, 130 * MINUTE, "1–3 hours");
        check_range(3 * HOUR, 3 * HOUR, "About 3 hours");
        check_range(3 * HOUR, 9 * HOUR, "3–9 hours");
        check_range(5 * HOUR, 9 * HOUR, "More than 5 hours");
        check_range(30 * HOUR, 90 * HOUR, "More than a day");
    }

    #[test]
    fn an_absurd_range_has_words() {
        check_range(9 * MINUTE, 2 * MINUTE, "About 2 minutes");
        check_range(u64::MAX, u64::MAX, "More than a day");
        check_range(0, u64::MAX, "Up to 5,124,095,576,031 hours");
    }

    #[test]
    fn a_duration_after_a_preposition_has_its_case() {
        check(Language::Russian, 0, 2 * MINUTE, "До 2 минут");
        check(Language::Russian, 0, 21 * MINUTE, "До 21 минуты");
        check(Language::Russian, MINUTE, 2 * MINUTE, "1–2 минуты");
        check(Language::Polish, 0, 2 * MINUTE, "Do 2 minut");
        check(Language::Polish, MINUTE, 2 * MINUTE, "1–2 minuty");
        check(Language::Arabic, 0, 2 * MINUTE, "ما يصل إلى دقيقتين");
        check(Language::Hebrew, 4 * HOUR, 9 * HOUR, "מעל 4 שעות");
    }

    #[test]
    fn promises_are_rounded_down_and_deadlines_up() {
        let english = Texts::of(Language::English);
        let at_least = |seconds| at_least(english, DurationMs::from_secs(seconds), Case::Alone);
        let until = |seconds| until(english, DurationMs::from_secs(seconds));
        assert_eq!(at_least(10), "10 seconds");
        assert_eq!(at_least(119), "119 seconds");
        assert_eq!(at_least(359), "5 minutes");
        assert_eq!(at_least(86_399), "23 hours");
        assert_eq!(until(59), "Less than a minute");
        assert_eq!(until(60), "1 minute");
        assert_eq!(until(61), "2 minutes");
        assert_eq!(until(7_201), "2 hours 1 minute");
        assert_eq!(until(3_600), "1 hour");
        assert_eq!(until(26 * 3_600), "26 hours");
        assert_eq!(until(3 * 86_400), "3 days");
    }

    #[test]
    fn points_in_time_have_their_zone() {
        let opening = Timestamp(1_785_578_400_000);
        let moment = Moment::of_day(opening).unwrap();
        assert_eq!(moment.to_string(), "2026-08-01 10:00 UTC");
        assert_eq!(moment.iso(), "2026-08-01T10:00:00Z");
        let later = Timestamp(opening.0 + 5_250);
        assert_eq!(Moment::of_clock(later).unwrap().to_string(), "10:00:05 UTC");
        let day = Moment::of_day(later).unwrap().to_string();
        assert_eq!(day, "2026-08-01 10:00:05 UTC");
    }

    #[test]
    fn a_text_is_split_at_its_points_in_time() {
        let texts = |text: &str| -> Vec<String> {
            let texts = parts(text).into_iter().map(|part| match part {
                Part::Words(words) => words.to_owned(),
                Part::Time(moment, form) => moment.to_string() + form.sign(),
            });
            texts.collect()
        };
        let range = "{1785578400000-}\u{2013}{1785579000000}";
        let expected = ["", "10:00-", "\u{2013}", "10:10 UTC", ""];
        assert_eq!(texts(range), expected);
        let day = "at {1785578400000+}.";
        assert_eq!(texts(day), ["at ", "2026-08-01 10:00 UTC+", "."]);
        assert_eq!(texts("at {1785578405000*}")[1], "10:00:05 UTC*");
        assert_eq!(texts("none"), ["none"]);
        // After the end of the calendar nothing is written.
        assert_eq!(texts("{18446744073709551615}."), ["", "."]);
    }

    #[test]
    fn a_time_after_the_calendar_is_left_out() {
        assert_eq!(Moment::of_day(Timestamp::NEVER), None);
        assert_eq!(Moment::of_clock(Timestamp(i64::MAX as u64)), None);
    }
}
