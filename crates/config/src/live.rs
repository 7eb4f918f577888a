//! What may be changed while the gateway runs? The keys of a room that decide who goes in and how
//! those who wait are answered, read by the same code as the file.
//!
//! Where a room is, what it guards and what its cookie is called stay the file's: to change those
//! is to make another room of it. Who changes what, and where that is kept, is not known here.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::kind::nearest;
use super::model::{Config, RoomConfig};
use super::notes::Notes;
use super::problem::{Finding, Owner, Problem, Problems, key_name};
use super::reader::Table;
use super::room::{self, keys};
use super::source::Source;

/// Values of a room's keys by name, as they were typed.
pub type LiveValues = BTreeMap<String, Value>;

/// What stands for no value where the file has one.
const NONE: &str = "none";

/// A room's configuration with some values changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// The configuration; what could not be changed is as it was.
    pub config: RoomConfig,
    /// Everything that is wrong with the values.
    pub problems: Vec<Problem>,
}

impl RoomConfig {
    /// The same room with other values for keys that may be changed while it runs.
    #[must_use]
    pub fn with_values(&self, values: &LiveValues) -> Changed {
        let numbers = numbers(values);
        let mut table = table_of(values, &numbers);
        let mut config = self.clone();
        for row in keys::live().filter(|row| row.may_be_none()) {
            if values.get(row.name()).is_some_and(is_none) {
                row.clear(&mut config);
                table.remove(row.name());
            }
        }
        let mut notes = Notes::new(Some(Source::new("", "")));
        let mut reading = Table::root(&mut notes, &table);
        reading.name_owner(Owner::Room(self.name.to_string()));
        keys::live().for_each(|row| row.change(&mut reading, &mut config));
        room::check_draw(&mut reading, &mut config.rules);
        reading.finish();
        let problems = notes.problems.into_iter().map(reworded).collect();
        Changed { config, problems }
    }

    /// The values of all keys that may be changed while the room runs; `null` where a key that may
    /// be left out has none.
    #[must_use]
    pub fn values(&self) -> BTreeMap<&'static str, Value> {
        let rows = keys::live();
        rows.map(|row| (row.name(), row.shown(self))).collect()
    }
}

fn is_none(value: &Value) -> bool {
    value.is_null() || value.as_str() == Some(NONE)
}

/// The numbers among the values as text, which the table borrows.
pub(crate) fn numbers(values: &LiveValues) -> BTreeMap<&str, String> {
    let numbers = values.iter().filter(|(_, value)| value.is_number());
    numbers
        .map(|(key, number)| (key.as_str(), number.to_string()))
        .collect()
}

/// The table that a file would hold which says the same.
pub(crate) fn table_of<'v>(
    values: &'v LiveValues,
    numbers: &'v BTreeMap<&str, String>,
) -> DeTable<'v> {
    let mut table = DeTable::new();
    for (key, value) in values {
        let text = |text| DeValue::String(Cow::Borrowed(text));
        let value = match value {
            Value::String(value) => text(value),
            Value::Bool(switch) => DeValue::Boolean(*switch),
            Value::Number(_) => {
                let typed = numbers.get(key.as_str()).map_or("", String::as_str);
                DeValue::parse(typed).map_or_else(|_| text(typed), Spanned::into_inner)
            }
            Value::Null => text(""),
            Value::Array(values) => DeValue::Array(texts(values)),
            Value::Object(_) => DeValue::Table(DeTable::new()),
        };
        let key = Spanned::new(0..0, Cow::Borrowed(key.as_str()));
        table.insert(key, Spanned::new(0..0, value));
    }
    table
}

/// A list of texts; anything else in it is left to be refused.
fn texts(values: &[Value]) -> DeArray<'_> {
    let texts = values.iter().map(|value| {
        let text = value.as_str().map(Cow::Borrowed);
        Spanned::new(0..0, text.map_or(DeValue::Boolean(false), DeValue::String))
    });
    texts.collect()
}

/// A problem as somebody reads it who typed no file.
fn reworded(mut problem: Problem) -> Problem {
    problem.line = None;
    problem.column = None;
    if let Some(bare) = problem.allowed.strip_suffix(" in quotes") {
        problem.allowed = bare.to_owned();
    }
    if problem.finding == Finding::UnknownKey && is_in_file(&problem.key) {
        problem.finding = Finding::Remark("only the configuration file sets this".to_owned());
        problem.hint = Some("change it there and send SIGHUP".to_owned());
    }
    let mut optional = keys::live().filter(|row| row.may_be_none());
    if optional.any(|row| row.name() == problem.key) {
        problem.allowed.push_str(", or none");
    }
    problem
}

/// Whether the table of a room has such a key.
fn is_in_file(key: &str) -> bool {
    let mut known = Config::known_keys().into_keys();
    known.any(|path| {
        let name = path.strip_prefix("room.");
        name.is_some_and(|name| name.split('.').next() == Some(key))
    })
}

/// Checks the name of a key that is to be set back to what the file says.
///
/// # Errors
///
/// [`Problems`] if there is no such key.
pub fn check_live_key(room: &RoomConfig, key: &str, others: &[&str]) -> Result<(), Problems> {
    let known = room.values();
    if known.contains_key(key) || others.contains(&key) {
        return Ok(());
    }
    let near = nearest(key, known.into_keys().chain(others.iter().copied()));
    let problem = Problem {
        source: "".into(),
        line: None,
        column: None,
        owner: Some(Owner::Room(room.name.to_string())),
        key: key_name(key),
        finding: Finding::UnknownKey,
        allowed: String::new(),
        hint: near.map(|known| format!("did you mean {known}?")),
    };
    Err(Problems(vec![reworded(problem)]))
}

#[cfg(test)]
mod tests;
