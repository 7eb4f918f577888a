//! What must hold for any bytes whatever; called by fuzzers and by the tests.

use toml::de::{DeTable, DeValue};

use crate::config::Config;

/// Reads `data` as a config file.
///
/// # Panics
///
/// If a problem or a warning takes more than one line or shows a ticket key, or if a file is
/// refused without a problem. Any other panic is a mistake too.
pub fn config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let told: Vec<String> = match Config::parse("fuzz.toml", &text) {
        Ok(parsed) => {
            assert!(
                !parsed.config.rooms.is_empty(),
                "a file without rooms was accepted"
            );
            parsed.warnings.iter().map(ToString::to_string).collect()
        }
        Err(problems) => {
            assert!(!problems.0.is_empty(), "refused without a problem");
            problems.0.iter().map(ToString::to_string).collect()
        }
    };
    let keys = ticket_keys(&text);
    for line in &told {
        assert!(!line.contains(['\n', '\r']), "more than one line: {line:?}");
        for key in &keys {
            assert!(!line.contains(key.as_str()), "shows a key: {line:?}");
        }
    }
}

/// Every text under `server.ticket_keys` that could not stand in a message by chance.
fn ticket_keys(text: &str) -> Vec<String> {
    let Ok(document) = DeTable::parse(text) else {
        return Vec::new();
    };
    let listed = document
        .get_ref()
        .get("server")
        .and_then(|server| server.get_ref().get("ticket_keys"))
        .map(|keys| match keys.get_ref() {
            DeValue::Array(list) => list.iter().map(toml::Spanned::get_ref).collect(),
            other => vec![other],
        });
    listed
        .unwrap_or_default()
        .into_iter()
        .filter_map(DeValue::as_str)
        // Shorter ones occur in our own words.
        .filter(|key| key.len() >= 16 && text.matches(*key).count() == 1)
        .map(str::to_owned)
        .collect()
}
