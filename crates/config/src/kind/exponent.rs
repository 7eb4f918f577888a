//! Exponent of the `curve` allocation as the value of a key.

use anteroom_room::rules::CurveFactor;
use serde_json::Value;
use toml::de::DeValue;

use crate::toml_file::kind::{InvalidValue, Kind, LiveKind};

/// Exponent of the `curve` allocation, from 0.0 to `max`.
pub(crate) struct Exponent {
    pub(crate) max: f64,
}

impl Kind for Exponent {
    type Value = CurveFactor;

    fn allowed(&self) -> String {
        format!("a number from 0.0 to {:?}", self.max)
    }

    fn read(&self, value: &DeValue<'_>) -> Result<CurveFactor, InvalidValue> {
        let text = match value {
            DeValue::Float(number) => number.as_str(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            _ => return Err(InvalidValue::PLAIN),
        };
        let number: f64 = text.parse().map_err(|_| InvalidValue::PLAIN)?;
        // Also rejects NaN, which is in no range.
        if !(0.0..=self.max).contains(&number) {
            return Err(InvalidValue::PLAIN);
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "in range: 0 to a few million, rounded"
        )]
        let millionths = (number * 1_000_000.0).round() as u32;
        Ok(CurveFactor { millionths })
    }
}

impl LiveKind for Exponent {
    fn typed(&self, value: &CurveFactor) -> Value {
        (f64::from(value.millionths) / 1_000_000.0).into()
    }
}
