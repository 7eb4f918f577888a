//! The example config says everything there is to say, and says it right.

use std::collections::BTreeMap;

use anteroom_config::{Config, KnownKey, OriginCommands, StoreConfig};

const EXAMPLE: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../anteroom.example.toml"
));

/// `# key = value` or `key = value`, with the hash or not, and the comment in front of it.
struct Entry {
    is_commented: bool,
    value: String,
    comment: String,
}

/// Every entry of the example by its path: `room.cookie_attributes`.
fn entries() -> BTreeMap<String, Entry> {
    let mut entries = BTreeMap::new();
    let mut table = String::new();
    let mut comment = String::new();
    for line in EXAMPLE.lines() {
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
    let is_key = key
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    is_key.then_some((key, value))
}

/// `[table]` or `[[table]]`.
fn is_header(line: &str) -> bool {
    line.starts_with('[') && line.ends_with(']')
}

#[test]
fn the_example_is_legal_and_draws_no_warning() {
    let parsed = Config::parse("anteroom.example.toml", EXAMPLE).unwrap();
    assert_eq!(parsed.warnings, []);
}

/// Of what cannot be switched on together with the rest, what stands there instead.
const ALTERNATIVES: [(&str, &str); 11] = [
    // Next to `origins`.
    ("origin = \"http://127.0.0.1:3000\"", ""),
    // A world of its own needs names of data centers.
    ("data_center = \"local\"", "data_center = \"fra1\""),
    ("kind = \"embedded\"", "kind = \"valkey\""),
    ("password = \"...\"", ""),
    ("custom_page_file = \"waiting.html\"", ""),
    // Of other algorithms, actions and headers.
    ("burst = 20", ""),
    ("initial_burst = 50", ""),
    ("queue = 5", ""),
    ("delay_max = \"5s\"", ""),
    ("legacy_reset = \"seconds\"", ""),
    ("or \"local\".\non_store_failure = \"bounded\"", ""),
];

#[test]
fn the_example_stays_legal_when_everything_in_it_is_switched_on() {
    let mut text: String = EXAMPLE
        .lines()
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
            // The keys of an inline table stand in its value.
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
    // A further route or certificate has the keys of the first, and is no default but an example.
    let lists = [
        "limit.overrides.",
        "limit.routes.",
        "room.additional_routes.",
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
