//! One room without a file: flags become the table that a file would have held, and go the same
//! way from there. [`FLAGS`] has a row for each flag that the command line has.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// One flag of `anteroom serve` that stands for a key of the file.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Without the dashes.
    pub name: &'static str,
    /// The key, with its table.
    pub key: &'static str,
    /// What follows the name.
    pub takes: Takes,
    /// Another flag that must stand beside it.
    pub requires: Option<&'static str>,
    /// What `--help` says.
    pub help: &'static str,
}

/// What follows the name of a flag, and what help calls it.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// A text.
    Text(&'static str),
    /// A number.
    Number(&'static str),
    /// A text; the flag may be repeated.
    Texts(&'static str),
    /// Nothing: the flag alone says `true`.
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
        "Where admitted requests go: http://host, https://host, with :port or without",
    ),
    text(
        "listen",
        "server.listen",
        "ADDRESS",
        "Where visitors connect [default: 127.0.0.1:8080]",
    ),
    text(
        "admin",
        "server.admin",
        "ADDRESS",
        "Where operators connect: health, metrics, state, changes [default: 127.0.0.1:8081]",
    ),
    text(
        "admin-token-file",
        "server.admin_token_file",
        "FILE",
        "Tokens of those who may change rooms; without it one is drawn and kept in the data folder",
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
            "The server behind all data centers",
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
        "Most visitors inside at once",
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
        "How long a visitor stays inside after its last request, as in 5m or 90s [default: 5m]",
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
            "Hold everybody who is not inside yet",
        )
    },
    Flag {
        takes: Takes::Texts("CEL"),
        ..text(
            "bypass",
            "room.bypass",
            "",
            "Requests that pass untouched, as CEL expressions; may be repeated",
        )
    },
    Flag {
        takes: Takes::Texts("ADDRESS"),
        ..text(
            "trusted-proxies",
            "server.trusted_proxies",
            "",
            "Proxies whose X-Forwarded-* headers are believed; may be repeated",
        )
    },
];

/// With it goes `store.kind = "valkey"`.
const STORE: &str = "store.local";
/// The room is called `main` where nobody names it.
const NAME: &str = "room.name";

/// What was typed on the command line, untouched, by the keys that it stands for.
///
/// Text everywhere, numbers too, so that every mistake is found here, in one go and in the same
/// words as for a file. A key that the file does not have is refused like one in a file.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Flags(BTreeMap<&'static str, FlagValue>);

#[derive(Clone, Debug, Eq, PartialEq)]
enum FlagValue {
    Text(String),
    Number(String),
    Texts(Vec<String>),
    True,
}

/// Nothing of it stands in a file.
const NOWHERE: Range<usize> = 0..0;

impl Flags {
    /// Takes a flag as it was typed: with one text, with several if it may be repeated, with none
    /// if it takes nothing.
    pub fn put(&mut self, flag: &Flag, mut typed: Vec<String>) {
        let value = match flag.takes {
            Takes::Text(_) => typed.pop().map(FlagValue::Text),
            Takes::Number(_) => typed.pop().map(FlagValue::Number),
            // One that was not given leaves the key out: an empty list says something else.
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

    /// Sets a key to a number, which may be none: that is then a mistake like any other.
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

    /// The table of the file that would say the same.
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

    /// What was typed for the keys of one table.
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

/// What is no number stays text, and is refused as such.
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
    fn each_flag_stands_for_a_key_and_tells_its_default() {
        let known = Config::known_keys();
        for flag in FLAGS {
            let key = known.get(flag.key);
            let key = key.unwrap_or_else(|| panic!("--{}: no key {}", flag.name, flag.key));
            let told = flag.help.split_once("[default: ");
            if let Some((_, told)) = told {
                let default = key.default.unwrap_or_default().trim_matches('"');
                assert_eq!(told, format!("{default}]"), "--{}", flag.name);
            }
        }
    }
}
