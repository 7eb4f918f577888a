//! Settings that operators may change while the gateway runs: the keys of a room that decide about
//! admission and about responses to waiting visitors. The code that reads the file reads them.
//!
//! A room's routes, origins and cookie come from the file only: to change them makes another room.
//! Storage of changes and access to them are not decided here.

use std::collections::BTreeMap;

use serde_json::Value;

use super::json_table::JsonTable;
use super::kind::nearest;
use super::model::{Config, RoomConfig};
use super::notes::Notes;
use super::problem::{Finding, Owner, Problem, Problems, key_name};
use super::reader::Table;
use super::room::{self, keys};
use super::source::Source;

/// Values of a room's keys by name, as they were typed.
pub type LiveValues = BTreeMap<String, Value>;

/// Word for no value, where the file sets one.
const NONE: &str = "none";

/// A room's configuration with some values changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// The configuration; a value that could not be changed is as before.
    pub config: RoomConfig,
    /// Every mistake in the values.
    pub problems: Vec<Problem>,
}

impl RoomConfig {
    /// Returns the room with other values for keys that may be changed while it runs.
    #[must_use]
    pub fn with_values(&self, values: &LiveValues) -> Changed {
        let mut config = self.clone();
        let mut typed: BTreeMap<_, _> = values.iter().collect();
        for row in keys::live().filter(|row| row.may_be_none()) {
            if values.get(row.name()).is_some_and(is_none) {
                row.clear(&mut config);
                typed.retain(|key, _| key.as_str() != row.name());
            }
        }
        let owner = Owner::Room(self.name.to_string());
        let ((), problems) = read_typed(owner, typed.into_iter(), |table| {
            keys::live().for_each(|row| row.change(table, &mut config));
            room::check_draw(table, &mut config.rules);
            room::check_window(table, &mut config.rules);
        });
        let problems = problems.into_iter().map(reworded).collect();
        Changed { config, problems }
    }

    /// Returns the values of all keys that may be changed while the room runs; `null` for an
    /// optional key without a value.
    #[must_use]
    pub fn values(&self) -> BTreeMap<&'static str, Value> {
        let rows = keys::live();
        rows.map(|row| (row.name(), row.value(self))).collect()
    }
}

fn is_none(value: &Value) -> bool {
    value.is_null() || value.as_str() == Some(NONE)
}

/// Runs `read` on values that are in no file, as if they stood in one. Problems have no line.
pub(crate) fn read_typed<'v, T>(
    owner: Owner,
    values: impl Iterator<Item = (&'v String, &'v Value)>,
    read: impl FnOnce(&mut Table<'_>) -> T,
) -> (T, Vec<Problem>) {
    let values = JsonTable::of(values);
    let entries = values.table();
    let mut notes = Notes::new(Some(Source::new("", "")));
    let mut table = Table::root(&mut notes, &entries);
    table.name_owner(owner);
    let read = read(&mut table);
    table.finish();
    (read, notes.problems.into_iter().map(unplaced).collect())
}

/// Returns a problem about a value that is in no file.
pub(crate) fn unplaced(problem: Problem) -> Problem {
    Problem {
        line: None,
        column: None,
        ..problem
    }
}

/// Rewords a problem for a reader who typed no file.
fn reworded(mut problem: Problem) -> Problem {
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

/// Whether a room has such a key in the file.
fn is_in_file(key: &str) -> bool {
    let mut known = Config::known_keys().into_keys();
    known.any(|path| {
        let name = path.strip_prefix("room.");
        name.is_some_and(|name| name.split('.').next() == Some(key))
    })
}

/// Checks the name of a key that is to be reset to the file's value.
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
