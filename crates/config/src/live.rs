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

use super::duration;
use super::kind::{Kind, nearest};
use super::model::RoomConfig;
use super::notes::Notes;
use super::problem::{Finding, Owner, Problem, Problems, key_name};
use super::reader::{Key, Table};
use super::room::{self, keys};
use super::source::Source;
use crate::time_text::rfc3339_millis;
use crate::words;

/// Values of a room's keys by name, as they were typed.
pub type LiveValues = BTreeMap<String, Value>;

/// What stands for no value where the file has one.
const NONE: &str = "none";

/// Keys of a room that only the file sets.
const ONLY_IN_FILE: [&str; 16] = [
    "name",
    "host",
    "path",
    "additional_routes",
    "origin",
    "origins",
    "origin_http2",
    "origin_ca_file",
    "health_check",
    "default_template_language",
    "custom_page_html",
    "custom_page_file",
    "cookie_suffix",
    "cookie_attributes",
    "enabled_origin_commands",
    "bypass",
];

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
        let table = table_of(values, &numbers);
        let mut notes = Notes::new(Some(Source::new("", "")));
        let mut reading = Table::root(&mut notes, &table);
        reading.name_owner(Owner::Room(self.name.to_string()));
        let mut config = self.clone();
        read(&mut reading, &mut config, values);
        reading.finish();
        let problems = notes.problems.into_iter().map(reworded).collect();
        Changed { config, problems }
    }

    /// The values of all keys that may be changed while the room runs; `null` where a key that may
    /// be left out has none.
    #[must_use]
    pub fn values(&self) -> BTreeMap<&'static str, Value> {
        let rules = &self.rules;
        let span = |span| Value::from(duration::text(span));
        let word = |found: Option<&'static str>| Value::from(found.unwrap_or_default());
        let factor = f64::from(rules.curve_factor.millionths) / 1_000_000.0;
        let mut values = BTreeMap::from([
            (
                keys::TOTAL_ACTIVE_USERS.name,
                rules.limits.total_active_users.into(),
            ),
            (
                keys::NEW_USERS_PER_MINUTE.name,
                rules.limits.new_users_per_minute.into(),
            ),
            (keys::SESSION_DURATION.name, span(rules.session_duration)),
            (
                keys::DISABLE_SESSION_RENEWAL.name,
                (!rules.session_renewal).into(),
            ),
            (
                keys::QUEUEING_METHOD.name,
                words::queueing_method(rules.queueing_method).into(),
            ),
            (keys::QUEUE_ALL.name, rules.queue_all.into()),
            (
                keys::OPENS_AT.name,
                rules.opens_at.map(rfc3339_millis).into(),
            ),
            (keys::DRAW.name, rules.draw.into()),
            (
                keys::ALLOCATION.name,
                words::allocation(rules.allocation).into(),
            ),
            (keys::CURVE_FACTOR.name, factor.into()),
            (keys::PACING.name, rules.pacing.into()),
            (
                keys::SEAT.name,
                word(words::word_of(
                    words::SEAT_NEEDS_COOKIE,
                    rules.seat_needs_cookie,
                )),
            ),
            (keys::PLACE_GRACE.name, span(rules.place_grace)),
            (
                keys::ASK_AGAIN.name,
                rules.ask_again.map(duration::text).into(),
            ),
            (
                keys::STORE_FAILURE.name,
                word(words::word_of(
                    words::ON_STORE_FAILURE,
                    rules.on_store_failure,
                )),
            ),
        ]);
        values.extend(self.response_values());
        values
    }

    /// Those that say how requests are answered, and not who goes in.
    fn response_values(&self) -> [(&'static str, Value); 5] {
        [
            (keys::SUSPENDED.name, self.suspended.into()),
            (
                keys::JSON_RESPONSE_ENABLED.name,
                self.json_response_enabled.into(),
            ),
            (
                keys::QUEUEING_STATUS_CODE.name,
                self.queueing_status_code.into(),
            ),
            (
                keys::NON_NAVIGATION_STATUS_CODE.name,
                self.non_navigation_status_code.into(),
            ),
            (
                keys::MAX_ADDRESSES_PER_TICKET.name,
                self.max_addresses_per_ticket.into(),
            ),
        ]
    }
}

fn read(table: &mut Table<'_>, config: &mut RoomConfig, values: &LiveValues) {
    let rules = &mut config.rules;
    put(
        table,
        &keys::TOTAL_ACTIVE_USERS,
        &mut rules.limits.total_active_users,
    );
    put(
        table,
        &keys::NEW_USERS_PER_MINUTE,
        &mut rules.limits.new_users_per_minute,
    );
    put(table, &keys::SESSION_DURATION, &mut rules.session_duration);
    let mut is_fixed = !rules.session_renewal;
    put(table, &keys::DISABLE_SESSION_RENEWAL, &mut is_fixed);
    rules.session_renewal = !is_fixed;
    put(table, &keys::QUEUEING_METHOD, &mut rules.queueing_method);
    put(table, &keys::QUEUE_ALL, &mut rules.queue_all);
    put_or_none(table, values, &keys::OPENS_AT, &mut rules.opens_at);
    put(table, &keys::DRAW, &mut rules.draw);
    put(table, &keys::ALLOCATION, &mut rules.allocation);
    put(table, &keys::CURVE_FACTOR, &mut rules.curve_factor);
    put(table, &keys::PACING, &mut rules.pacing);
    put(table, &keys::SEAT, &mut rules.seat_needs_cookie);
    put(table, &keys::PLACE_GRACE, &mut rules.place_grace);
    put_or_none(table, values, &keys::ASK_AGAIN, &mut rules.ask_again);
    put(table, &keys::STORE_FAILURE, &mut rules.on_store_failure);
    put(table, &keys::SUSPENDED, &mut config.suspended);
    put(
        table,
        &keys::JSON_RESPONSE_ENABLED,
        &mut config.json_response_enabled,
    );
    put(
        table,
        &keys::QUEUEING_STATUS_CODE,
        &mut config.queueing_status_code,
    );
    put(
        table,
        &keys::NON_NAVIGATION_STATUS_CODE,
        &mut config.non_navigation_status_code,
    );
    put_or_none(
        table,
        values,
        &keys::MAX_ADDRESSES_PER_TICKET,
        &mut config.max_addresses_per_ticket,
    );
    let rules = &mut config.rules;
    // One that could not be read was told, and is not missing.
    let is_typed = values
        .get(keys::OPENS_AT.name)
        .is_some_and(|value| !is_none(value));
    let has_opening = rules.opens_at.is_some() || is_typed;
    if !room::may_draw(rules.draw, has_opening, rules.queueing_method) {
        room::refuse_draw(table);
        // Without an opening nothing could be drawn.
        rules.draw = false;
    }
}

fn put<K: Kind>(table: &mut Table<'_>, key: &Key<K>, place: &mut K::Value) {
    if let Some(value) = table.optional(key) {
        *place = value;
    }
}

/// A key that may also be without a value.
fn put_or_none<K: Kind>(
    table: &mut Table<'_>,
    values: &LiveValues,
    key: &Key<K>,
    place: &mut Option<K::Value>,
) {
    if values.get(key.name).is_some_and(is_none) {
        table.skip(key.name);
        *place = None;
    } else if let Some(value) = table.optional(key) {
        *place = Some(value);
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
    if problem.finding == Finding::UnknownKey {
        let only = ONLY_IN_FILE.iter().find(|known| **known == problem.key);
        if only.is_some() {
            problem.finding = Finding::Remark("only the configuration file sets this".to_owned());
            problem.hint = Some("change it there and send SIGHUP".to_owned());
        }
    }
    let may_be_none = [
        keys::OPENS_AT.name,
        keys::ASK_AGAIN.name,
        keys::MAX_ADDRESSES_PER_TICKET.name,
    ];
    if may_be_none.contains(&problem.key.as_str()) {
        problem.allowed.push_str(", or none");
    }
    problem
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
