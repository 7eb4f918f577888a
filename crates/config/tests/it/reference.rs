//! The reference of keys in `docs/reference`, generated from the table of keys and the comments of
//! `anteroom.example.toml`.
//!
//! `ANTEROOM_UPDATE=1 cargo test -p anteroom-config --test it reference` writes the pages.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anteroom_config::{Config, KnownKey};

use crate::example::{Entry, entries};

struct ReferencePage {
    file: &'static str,
    title: &'static str,
    about: &'static str,
    /// First parts of the paths of its keys.
    tables: &'static [&'static str],
}

const PAGES: [ReferencePage; 5] = [
    ReferencePage {
        file: "config-server.md",
        title: "Configuration: server",
        about: "Listeners, TLS, trusted proxies, timeouts and sizes.",
        tables: &["server"],
    },
    ReferencePage {
        file: "config-site.md",
        title: "Configuration: sites",
        about: "Hosts, and the origins that serve them.",
        tables: &["site"],
    },
    ReferencePage {
        file: "config-room.md",
        title: "Configuration: rooms",
        about: "What a room covers, its limits, its queue, its origins and its waiting page.",
        tables: &["room"],
    },
    ReferencePage {
        file: "config-limit.md",
        title: "Configuration: rate limits",
        about: "Rate limits, tokens of clients, and the rate limit service for Envoy.",
        tables: &["limit", "jwt", "rate_limit_service"],
    },
    ReferencePage {
        file: "config-stores.md",
        title: "Configuration: stores",
        about: "Where ledgers and counts live.",
        tables: &["store", "memcached", "kafka", "gossip"],
    },
];

/// Returns the paths of keys that operators may change at run time.
fn live_keys() -> Vec<String> {
    let parsed = Config::parse("example", crate::example::EXAMPLE).expect("it is legal");
    let values = parsed.config.rooms[0].values();
    values.keys().map(|key| format!("room.{key}")).collect()
}

/// Returns the comment before a key without the range, which has a column of its own.
fn meaning(entry: &Entry, key: &KnownKey) -> String {
    let mut text = entry.comment.trim().to_owned();
    for intro in ["Allowed: ", "Each: "] {
        text = text.replace(&format!("{intro}{}.", key.allowed), "");
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn row(path: &str, key: &KnownKey, all: &BTreeMap<String, Entry>, is_live: bool) -> String {
    let cell = |text: &str| text.replace('|', "\\|");
    let meaning = match all.get(path) {
        Some(entry) => meaning(entry, key),
        None => {
            let (table, _) = path.rsplit_once('.').expect("every key has a table");
            format!("Part of `{table}`.")
        }
    };
    let default = key
        .default
        .map_or_else(|| "-".to_owned(), |default| format!("`{default}`"));
    let live = if is_live {
        " Operators can override it at run time."
    } else {
        ""
    };
    format!(
        "| `{path}` | {}{live} | {} | {} |\n",
        cell(&meaning),
        allowed(&key.allowed),
        cell(&default)
    )
}

/// Returns the cell of the allowed values. A long list of quoted values is code.
fn allowed(text: &str) -> String {
    let mut parts = text.split(", ").flat_map(|part| part.split(" or "));
    let is_quoted = |part: &str| part.starts_with('"') && part.ends_with('"');
    if parts.clone().count() > 8 && parts.all(is_quoted) {
        return format!("`{text}`");
    }
    text.replace('|', "\\|")
}

fn text(page: &ReferencePage) -> String {
    let known = Config::known_keys();
    let all = entries();
    let live = live_keys();
    let mut text = format!("# {}\n\n{}\n\n", page.title, page.about);
    text.push_str(
        "A test writes this page from the program's table of keys and from\n\
         [`anteroom.example.toml`](../../anteroom.example.toml). A dash means that the key has no\n\
         default.\n\n| key | meaning | allowed | default |\n| --- | --- | --- | --- |\n",
    );
    for (path, key) in &known {
        let table = path.split('.').next().unwrap_or_default();
        if page.tables.contains(&table) {
            text.push_str(&row(path, key, &all, live.contains(path)));
        }
    }
    text
}

fn index() -> String {
    let mut text = "# Configuration\n\nThe keys of the config file, by table.\n\n".to_owned();
    for page in &PAGES {
        let tables: Vec<String> = page
            .tables
            .iter()
            .map(|table| format!("`{table}`"))
            .collect();
        let (title, file) = (page.title, page.file);
        writeln!(text, "- [{title}]({file}): {}", tables.join(", ")).expect("memory takes it");
    }
    text.push_str(
        "\n`anteroom check --config FILE` reports all mistakes of a file at once, each with its\n\
         line, what it found and what is allowed. [`anteroom.example.toml`]\
         (../../anteroom.example.toml)\nshows each key in place.\n",
    );
    text
}

fn check(file: &str, expected: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference");
    let path = Path::new(folder).join(file);
    if env::var_os("ANTEROOM_UPDATE").is_some() {
        fs::write(&path, expected).expect("the page can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, expected, "{file}: ANTEROOM_UPDATE=1 writes it");
}

#[test]
fn the_reference_of_keys_matches_the_program() {
    let known = Config::known_keys();
    let tables: Vec<&str> = PAGES.iter().flat_map(|page| page.tables).copied().collect();
    for path in known.keys() {
        let table = path.split('.').next().unwrap_or_default();
        assert!(tables.contains(&table), "{path} stands on no page");
    }
    check("config.md", &index());
    for page in &PAGES {
        check(page.file, &text(page));
    }
}
