//! Kinds of values that a key may hold. One small type each: it knows the range, describes it and
//! reads a value, so that message, example and check cannot disagree.

use anteroom_room::time::{DurationMs, Timestamp};
use serde_json::Value;
use toml::de::DeValue;

use super::duration;
use crate::time_text::rfc3339_millis;

/// Kind of the value of a key.
pub trait Kind {
    /// Type of a value after it was read.
    type Value;

    /// Describes what is allowed.
    fn allowed(&self) -> String;

    /// Reads `value`.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if it is not allowed.
    fn read(&self, value: &DeValue<'_>) -> Result<Self::Value, InvalidValue>;

    /// Whether the value must never be shown.
    fn is_secret(&self) -> bool {
        false
    }
}

/// A kind whose values operators may see and change while the gateway runs.
pub trait LiveKind: Kind {
    /// Returns the value as it would be typed.
    fn typed(&self, value: &Self::Value) -> Value;
}

/// Error of a value that is not allowed, with details for the message.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct InvalidValue {
    /// Advice for the reader.
    pub hint: Option<String>,
    /// Text to show instead of the value.
    pub found: Option<String>,
}

impl InvalidValue {
    /// An error without details.
    pub const PLAIN: Self = Self {
        hint: None,
        found: None,
    };

    /// Returns an error with a hint.
    pub fn hint(hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            found: None,
        }
    }
}

/// An integer of type `T` from `min` to `max`.
pub struct Whole<T> {
    /// Least value.
    pub min: T,
    /// Greatest value.
    pub max: T,
    /// Text after the range, such as the meaning of 0.
    pub note: &'static str,
}

impl<T: Copy + PartialOrd + std::fmt::Display + TryFrom<i64>> Kind for Whole<T> {
    type Value = T;

    fn allowed(&self) -> String {
        format!("an integer from {} to {}{}", self.min, self.max, self.note)
    }

    fn read(&self, value: &DeValue<'_>) -> Result<T, InvalidValue> {
        if let DeValue::String(text) = value
            && let Ok(number) = text.trim().parse::<i64>()
            && self.in_range(number).is_some()
        {
            return Err(InvalidValue::hint(format!(
                "did you mean {number}, without quotes?"
            )));
        }
        integer(value)
            .and_then(|number| self.in_range(number))
            .ok_or(InvalidValue::PLAIN)
    }
}

impl<T> LiveKind for Whole<T>
where
    Self: Kind<Value = T>,
    T: Copy + Into<Value>,
{
    fn typed(&self, value: &T) -> Value {
        (*value).into()
    }
}

impl<T: Copy + PartialOrd + TryFrom<i64>> Whole<T> {
    fn in_range(&self, number: i64) -> Option<T> {
        let number = T::try_from(number).ok()?;
        (self.min <= number && number <= self.max).then_some(number)
    }
}

fn integer(value: &DeValue<'_>) -> Option<i64> {
    let number = value.as_integer()?;
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

/// One of a few numbers. The number in quotes is accepted too, as other products write it.
pub struct OneNumber(pub &'static [u16]);

impl Kind for OneNumber {
    type Value = u16;

    fn allowed(&self) -> String {
        one_of(self.0.iter().map(u16::to_string))
    }

    fn read(&self, value: &DeValue<'_>) -> Result<u16, InvalidValue> {
        let number = match value {
            DeValue::String(text) => text.parse().ok(),
            other => integer(other).and_then(|number| u16::try_from(number).ok()),
        };
        number
            .filter(|number| self.0.contains(number))
            .ok_or(InvalidValue::PLAIN)
    }
}

impl LiveKind for OneNumber {
    fn typed(&self, value: &u16) -> Value {
        (*value).into()
    }
}

/// A number from `min` to `max`, with a fraction or without.
pub struct Number {
    /// Least value; finite.
    pub min: f64,
    /// Greatest value; finite.
    pub max: f64,
}

impl Kind for Number {
    type Value = f64;

    fn allowed(&self) -> String {
        format!("a number from {} to {}", self.min, self.max)
    }

    fn read(&self, value: &DeValue<'_>) -> Result<f64, InvalidValue> {
        let text = match value {
            DeValue::Float(number) => number.as_str(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::String(text) => {
                return Err(match self.in_range(text) {
                    Some(number) => {
                        InvalidValue::hint(format!("did you mean {number}, without quotes?"))
                    }
                    None => InvalidValue::PLAIN,
                });
            }
            _ => return Err(InvalidValue::PLAIN),
        };
        self.in_range(text).ok_or(InvalidValue::PLAIN)
    }
}

impl Number {
    /// Returns the number if it is in the range. NaN is in no range.
    fn in_range(&self, text: &str) -> Option<f64> {
        let number: f64 = text.trim().parse().ok()?;
        (self.min..=self.max).contains(&number).then_some(number)
    }
}

/// `true` or `false`.
pub struct Switch;

impl Kind for Switch {
    type Value = bool;

    fn allowed(&self) -> String {
        "true or false".to_owned()
    }

    fn read(&self, value: &DeValue<'_>) -> Result<bool, InvalidValue> {
        if let DeValue::String(text) = value
            && let Ok(switch) = text.to_ascii_lowercase().parse::<bool>()
        {
            return Err(InvalidValue::hint(format!(
                "did you mean {switch}, without quotes?"
            )));
        }
        value.as_bool().ok_or(InvalidValue::PLAIN)
    }
}

impl LiveKind for Switch {
    fn typed(&self, value: &bool) -> Value {
        (*value).into()
    }
}

/// `true` or `false`, for a key that switches a feature off: `true` is read as `false`.
pub struct OffSwitch;

impl Kind for OffSwitch {
    type Value = bool;

    fn allowed(&self) -> String {
        Switch.allowed()
    }

    fn read(&self, value: &DeValue<'_>) -> Result<bool, InvalidValue> {
        Switch.read(value).map(|is_off| !is_off)
    }
}

impl LiveKind for OffSwitch {
    fn typed(&self, value: &bool) -> Value {
        (!value).into()
    }
}

/// One of a few words, in any case.
pub struct Choice<T: 'static>(pub &'static [(&'static str, T)]);

impl<T: Copy> Kind for Choice<T> {
    type Value = T;

    fn allowed(&self) -> String {
        one_of(self.0.iter().map(|(word, _)| format!("{word:?}")))
    }

    fn read(&self, value: &DeValue<'_>) -> Result<T, InvalidValue> {
        let text = value.as_str().ok_or(InvalidValue::PLAIN)?;
        let find = |word: &str| {
            self.0
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(word))
        };
        find(text).map(|(_, meaning)| *meaning).ok_or_else(|| {
            let words = self.0.iter().map(|(word, _)| *word);
            InvalidValue {
                hint: nearest(text, words).map(|word| format!("did you mean {word:?}?")),
                found: None,
            }
        })
    }
}

impl<T: Copy + PartialEq> LiveKind for Choice<T> {
    fn typed(&self, value: &T) -> Value {
        let mut words = self.0.iter();
        let found = words.find(|(_, known)| known == value);
        found.map_or("", |(word, _)| *word).into()
    }
}

/// Text that a function reads.
pub struct Text<T> {
    /// Description of what is allowed.
    pub allowed: &'static str,
    /// Function that reads it.
    pub read: fn(&str) -> Result<T, InvalidValue>,
}

impl<T> Kind for Text<T> {
    type Value = T;

    fn allowed(&self) -> String {
        self.allowed.to_owned()
    }

    fn read(&self, value: &DeValue<'_>) -> Result<T, InvalidValue> {
        (self.read)(value.as_str().ok_or(InvalidValue::PLAIN)?)
    }
}

/// A duration in quotes from `min` to `max`.
pub struct Duration {
    /// Least value.
    pub min: DurationMs,
    /// Greatest value.
    pub max: DurationMs,
    /// Unit that the author of a small number without one probably meant; only for the hint.
    pub bare_unit: &'static str,
}

impl Kind for Duration {
    type Value = DurationMs;

    fn allowed(&self) -> String {
        let (min, max) = (duration::text(self.min), duration::text(self.max));
        format!("a duration from {min} to {max} in quotes")
    }

    fn read(&self, value: &DeValue<'_>) -> Result<DurationMs, InvalidValue> {
        let in_range = |span: &DurationMs| (self.min..=self.max).contains(span);
        let read = |text: &str| duration::parse(text).filter(in_range);
        let bare = match value {
            DeValue::String(text) => match read(text) {
                Some(span) => return Ok(span),
                None => text.trim().parse().ok(),
            },
            other => integer(other),
        };
        let meant = bare.map(|number: i64| {
            // A large number without a unit usually is in seconds.
            let unit = if number > 30 { "s" } else { self.bare_unit };
            format!("{number}{unit}")
        });
        Err(match meant.filter(|meant| read(meant).is_some()) {
            Some(meant) => InvalidValue::hint(format!("did you mean {meant:?}?")),
            None => InvalidValue::PLAIN,
        })
    }
}

impl LiveKind for Duration {
    fn typed(&self, value: &DurationMs) -> Value {
        duration::text(*value).into()
    }
}

/// A point in time with its offset: RFC 3339 in quotes, or a TOML date-time.
pub struct Moment;

impl Kind for Moment {
    type Value = Timestamp;

    fn allowed(&self) -> String {
        "a date and time with its offset, such as \"2030-01-31T10:00:00+01:00\"".to_owned()
    }

    fn read(&self, value: &DeValue<'_>) -> Result<Timestamp, InvalidValue> {
        let text = match value {
            DeValue::String(text) => text.to_string(),
            DeValue::Datetime(moment) => moment.to_string(),
            _ => return Err(InvalidValue::PLAIN),
        };
        if let Ok(moment) = text.parse::<jiff::Timestamp>() {
            return u64::try_from(moment.as_millisecond())
                .map(Timestamp)
                .map_err(|_| InvalidValue::hint("it is before 1970"));
        }
        if text.parse::<jiff::civil::DateTime>().is_ok() {
            return Err(InvalidValue::hint(
                "add the offset, such as Z for UTC or +02:00: without one it is another moment \
                 on every machine",
            ));
        }
        Err(InvalidValue::PLAIN)
    }
}

impl LiveKind for Moment {
    fn typed(&self, value: &Timestamp) -> Value {
        rfc3339_millis(*value).into()
    }
}

/// Returns the known word that `typed` was probably meant to be; `None` if none is near.
#[must_use]
pub fn nearest<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Longer than every key: no word is near, and the comparison is quadratic.
    if typed.len() > 64 {
        return None;
    }
    let typed = typed.to_ascii_lowercase();
    // A word with two errors, or one in three characters, is still recognisable.
    known
        .map(|word| (strsim::damerau_levenshtein(&typed, word), word))
        .filter(|(distance, word)| *distance <= 2.max(word.len() / 3) && *distance < word.len())
        .min()
        .map(|(_, word)| word)
}

fn one_of(words: impl Iterator<Item = String>) -> String {
    let mut words: Vec<String> = words.collect();
    let last = words.pop().unwrap_or_default();
    if words.is_empty() {
        return last;
    }
    format!("{} or {last}", words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_a_fraction_or_without_and_nothing_else_is() {
        let kind = Number { min: 0.0, max: 2.5 };
        let check = |text: &str, expected: Option<f64>| {
            let value = DeValue::parse(text).unwrap();
            assert_eq!(kind.read(value.get_ref()).ok(), expected, "{text}");
        };
        check("1", Some(1.0));
        check("2.5", Some(2.5));
        check("1e-3", Some(0.001));
        for wrong in ["-1", "2.6", "nan", "inf", "0x1", "\"1\"", "true", "[1]"] {
            check(wrong, None);
        }
        let quoted = DeValue::parse("\"1.5\"").unwrap();
        assert_eq!(
            kind.read(quoted.get_ref()),
            Err(InvalidValue::hint("did you mean 1.5, without quotes?"))
        );
    }
}
