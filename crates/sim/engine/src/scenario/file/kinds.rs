//! Kinds of values that only scenarios have: delays, points of a curve, steps of a clock.

use anteroom_config::duration;
use anteroom_config::toml_file::{InvalidValue, Kind, quoted};
use anteroom_room::time::DurationMs;
use toml::de::DeValue;

use crate::scenario::model::{Delay, RatePoint};

/// Most new visitors per second: a thousand times what we have seen.
pub(super) const PER_SECOND_MAX: f64 = 1_000_000.0;

/// Delay of a message: `"3ms"`, or `["1ms", "3ms"]` for anything in between.
pub(super) struct Travel;

impl Travel {
    /// Longer than any network delay; lost messages have their own key.
    const MAX: DurationMs = DurationMs::from_secs(60);

    fn one(value: &DeValue<'_>) -> Option<DurationMs> {
        duration::parse(value.as_str()?).filter(|span| *span <= Self::MAX)
    }
}

impl Kind for Travel {
    type Value = Delay;

    fn allowed(&self) -> String {
        format!(
            "a duration from 0s to {} in quotes, or two such as [\"20ms\", \"90ms\"], the shorter \
             first",
            duration::text(Self::MAX)
        )
    }

    fn read(&self, value: &DeValue<'_>) -> Result<Delay, InvalidValue> {
        if let DeValue::Integer(number) = value {
            let meant = format!("{}ms", number.as_str());
            return Err(match duration::parse(&meant) {
                Some(_) => InvalidValue::hint(format!("did you mean {meant:?}?")),
                None => InvalidValue::PLAIN,
            });
        }
        let Some(list) = value.as_array() else {
            let span = Self::one(value).ok_or(InvalidValue::PLAIN)?;
            return Ok(Delay {
                from: span,
                to: span,
            });
        };
        let invalid = || InvalidValue {
            found: Some(shown_list(list)),
            hint: None,
        };
        let [from, to] = &list[..] else {
            return Err(invalid());
        };
        match (Self::one(from.get_ref()), Self::one(to.get_ref())) {
            (Some(from), Some(to)) if from <= to => Ok(Delay { from, to }),
            _ => Err(invalid()),
        }
    }
}

/// Returns a short list as it was typed, and the length of a long one.
fn shown_list(list: &[toml::Spanned<DeValue<'_>>]) -> String {
    let texts: Option<Vec<String>> = list
        .iter()
        .map(|value| match value.get_ref() {
            DeValue::String(text) => Some(quoted(text)),
            DeValue::Integer(number) => Some(number.to_string()),
            DeValue::Float(number) => Some(number.to_string()),
            _ => None,
        })
        .collect();
    match texts {
        Some(texts) if texts.len() <= 4 && texts.iter().all(|text| text.len() <= 100) => {
            format!("[{}]", texts.join(", "))
        }
        _ => format!("a list of {}", list.len()),
    }
}

/// Point of a curve: `["10m", 2.5]`.
pub(super) struct Point;

impl Kind for Point {
    type Value = RatePoint;

    fn allowed(&self) -> String {
        format!(
            "a time since the start and visitors per second up to {PER_SECOND_MAX}, such as \
             [\"10m\", 2.5]"
        )
    }

    fn read(&self, value: &DeValue<'_>) -> Result<RatePoint, InvalidValue> {
        let list = value.as_array().ok_or(InvalidValue::PLAIN)?;
        let invalid = || InvalidValue {
            found: Some(shown_list(list)),
            hint: None,
        };
        let [at, rate] = &list[..] else {
            return Err(invalid());
        };
        let at = at.get_ref().as_str().and_then(duration::parse);
        let rate = match rate.get_ref() {
            DeValue::Float(number) => number.as_str().parse().ok(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse().ok(),
            _ => None,
        };
        let rate = rate.filter(|rate| (0.0..=PER_SECOND_MAX).contains(rate));
        match (at.filter(|at| *at <= super::LENGTH_MAX), rate) {
            (Some(at), Some(per_second)) => Ok(RatePoint { at, per_second }),
            _ => Err(invalid()),
        }
    }
}

/// Step of a clock in milliseconds: `"5s"` forward, `"-5s"` back.
pub(super) struct Step;

impl Step {
    /// A clock that is off by more shows another day, and the operator notices.
    const MAX: DurationMs = DurationMs::from_secs(86_400);
}

impl Kind for Step {
    type Value = i64;

    fn allowed(&self) -> String {
        let max = duration::text(Self::MAX);
        format!("a duration from -{max} to {max} in quotes, such as \"-5s\"")
    }

    fn read(&self, value: &DeValue<'_>) -> Result<i64, InvalidValue> {
        let text = value.as_str().ok_or(InvalidValue::PLAIN)?.trim();
        let (is_back, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let span = duration::parse(text).filter(|span| *span <= Self::MAX);
        let by = span.and_then(|span| i64::try_from(span.0).ok());
        by.map(|by| if is_back { -by } else { by })
            .ok_or(InvalidValue::PLAIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<K: Kind>(kind: &K, text: &str) -> Option<K::Value> {
        kind.read(DeValue::parse(text).unwrap().get_ref()).ok()
    }

    #[test]
    fn a_delay_is_one_duration_or_two_in_order() {
        let delay = |from, to| {
            Some(Delay {
                from: DurationMs(from),
                to: DurationMs(to),
            })
        };
        assert_eq!(read(&Travel, "\"3ms\""), delay(3, 3));
        assert_eq!(read(&Travel, "[\"1ms\", \"3ms\"]"), delay(1, 3));
        for wrong in [
            "3",
            "\"61s\"",
            "[\"3ms\", \"1ms\"]",
            "[\"3ms\"]",
            "[1, 2]",
            "true",
        ] {
            assert_eq!(read(&Travel, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_point_is_a_time_and_a_rate() {
        let point = RatePoint {
            at: DurationMs::from_secs(600),
            per_second: 2.5,
        };
        assert_eq!(read(&Point, "[\"10m\", 2.5]"), Some(point));
        for wrong in [
            "[\"10m\", -1]",
            "[\"10m\", nan]",
            "[10, 1]",
            "[\"32d\", 1]",
            "\"10m\"",
            "[]",
        ] {
            assert_eq!(read(&Point, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_clock_steps_both_ways() {
        assert_eq!(read(&Step, "\"5s\""), Some(5_000));
        assert_eq!(read(&Step, "\"+5s\""), Some(5_000));
        assert_eq!(read(&Step, "\"-250ms\""), Some(-250));
        for wrong in ["\"--5s\"", "\"25h\"", "5", "\"-\""] {
            assert_eq!(read(&Step, wrong), None, "{wrong}");
        }
    }
}
