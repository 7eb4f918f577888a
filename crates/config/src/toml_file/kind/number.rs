//! Numbers with a fraction as values of keys.

use toml::de::DeValue;

use super::{Kind, Refusal};

/// A number from `min` to `max`, with a fraction or without.
pub struct Number {
    /// At least; finite.
    pub min: f64,
    /// At most; finite.
    pub max: f64,
}

impl Kind for Number {
    type Value = f64;

    fn allowed(&self) -> String {
        format!("a number from {} to {}", self.min, self.max)
    }

    fn read(&self, value: &DeValue<'_>) -> Result<f64, Refusal> {
        let text = match value {
            DeValue::Float(number) => number.as_str(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::String(text) => {
                return Err(match self.in_range(text) {
                    Some(number) => {
                        Refusal::hint(format!("did you mean {number}, without quotes?"))
                    }
                    None => Refusal::PLAIN,
                });
            }
            _ => return Err(Refusal::PLAIN),
        };
        self.in_range(text).ok_or(Refusal::PLAIN)
    }
}

impl Number {
    /// Also refuses NaN, which is in no range.
    fn in_range(&self, text: &str) -> Option<f64> {
        let number: f64 = text.trim().parse().ok()?;
        (self.min..=self.max).contains(&number).then_some(number)
    }
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
            Err(Refusal::hint("did you mean 1.5, without quotes?"))
        );
    }
}
