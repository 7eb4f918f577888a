//! The example config names every key and is valid. Pages of the documentation that name keys are
//! checked too.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anteroom_config::{Config, KnownKey, OriginCommands, StoreConfig};

pub(crate) const EXAMPLE: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../anteroom.example.toml"
));

/// Returns the lines of the example; a list whose lines begin with `#` is joined to one line.
fn lines() -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in EXAMPLE.lines() {
        match line.strip_prefix("# ") {
            Some(more) if more == "]" || more.starts_with("    ") => {
                let list = lines.last_mut().expect("a list has a first line");
                let is_edge = more == "]" || list.ends_with('[');
                list.push_str(if is_edge { "" } else { " " });
                list.push_str(more.trim());
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines
}

/// Entry `# key = value` or `key = value`, and the comment before it.
pub(crate) struct Entry {
    is_commented: bool,
    value: String,
    pub(crate) comment: String,
}

/// Returns every entry of the example by its path: `room.cookie_attributes`.
pub(crate) fn entries() -> BTreeMap<String, Entry> {
    let mut entries = BTreeMap::new();
    let mut table = String::new();
    let mut comment = String::new();
    for line in &lines() {
        let bare = line.strip_prefix("# ");
        if line.is_empty() {
            comment.clear();
        } else if let Some((key, value)) = key_and_value(bare.unwrap_or(line)) {
            entries.insert(
                format!("{table}.{key}"),
                Entry {
                    is_commented: bare.is_some(),
                    value: value.to_owned(),
                    comment: std::mem::take(&mut comment),
                },
            );
        } else if is_header(bare.unwrap_or(line)) {
            table = bare.unwrap_or(line).trim_matches(['[', ']']).to_owned();
        } else if let Some(text) = bare {
            comment.push_str(text);
            comment.push(' ');
        }
    }
    entries
}

fn key_and_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(" = ")?;
    let is_of_key = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_key = key
        .bytes()
        .all(|byte| is_of_key(byte) || matches!(byte, b'_' | b'.'));
    is_key.then_some((key, value))
}

/// Whether a line is `[table]` or `[[table]]`.
fn is_header(line: &str) -> bool {
    line.starts_with('[') && line.ends_with(']')
}

#[test]
fn the_example_is_valid_and_has_no_warning() {
    let parsed = Config::parse("anteroom.example.toml", EXAMPLE).unwrap();
    assert_eq!(parsed.warnings, []);
}

/// Lines that cannot be enabled together with the rest, and their replacements.
const ALTERNATIVES: [(&str, &str); 14] = [
    // Next to `origins`.
    ("origin = \"http://127.0.0.1:3000\"", ""),
    ("origin = \"http://127.0.0.1:3001\"", ""),
    // Next to `host`.
    ("hosts = [\"example.com\", \"www.example.com\"]", ""),
    // A global store needs names of data centers.
    ("data_center = \"local\"", "data_center = \"fra1\""),
    ("kind = \"embedded\"", "kind = \"valkey\""),
    ("password = \"...\"", ""),
    ("custom_page_file = \"waiting.html\"", ""),
    ("custom_page_file = \"sale.html\"", ""),
    // For other algorithms, actions and headers.
    ("burst = 20", ""),
    ("initial_burst = 50", ""),
    ("queue = 5", ""),
    ("delay_max = \"5s\"", ""),
    ("legacy_reset = \"seconds\"", ""),
    ("or \"local\".\non_store_failure = \"bounded\"", ""),
];

#[test]
fn the_example_is_valid_with_every_line_enabled() {
    let mut text: String = lines()
        .iter()
        .map(|line| match line.strip_prefix("# ") {
            Some(bare) if key_and_value(bare).is_some() || is_header(bare) => format!("{bare}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    for (line, instead) in ALTERNATIVES {
        assert_eq!(text.matches(line).count(), 1, "{line}");
        text = text.replace(line, instead);
    }
    let parsed = Config::parse("anteroom.example.toml", &text).unwrap();
    assert_eq!(parsed.warnings, []);
    let room = &parsed.config.rooms[0];
    assert_eq!(room.routes.len(), 2);
    assert_eq!(room.origin_commands, OriginCommands { revoke: true });
    assert_eq!(room.bypass.len(), 2);
    assert!(room.rules.opens_at.is_some());
    assert!(matches!(parsed.config.store, StoreConfig::Valkey(_)));
    let limit = &parsed.config.limits[0];
    assert_eq!((limit.routes.len(), limit.overrides.len()), (1, 2));
    assert!(parsed.config.rate_limit_service.is_some());
}

#[test]
fn the_example_names_every_key_with_its_range_and_its_default() {
    let entries = entries();
    let known = Config::known_keys();
    for (path, key) in &known {
        if let Some(entry) = entries.get(path) {
            check(path, entry, key);
        } else {
            // The keys of an inline table are in its value.
            let (table, name) = path.rsplit_once('.').expect("every key has a table");
            let entry = entries
                .get(table)
                .unwrap_or_else(|| panic!("{path} is missing"));
            check_inline(path, entry, name, key);
        }
    }
    for path in entries.keys() {
        let below = format!("{path}.");
        let is_table = known.keys().any(|key| key.starts_with(&below));
        assert!(is_table || known.contains_key(path), "{path} is no key");
    }
}

fn check(path: &str, entry: &Entry, known: &KnownKey) {
    let Entry { comment, value, .. } = entry;
    let allowed = &known.allowed;
    assert!(
        comment.contains(allowed),
        "{path}: {comment:?} lacks {allowed:?}"
    );
    if let Some(default) = known.default
        && entry.is_commented
    {
        assert_eq!(value, default, "{path}");
    }
}

fn check_inline(path: &str, entry: &Entry, name: &str, known: &KnownKey) {
    // A further route or certificate has the keys of the first, and is an example, not a default.
    let lists = [
        "limit.overrides.",
        "limit.routes.",
        "room.additional_routes.",
        "room.event.steps.",
        "room.page.messages.",
        "room.page.nouns.",
        "server.more_certificates.",
    ];
    let Entry { comment, value, .. } = entry;
    if lists.iter().any(|list| path.starts_with(list)) {
        let is_shown = value.contains(&format!("{name} = "));
        assert!(is_shown || comment.contains(name), "{path}");
        return;
    }
    let allowed = &known.allowed;
    assert!(
        comment.contains(allowed),
        "{path}: {comment:?} lacks {allowed:?}"
    );
    let default = known.default.expect("keys of inline tables have defaults");
    assert!(
        value.contains(&format!("{name} = {default}")),
        "{path}: {value}"
    );
}

/// Returns the text of every page below `docs/`, by its name.
fn pages() -> Vec<(String, String)> {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let mut folders = vec![PathBuf::from(docs)];
    let mut pages = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the documentation is there") {
            let path = entry.expect("a folder can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                let text = fs::read_to_string(&path).expect("a page can be read");
                pages.push((path.display().to_string(), text));
            }
        }
    }
    pages
}

/// Returns the keys that a page may mean by `word`: with its table or without.
fn keys_called<'k>(known: &'k BTreeMap<String, KnownKey>, word: &str) -> Vec<&'k KnownKey> {
    let below = format!(".{word}");
    let called = known.iter();
    let called = called.filter(|(path, _)| *path == word || path.ends_with(&below));
    called.map(|(_, key)| key).collect()
}

#[test]
fn tables_of_keys_in_the_documentation_name_keys_that_exist() {
    let known = Config::known_keys();
    let mut seen = 0;
    for (page, text) in pages() {
        let mut column = None;
        for line in text.lines() {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            if cells.len() < 2 {
                column = None;
            } else if column.is_none() {
                column = Some(cells.iter().position(|cell| *cell == "key"));
            }
            let Some(Some(column)) = column else { continue };
            let cell = cells.get(column).copied().unwrap_or_default();
            for word in cell.split('`').skip(1).step_by(2) {
                seen += 1;
                let is_key = !keys_called(&known, word).is_empty();
                assert!(is_key, "{page}: {word} is no key");
            }
        }
    }
    assert!(seen > 10, "only {seen} keys in all tables");
}

#[test]
fn a_default_in_the_documentation_is_that_of_the_key() {
    let plain = |text: &str| text.replace([',', ' ', '"'], "");
    let known = Config::known_keys();
    let mut seen = 0;
    for (page, text) in pages() {
        // For example: `connections` (10,000 by default).
        for (before, after) in text.match_indices("` (").map(|(at, _)| text.split_at(at)) {
            let word = before.rsplit('`').next().unwrap_or_default();
            let stated = after[3..].split(')').next().unwrap_or_default();
            let stated = plain(stated.trim_end_matches(" by default"));
            let stated = stated.replace("minutes", "m").replace("seconds", "s");
            let is_value = stated.starts_with(|c: char| c.is_ascii_digit())
                && stated.chars().all(char::is_alphanumeric);
            let keys = keys_called(&known, word);
            if keys.is_empty() || !is_value {
                continue;
            }
            seen += 1;
            let mut defaults = keys.iter().filter_map(|key| key.default);
            let is_default = defaults.any(|default| plain(default) == stated);
            assert!(is_default, "{page}: {stated} is not the default of {word}");
        }
    }
    assert!(seen > 5, "only {seen} defaults");
}
