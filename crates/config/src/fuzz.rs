//! Properties of the parsers that hold for any bytes. Fuzzers and tests call them.

use anteroom_room::time::Timestamp;
use toml::de::{DeTable, DeValue};

use crate::api_rooms::{ApiRoom, ApiRooms, Pages};
use crate::overrides::{Actor, Log, OperatorCommand, Record as _, RoomOverrides};
use crate::{Checks, Config, RoomConfig};

/// Reads `data` as a config file.
///
/// # Panics
///
/// If a problem or a warning takes more than one line or shows a secret, or if a file is
/// rejected without a problem. Any other panic is a bug too.
pub fn config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let messages: Vec<String> = match Config::parse("fuzz.toml", &text) {
        Ok(parsed) => {
            let config = &parsed.config;
            let serves_something = !config.rooms.is_empty()
                || !config.sites.is_empty()
                || config.rate_limit_service.is_some();
            assert!(serves_something, "a file that serves nothing was accepted");
            parsed.warnings.iter().map(ToString::to_string).collect()
        }
        Err(problems) => {
            assert!(!problems.0.is_empty(), "rejected without a problem");
            problems.0.iter().map(ToString::to_string).collect()
        }
    };
    let secrets = secrets(&text);
    for line in &messages {
        assert!(!line.contains(['\n', '\r']), "more than one line: {line:?}");
        for secret in &secrets {
            assert!(!line.contains(secret.as_str()), "shows a secret: {line:?}");
        }
    }
}

/// Returns the secrets of a file: ticket keys, store passwords, and clients that a header or cookie
/// names. Only those that cannot occur in a message by chance.
fn secrets(text: &str) -> Vec<String> {
    let Ok(document) = DeTable::parse(text) else {
        return Vec::new();
    };
    let value = |table: &str, key: &str| {
        let table = document.get_ref().get(table)?;
        Some(table.get_ref().get(key)?.get_ref())
    };
    let keys = match value("server", "ticket_keys") {
        Some(DeValue::Array(list)) => list.iter().map(toml::Spanned::get_ref).collect(),
        other => Vec::from_iter(other),
    };
    let keys = keys.into_iter().filter_map(DeValue::as_str);
    let password = value("store", "password").and_then(DeValue::as_str);
    let addresses = ["local", "global"].into_iter();
    let addresses = addresses.filter_map(|key| value("store", key).and_then(DeValue::as_str));
    let properties = value("kafka", "properties").and_then(DeValue::as_array);
    let properties = properties.into_iter().flat_map(|list| list.iter());
    let properties = properties.filter_map(|property| property.get_ref().as_str());
    let properties = properties.filter_map(|property| Some(property.split_once('=')?.1));
    keys.chain(password)
        .chain(properties)
        .chain(addresses.filter_map(password_of))
        .chain(clients(document.get_ref()))
        // Shorter ones occur in our own messages.
        .filter(|secret| secret.len() >= 16 && text.matches(*secret).count() == 1)
        .map(str::to_owned)
        .collect()
}

/// Returns the clients with a limit of their own that a header or cookie names.
fn clients<'d>(document: &'d DeTable<'d>) -> Vec<&'d str> {
    let texts = |value: Option<&'d DeValue<'d>>| -> Vec<&'d str> {
        match value {
            Some(DeValue::Array(list)) => {
                let texts = list.iter().map(toml::Spanned::get_ref);
                texts.filter_map(DeValue::as_str).collect()
            }
            other => other.and_then(DeValue::as_str).into_iter().collect(),
        }
    };
    let tables = |table: &'d DeTable<'d>, name: &str| -> Vec<&'d DeTable<'d>> {
        let list = table.get(name).and_then(|value| value.get_ref().as_array());
        let tables = list.into_iter().flatten();
        tables
            .filter_map(|table| table.get_ref().as_table())
            .collect()
    };
    let key = |table: &'d DeTable<'d>| table.get("key").map(toml::Spanned::get_ref);
    let is_secret = |part: &str| part.starts_with("header:") || part.starts_with("cookie:");
    tables(document, "limit")
        .into_iter()
        .filter(|limit| texts(key(limit)).into_iter().any(is_secret))
        .flat_map(|limit| tables(limit, "overrides"))
        .flat_map(|client| texts(key(client)))
        .collect()
}

/// Returns the password in an address, whatever else is wrong with the address.
fn password_of(address: &str) -> Option<&str> {
    let (_, rest) = address.split_once("://")?;
    let (credentials, _) = rest.rsplit_once('@')?;
    let (_, password) = credentials.split_once(':')?;
    Some(password)
}

/// Reads `data` as the record of the rooms of the API, and as the keys of one room.
///
/// # Panics
///
/// If a record changes when it is written and read again, if a room is both served and left out, or
/// if a problem takes more than one line. Any other panic is a bug too.
pub fn api_rooms(data: &[u8]) {
    let record = match (ApiRooms::decode(data), serde_json::from_slice(data)) {
        (Ok(record), _) => {
            let again = ApiRooms::decode(&record.encode());
            assert_eq!(again.as_ref(), Ok(&record), "another record");
            record
        }
        (Err(_), Ok(values)) => {
            let made = ApiRoom {
                values,
                ..ApiRoom::default()
            };
            ApiRooms::default().with(&room().id, Some(made), 1)
        }
        (Err(_), Err(_)) => return,
    };
    let text = "[[site]]\nname = \"shop\"\norigin = \"http://127.0.0.1:9\"";
    let file = Config::parse("fuzz.toml", text)
        .expect("it is legal")
        .config;
    let placed = record.beside(&file, &Pages::default(), Checks::default());
    for (id, left_out) in &placed.left_out {
        assert!(!left_out.problems.is_empty(), "left out without a problem");
        assert!(
            placed.rooms.iter().all(|room| room.id != *id),
            "served, too"
        );
        for problem in &left_out.problems {
            let line = problem.to_string();
            assert!(!line.contains(['\n', '\r']), "more than one line: {line:?}");
        }
    }
}

/// Reads `data` as the record of a room's overrides, and as values that an operator sets.
///
/// # Panics
///
/// If a record changes when it is written and read again, if a problem takes more than one
/// line, or if values are both accepted and rejected. Any other panic is a bug too.
pub fn overrides(data: &[u8]) {
    if let Ok(log) = Log::decode(data) {
        assert_eq!(Log::decode(&log.encode()), Ok(log), "another log");
    }
    let overrides = match (RoomOverrides::decode(data), serde_json::from_slice(data)) {
        (Ok(overrides), _) => {
            assert_eq!(
                RoomOverrides::decode(&overrides.encode()),
                Ok(overrides.clone()),
                "another record"
            );
            overrides
        }
        (Err(_), Ok(values)) => RoomOverrides {
            values,
            ..RoomOverrides::default()
        },
        (Err(_), Err(_)) => return,
    };
    let file = room();
    let changed = overrides.applied_to(&file);
    for problem in &changed.problems {
        let line = problem.to_string();
        assert!(!line.contains(['\n', '\r']), "more than one line: {line:?}");
    }
    let command = OperatorCommand::Set(overrides.values.clone());
    let set = RoomOverrides::default().after(&command, &file, &Actor::default(), Timestamp(1));
    let is_right = changed.problems.is_empty() && !overrides.values.is_empty();
    // Besides, only the length of the record can be wrong.
    let is_long = overrides.encode().len() > 4_000;
    assert!(set.is_ok() == is_right || is_long, "accepted and rejected");
    if let Ok(set) = set {
        let text = command.to_text();
        assert!(!text.contains(['\n', '\r']), "more than one line: {text:?}");
        assert_eq!(set.applied_to(&file).config, changed.config);
        // Values in effect can be set again, and nothing changes.
        let again = changed.config.values();
        let again = again
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value));
        let again = file.with_values(&again.collect());
        assert_eq!((again.config, again.problems), (changed.config, Vec::new()));
    }
}

/// Returns a room with an opening time, so that every key can be set alone.
fn room() -> RoomConfig {
    let text = "[[room]]\nname = \"shop\"\norigin = \"http://127.0.0.1:9\"\n\
                total_active_users = 1\n\
                new_users_per_minute = 1\nbypass = []\nopens_at = \"2030-01-31T10:00:00Z\"";
    let mut config = Config::parse("fuzz.toml", text)
        .expect("it is legal")
        .config;
    config.rooms.remove(0)
}
