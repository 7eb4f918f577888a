//! Configuration of one room by flags. Flags become the table that a file would hold, and the same
//! code reads it. [`FLAGS`] has a row for each flag of the command line.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Flag of `anteroom serve` that replaces a key of the file.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Name, without the dashes.
    pub name: &'static str,
    /// Key of the file, with its table.
    pub key: &'static str,
    /// Kind of the value.
    pub takes: Takes,
    /// Another flag that this one requires.
    pub requires: Option<&'static str>,
    /// Text of `--help`.
    pub help: &'static str,
}

/// Kind of a flag's value, with the name of the value in `--help`.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// A text.
    Text(&'static str),
    /// A number.
    Number(&'static str),
    /// A text; the flag may be repeated.
    Texts(&'static str),
    /// A flag without a value, which means `true`.
    Nothing,
}

const fn text(
    name: &'static str,
    key: &'static str,
    value_name: &'static str,
    help: &'static str,
) -> Flag {
    Flag {
        name,
        key,
        takes: Takes::Text(value_name),
        requires: None,
        help,
    }
}

const fn ceiling(name: &'static str, key: &'static str, help: &'static str) -> Flag {
    Flag {
        takes: Takes::Number("N"),
        requires: Some("origin"),
        ..text(name, key, "", help)
    }
}

/// The flags in the order of `--help`.
pub const FLAGS: &[Flag] = &[
    text(
        "origin",
        "room.origin",
        "URL",
        "Origin to protect: http://host or https://host, with or without :port",
    ),
    text(
        "listen",
        "server.listen",
        "ADDRESS",
        "Address for visitors [default: 127.0.0.1:8080]",
    ),
    text(
        "admin",
        "server.admin",
        "ADDRESS",
        "Address for operators: health, metrics, state, overrides [default: 127.0.0.1:8081]",
    ),
    text(
        "admin-token-file",
        "server.admin_token_file",
        "FILE",
        "File of operators' tokens; without it, the gateway generates one in the data folder",
    ),
    text(
        "data",
        "server.data_dir",
        "DIR",
        "Folder of the journal and the ticket keys [default: anteroom-data]",
    ),
    text(
        "store",
        STORE,
        "ADDRESS",
        "The server that the nodes of this data center share: redis://host:port; without it there \
         is one node",
    ),
    Flag {
        requires: Some("store"),
        ..text(
            "global",
            "store.global",
            "ADDRESS",
            "Global store: the server that all data centers share",
        )
    },
    text(
        "data-center",
        "server.data_center",
        "NAME",
        "Name of this data center",
    ),
    ceiling(
        "total-active-users",
        "room.total_active_users",
        "Most active visitors at once",
    ),
    ceiling(
        "new-users-per-minute",
        "room.new_users_per_minute",
        "Most new visitors in a minute",
    ),
    text(
        "session-duration",
        "room.session_duration",
        "DURATION",
        "Length of a session after the visitor's last request, such as 5m or 90s [default: 5m]",
    ),
    text(
        "queueing-method",
        "room.queueing_method",
        "METHOD",
        "fifo, random, passthrough or reject [default: fifo]",
    ),
    Flag {
        takes: Takes::Nothing,
        ..text(
            "queue-all",
            "room.queue_all",
            "",
            "Queue every new visitor and admit nobody",
        )
    },
    Flag {
        takes: Takes::Texts("CEL"),
        ..text(
            "bypass",
            "room.bypass",
            "",
            "CEL expression for requests that bypass the room; may be repeated",
        )
    },
    Flag {
        takes: Takes::Texts("ADDRESS"),
        ..text(
            "trusted-proxies",
            "server.trusted_proxies",
            "",
            "Proxy whose X-Forwarded-* headers are trusted; may be repeated",
        )
    },
];

/// Key that sets `store.kind = "valkey"` as well.
const STORE: &str = "store.local";
/// Key of the room's name; `main` by default.
const NAME: &str = "room.name";

/// Values that were typed as flags, unchanged, by the keys that they replace.
///
/// All values are text, numbers too, so that every mistake is found here, at once and in the same
/// words as for a file. A key that the file does not have is rejected like one in a file.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Flags(BTreeMap<&'static str, FlagValue>);

#[derive(Clone, Debug, Eq, PartialEq)]
enum FlagValue {
    Text(String),
    Number(String),
    Texts(Vec<String>),
    True,
}

/// Offset of values that stand in no file.
const NOWHERE: Range<usize> = 0..0;

impl Flags {
    /// Adds a flag as it was typed: one text, several if it may be repeated, none if it takes
    /// nothing.
    pub fn put(&mut self, flag: &Flag, mut typed: Vec<String>) {
        let value = match flag.takes {
            Takes::Text(_) => typed.pop().map(FlagValue::Text),
            Takes::Number(_) => typed.pop().map(FlagValue::Number),
            // A flag that was not given leaves the key out: an empty list would mean something
            // else.
            Takes::Texts(_) => (!typed.is_empty()).then_some(FlagValue::Texts(typed)),
            Takes::Nothing => Some(FlagValue::True),
        };
        self.0.extend(value.map(|value| (flag.key, value)));
    }

    /// Sets a key, such as `room.name`, to a text.
    #[must_use]
    pub fn text(self, key: &'static str, text: impl Into<String>) -> Self {
        self.with(key, FlagValue::Text(text.into()))
    }

    /// Sets a key to a number. A text that is not a number is reported later, as in a file.
    #[must_use]
    pub fn number(self, key: &'static str, number: impl ToString) -> Self {
        self.with(key, FlagValue::Number(number.to_string()))
    }

    /// Sets a key to a list of texts.
    #[must_use]
    pub fn texts(self, key: &'static str, texts: &[&str]) -> Self {
        let texts = texts.iter().map(ToString::to_string).collect();
        self.with(key, FlagValue::Texts(texts))
    }

    /// Sets a key to `true`.
    #[must_use]
    pub fn on(self, key: &'static str) -> Self {
        self.with(key, FlagValue::True)
    }

    fn with(mut self, key: &'static str, value: FlagValue) -> Self {
        self.0.insert(key, value);
        self
    }

    /// Returns the table of a file with the same values.
    pub(super) fn table(&self) -> DeTable<'_> {
        let mut root = DeTable::new();
        put(&mut root, "server", DeValue::Table(self.under("server")));
        let mut store = self.under("store");
        if self.0.contains_key(STORE) {
            put(&mut store, "kind", text_value("valkey"));
        }
        put(&mut root, "store", DeValue::Table(store));
        let mut room = self.under("room");
        if !self.0.contains_key(NAME) {
            put(&mut room, "name", text_value("main"));
        }
        let rooms = DeArray::from_iter([Spanned::new(NOWHERE, DeValue::Table(room))]);
        put(&mut root, "room", DeValue::Array(rooms));
        root
    }

    /// Returns the values of the keys of one table.
    fn under(&self, table: &str) -> DeTable<'_> {
        let mut values = DeTable::new();
        for (key, typed) in &self.0 {
            match key.split_once('.') {
                Some((owner, name)) if owner == table => put(&mut values, name, typed.value()),
                _ => {}
            }
        }
        values
    }
}

impl FlagValue {
    fn value(&self) -> DeValue<'_> {
        match self {
            Self::Text(text) => text_value(text),
            Self::Number(text) => number_value(text),
            Self::Texts(texts) => {
                let texts = texts.iter();
                let texts = texts.map(|text| Spanned::new(NOWHERE, text_value(text)));
                DeValue::Array(texts.collect())
            }
            Self::True => DeValue::Boolean(true),
        }
    }
}

fn put<'f>(table: &mut DeTable<'f>, name: &'static str, value: DeValue<'f>) {
    let key = Spanned::new(NOWHERE, Cow::Borrowed(name));
    table.insert(key, Spanned::new(NOWHERE, value));
}

fn text_value(text: &str) -> DeValue<'_> {
    DeValue::String(Cow::Borrowed(text))
}

/// Returns a number, or the text itself if it is none; the reader then rejects it.
fn number_value(text: &str) -> DeValue<'_> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match DeValue::parse(text) {
        Ok(number) if is_number => number.into_inner(),
        _ => text_value(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn the_help_of_each_flag_names_the_default_of_its_key() {
        let known = Config::known_keys();
        for flag in FLAGS {
            let key = known.get(flag.key);
            let key = key.unwrap_or_else(|| panic!("--{}: no key {}", flag.name, flag.key));
            let stated = flag.help.split_once("[default: ");
            if let Some((_, stated)) = stated {
                let default = key.default.unwrap_or_default().trim_matches('"');
                assert_eq!(stated, format!("{default}]"), "--{}", flag.name);
            }
        }
    }
}
