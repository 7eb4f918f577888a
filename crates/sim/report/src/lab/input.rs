//! Inputs of a comparison, so that a reader can repeat it.

use anteroom_limit::rate::Rate;
use serde_json::Value;

/// Names and values, in the order of the output.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) rate: Rate,
    named: Vec<(&'static str, Value)>,
}

impl Input {
    /// Creates the inputs of a run at this rate: names and values, in the order of the output.
    pub(crate) const fn new(rate: Rate, named: Vec<(&'static str, Value)>) -> Self {
        Self { rate, named }
    }

    /// Returns the values for JSON.
    pub(crate) fn values(&self) -> impl Iterator<Item = (String, Value)> {
        let named = self.named.iter();
        named.map(|(name, value)| ((*name).to_owned(), value.clone()))
    }

    /// Returns the values for readers: `limit 100/m, sub-windows 4, ...`, without unset ones.
    pub(crate) fn words(&self) -> String {
        let words = self.named.iter().filter_map(|(name, value)| {
            let name = name.replace('_', "-");
            match value {
                Value::Bool(false) => None,
                Value::Bool(true) => Some(name),
                Value::Array(list) if list.is_empty() => None,
                Value::Array(list) => {
                    let list: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
                    Some(format!("{name} {}", list.join(",")))
                }
                Value::String(text) => Some(format!("{name} {text}")),
                other => Some(format!("{name} {other}")),
            }
        });
        words.collect::<Vec<_>>().join(", ")
    }
}
