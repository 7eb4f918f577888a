//! Docs: they explain every metric, and mention every file of `deploy/`.

use std::collections::{BTreeMap, BTreeSet};

use anteroom_e2e::deploy::files::{below, read};
use anteroom_e2e::deploy::metrics::{selected, series};

/// Returns the cells of all tables below a heading, up to the next one of its kind.
fn rows(text: &str, heading: &str) -> Vec<Vec<String>> {
    let mark = heading.split(' ').next().unwrap_or_default();
    let mut lines = text.lines().skip_while(|line| *line != heading);
    assert_eq!(lines.next(), Some(heading));
    let section = lines.take_while(|line| line.split(' ').next() != Some(mark));
    let rows = section.filter_map(|line| line.strip_prefix("| "));
    let cells = |row: &str| {
        let cells = row.trim_end().trim_end_matches('|').split(" | ");
        cells.map(|cell| cell.trim().to_owned()).collect()
    };
    rows.filter(|row| !row.starts_with("---"))
        .map(cells)
        .collect()
}

/// Page with symptoms and actions, and the heading of its table of alerts.
const TROUBLE: &str = "docs/how-to/what-to-do-when.md";
const ALERTS: &str = "## Alerts and their rows";

/// Returns the rows of the tables of symptoms.
fn trouble() -> Vec<Vec<String>> {
    let page = read(TROUBLE);
    let (symptoms, _) = page.split_once(ALERTS).expect("a table of alerts");
    let mut rows = rows(symptoms, "# What to do when");
    rows.retain(|row| row[0] != "what you see");
    rows
}

/// Returns the first column of these tables.
pub(crate) fn symptoms() -> BTreeSet<String> {
    trouble().into_iter().map(|mut row| row.remove(0)).collect()
}

/// Returns the row of each alert.
pub(crate) fn rows_of_alerts() -> BTreeMap<String, String> {
    let rows = rows(&read(TROUBLE), ALERTS);
    let rows = rows.iter().filter(|row| row[0] != "alert");
    rows.flat_map(|row| {
        let names = row[0].split('`').skip(1).step_by(2);
        names.map(|name| (name.to_owned(), row[1].clone()))
    })
    .collect()
}

#[test]
fn every_metric_is_explained_and_no_other() {
    let pages = [
        ("docs/reference/metrics.md", "# Metrics"),
        (
            "docs/reference/metrics-limits.md",
            "# Metrics of rate limits",
        ),
    ];
    let mut explained = BTreeSet::new();
    for row in pages
        .iter()
        .flat_map(|(page, title)| rows(&read(page), title))
    {
        let Some(name) = row[0].strip_prefix("`anteroom_") else {
            continue;
        };
        let name = format!("anteroom_{}", name.trim_end_matches('`'));
        assert_eq!(
            row.len(),
            4,
            "name, what it is, normal, when to worry: {row:?}"
        );
        assert!(row.iter().all(|cell| !cell.is_empty()), "{row:?}");
        assert!(explained.insert(name.clone()), "{name} occurs twice");
    }
    let families: BTreeSet<String> = series()
        .into_keys()
        .filter(|name| !name.ends_with("_bucket") && !name.ends_with("_count"))
        .map(|name| {
            name.strip_suffix("_seconds_sum")
                .map_or_else(|| name.clone(), |it| format!("{it}_seconds"))
        })
        .collect();
    assert_eq!(explained, families);
}

#[test]
fn every_event_of_a_store_of_limits_is_explained_and_no_other() {
    let page = read("docs/reference/metrics-limits.md");
    let section = page
        .lines()
        .skip_while(|line| *line != "## Events of stores");
    let mut explained: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut store = "";
    for line in section.skip(1).take_while(|line| !line.starts_with("## ")) {
        if let Some(name) = line.strip_prefix("### `") {
            store = name.trim_end_matches('`');
        }
        if let Some(row) = line.strip_prefix("| `") {
            let cell = row.split(" | ").next().unwrap_or_default();
            let words = cell.split('`').step_by(2);
            let words = words.filter(|word| !word.is_empty());
            explained.entry(store).or_default().extend(words);
        }
    }
    let expected: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("valkey", &["crates/backend/valkey/src/counts.rs"][..]),
        ("leases", &["crates/limit/store/src/leases/counts.rs"]),
        ("memcached", &["crates/backend/memcached/src/counts.rs"]),
        (
            "kafka",
            &[
                "crates/backend/kafka/src/counts.rs",
                "crates/backend/kafka/src/node.rs",
            ],
        ),
        ("gossip", &["crates/backend/gossip/src/event_counts.rs"]),
    ]);
    let stores: Vec<_> = explained.keys().collect();
    assert_eq!(stores, expected.keys().collect::<Vec<_>>());
    for (store, files) in expected {
        let texts: Vec<String> = files.iter().map(|file| read(file)).collect();
        let words: BTreeSet<&str> = texts.iter().flat_map(|text| events(text)).collect();
        assert!(!words.is_empty(), "{store}");
        assert_eq!(explained[store], words, "{store}");
    }
}

/// Returns the words of events in the source of a store: the texts of pairs with a number.
fn events(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim);
    let words = lines.filter_map(|line| {
        let quoted = line.strip_prefix("events.push(").unwrap_or(line);
        let quoted = quoted.strip_prefix("vec![").unwrap_or(quoted);
        let (before, rest) = quoted.split_once('"')?;
        let (word, after) = rest.split_once('"')?;
        let is_pair = before == "(" && after.starts_with(", ");
        let is_entry = before.starts_with("(Event::") && after == "),";
        let is_word = word
            .bytes()
            .all(|byte| byte == b'_' || byte.is_ascii_lowercase());
        ((is_pair || is_entry) && is_word).then_some(word)
    });
    words.collect()
}

#[test]
fn docs_name_only_existing_series() {
    let mut known: BTreeSet<String> = series().into_keys().collect();
    // Families by their own name, and nothing but names.
    for histogram in [
        "anteroom_order_inversion_seconds",
        "anteroom_origin_response_seconds",
    ] {
        known.insert(histogram.to_owned());
    }
    let packages = read("Cargo.toml");
    for file in below("docs") {
        let is_page = file.ends_with(".md") && !file.contains("/reference/");
        let text = if is_page { read(&file) } else { String::new() };
        // Only between backticks: blocks of other programs' files have their own names.
        let prose = text.lines().filter(|line| !line.starts_with("    "));
        let quoted = prose.flat_map(|line| line.split('`').skip(1).step_by(2));
        for (name, _) in quoted.flat_map(selected) {
            // Cookie prefixes and crates have the same form.
            let package = format!("\n{} ", name.replace('_', "-"));
            let is_cookie = text.contains(&format!("_{name}"));
            let is_other = is_cookie || packages.contains(&package);
            assert!(is_other || known.contains(&name), "{file}: {name}");
        }
    }
}

#[test]
fn what_to_do_when_has_three_columns_and_says_something_in_each() {
    let rows = trouble();
    assert!(rows.len() > 10);
    for row in rows {
        assert_eq!(row.len(), 3, "{row:?}");
        assert!(row.iter().all(|cell| !cell.is_empty()), "{row:?}");
    }
}

#[test]
fn docs_mention_every_file_to_deploy() {
    let pages = below("docs/how-to");
    let text: String = pages.iter().map(|page| read(page)).collect();
    for file in below("deploy") {
        // Skip secrets that a reader of the docs has created there.
        if file.contains("/secrets/") {
            continue;
        }
        let name = file.strip_prefix("deploy/").unwrap_or(&file);
        let (folder, name) = name.split_once('/').unwrap();
        let of_kind = folder == "kubernetes" && text.contains("deploy/kubernetes");
        assert!(
            of_kind || text.contains(name),
            "no page of docs/how-to names {file}"
        );
    }
}
