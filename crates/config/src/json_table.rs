//! JSON objects as TOML tables, for the code that reads the file.

use std::borrow::Cow;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// An object's entries, and the texts of its numbers, which the table borrows.
pub(crate) struct JsonTable<'v> {
    entries: Vec<(&'v String, &'v Value)>,
    /// Texts in the order in which a walk meets them.
    numbers: Vec<String>,
}

impl<'v> JsonTable<'v> {
    pub(crate) fn of(entries: impl Iterator<Item = (&'v String, &'v Value)>) -> Self {
        let entries: Vec<_> = entries.collect();
        let mut numbers = Vec::new();
        for (_, value) in &entries {
            collect_numbers(value, &mut numbers);
        }
        Self { entries, numbers }
    }

    /// Returns the table. A `null` is an empty text.
    pub(crate) fn table(&self) -> DeTable<'_> {
        let mut numbers = self.numbers.iter();
        let entries = self.entries.iter();
        entries
            .map(|(key, value)| entry(key, value, &mut numbers))
            .collect()
    }
}

fn collect_numbers(value: &Value, numbers: &mut Vec<String>) {
    match value {
        Value::Number(number) => numbers.push(number.to_string()),
        Value::Array(elements) => {
            for element in elements {
                collect_numbers(element, numbers);
            }
        }
        Value::Object(entries) => {
            for element in entries.values() {
                collect_numbers(element, numbers);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn entry<'t>(
    key: &'t str,
    value: &'t Value,
    numbers: &mut std::slice::Iter<'t, String>,
) -> (Spanned<Cow<'t, str>>, Spanned<DeValue<'t>>) {
    let key = Spanned::new(0..0, Cow::Borrowed(key));
    (key, Spanned::new(0..0, toml_value(value, numbers)))
}

fn toml_value<'t>(value: &'t Value, numbers: &mut std::slice::Iter<'t, String>) -> DeValue<'t> {
    let text = |text| DeValue::String(Cow::Borrowed(text));
    match value {
        Value::String(value) => text(value),
        Value::Bool(switch) => DeValue::Boolean(*switch),
        Value::Number(_) => {
            let typed = numbers.next().map_or("", String::as_str);
            DeValue::parse(typed).map_or_else(|_| text(typed), Spanned::into_inner)
        }
        Value::Null => text(""),
        Value::Array(elements) => {
            let elements = elements
                .iter()
                .map(|element| Spanned::new(0..0, toml_value(element, numbers)));
            DeValue::Array(elements.collect::<DeArray<'_>>())
        }
        Value::Object(entries) => {
            let entries = entries.iter();
            DeValue::Table(
                entries
                    .map(|(key, value)| entry(key, value, numbers))
                    .collect(),
            )
        }
    }
}
