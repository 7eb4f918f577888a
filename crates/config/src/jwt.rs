//! `[jwt]`: rules for signed tokens, for limits that distinguish clients by a token's claims.
//!
//! Nothing is opened here. The caller reads and checks the file of keys.

use std::path::PathBuf;

use anteroom_room::time::DurationMs;
use toml::de::DeValue;

use crate::keys::{A_FILE, path_key, time_key};
use crate::kind::{Duration, InvalidValue, Kind, Text};
use crate::limit::client_key::is_token;
use crate::model::{JwtConfig, JwtKeys, TokenSource};
use crate::reader::{Key, Table};

/// Longest issuer or audience: mostly URLs.
const TEXT_BYTES_MAX: usize = 1_024;

const KEYS_FILE: Key<Text<PathBuf>> = path_key("keys_file", A_FILE, None);
const TOKEN: Key<PlaceKind> = Key {
    name: "token",
    kind: PlaceKind,
    default: Some("\"header:Authorization\""),
};
const ISSUER: Key<Text<String>> = text_key("issuer");
const AUDIENCE: Key<Text<String>> = text_key("audience");
// A clock that is more than a few minutes off is wrong.
const LEEWAY: Key<Duration> = time_key("leeway", 0, DurationMs::from_secs(300), "\"30s\"");

const fn text_key(name: &'static str) -> Key<Text<String>> {
    let read = |text: &str| {
        let is_plain = text.trim() == text && !text.chars().any(char::is_control);
        let is_right = (1..=TEXT_BYTES_MAX).contains(&text.len()) && is_plain;
        is_right.then(|| text.to_owned()).ok_or(InvalidValue::PLAIN)
    };
    Key {
        name,
        kind: Text {
            allowed: "a text of 1 to 1024 bytes without spaces around it",
            read,
        },
        default: None,
    }
}

/// Value that says where a request carries its token.
struct PlaceKind;

impl Kind for PlaceKind {
    type Value = TokenSource;

    fn allowed(&self) -> String {
        "\"header:NAME\" or \"cookie:NAME\"".to_owned()
    }

    fn read(&self, value: &DeValue<'_>) -> Result<TokenSource, InvalidValue> {
        let text = value.as_str().ok_or(InvalidValue::PLAIN)?;
        let (word, name) = text.split_once(':').ok_or(InvalidValue::PLAIN)?;
        if !is_token(name) {
            return Err(InvalidValue::PLAIN);
        }
        match word.to_ascii_lowercase().as_str() {
            "header" => Ok(TokenSource::Header(name.to_ascii_lowercase())),
            "cookie" => Ok(TokenSource::Cookie(name.to_owned())),
            _ => Err(InvalidValue::PLAIN),
        }
    }
}

/// Reads the table; `None` if it has a mistake.
pub(super) fn read(mut table: Table<'_>) -> Option<JwtConfig> {
    let mistakes = table.notes.count();
    let path = table.required(&KEYS_FILE);
    let line = table.location(KEYS_FILE.name).line;
    let token = table.defaulted(&TOKEN);
    let issuer = table.optional(&ISSUER);
    let audience = table.optional(&AUDIENCE);
    let leeway = table.defaulted(&LEEWAY);
    let is_right = table.notes.count() == mistakes;
    table.finish();
    let keys = path.filter(|_| is_right)?;
    Some(JwtConfig {
        keys: JwtKeys::File { path: keys, line },
        token,
        issuer,
        audience,
        leeway,
    })
}
