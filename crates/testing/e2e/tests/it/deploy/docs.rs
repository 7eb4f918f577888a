//! Docs: every metric is explained, every file of `deploy/` is spoken of.

use std::collections::{BTreeMap, BTreeSet};

use anteroom_e2e::deploy::files::{below, read};
use anteroom_e2e::deploy::metrics::{selected, series};

/// Cells of the rows of all tables below a heading, up to the next one of its kind.
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

/// What stands in the first column of what to do when.
pub(crate) fn symptoms() -> BTreeSet<String> {
    let rows = rows(&read("docs/operating.md"), "## What to do when");
    rows.into_iter().map(|mut row| row.remove(0)).collect()
}

#[test]
fn every_metric_is_explained_and_no_other() {
    let text = read("docs/metrics.md");
    let mut explained = BTreeSet::new();
    for row in rows(&text, "# What each metric means") {
        let Some(name) = row[0].strip_prefix("`anteroom_") else {
            assert_eq!(row[0], "metric", "{row:?}");
            continue;
        };
        let name = format!("anteroom_{}", name.trim_end_matches('`'));
        assert_eq!(
            row.len(),
            4,
            "name, what it is, normal, when to worry: {row:?}"
        );
        assert!(row.iter().all(|cell| !cell.is_empty()), "{row:?}");
        assert!(explained.insert(name.clone()), "{name} stands twice");
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
    let page = read("docs/metrics.md");
    let heading = "### What stores of limits count of themselves";
    let section = page.lines().skip_while(|line| *line != heading).skip(1);
    let mut explained: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut store = "";
    for line in section.take_while(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('`') {
            store = name.trim_end_matches("`:");
        }
        // A point of the list, and the lines in which it goes on.
        let said = line.strip_prefix("- ").or_else(|| line.strip_prefix("  "));
        if let Some(said) = said {
            let words = said.split('`').skip(1).step_by(2);
            explained.entry(store).or_default().extend(words);
        }
    }
    // What is said of another store's figure, or of one another, stands in the same list.
    let said: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("valkey", &["crates/backend/valkey/src/counts.rs"][..]),
        ("leases", &["crates/limit/store/src/lending/counts.rs"]),
        ("memcached", &["crates/backend/memcached/src/counts.rs"]),
        (
            "kafka",
            &[
                "crates/backend/kafka/src/counts.rs",
                "crates/backend/kafka/src/node.rs",
            ],
        ),
        ("gossip", &["crates/backend/gossip/src/tally.rs"]),
    ]);
    let stores: Vec<_> = explained.keys().collect();
    assert_eq!(stores, said.keys().collect::<Vec<_>>());
    for (store, files) in said {
        let texts: Vec<String> = files.iter().map(|file| read(file)).collect();
        let mut words: BTreeSet<&str> = texts.iter().flat_map(|text| events(text)).collect();
        assert!(!words.is_empty(), "{store}");
        // A store is named where another's figure is said to be alike.
        words.insert("valkey");
        let explained = &explained[store];
        let missing: Vec<_> = words.difference(explained).collect();
        assert!(
            missing.is_empty() || missing == [&"valkey"],
            "{store}: {missing:?}"
        );
        let strange: Vec<_> = explained.difference(&words).collect();
        assert!(strange.is_empty(), "{store}: {strange:?}");
    }
}

/// Words of figures in the source of a store: the texts of pairs with a number of its own.
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
fn docs_speak_of_series_that_there_are() {
    let mut known: BTreeSet<String> = series().into_keys().collect();
    // Families by their own name, and nothing but names.
    for histogram in [
        "anteroom_order_inversion_seconds",
        "anteroom_origin_answer_time_seconds",
    ] {
        known.insert(histogram.to_owned());
    }
    for file in ["docs/operating.md", "docs/deploying.md"] {
        for (name, _) in selected(&read(file)) {
            assert!(known.contains(&name), "{file}: {name}");
        }
    }
}

#[test]
fn what_to_do_when_has_three_columns_and_says_something_in_each() {
    let rows = rows(&read("docs/operating.md"), "## What to do when");
    assert!(rows.len() > 10);
    for row in rows {
        assert_eq!(row.len(), 3, "{row:?}");
        assert!(row.iter().all(|cell| !cell.is_empty()), "{row:?}");
    }
}

#[test]
fn every_file_to_deploy_is_spoken_of() {
    let text = read("docs/deploying.md");
    for file in below("deploy") {
        // Secrets that somebody has made there by following the docs.
        if file.contains("/secrets/") {
            continue;
        }
        let name = file.strip_prefix("deploy/").unwrap_or(&file);
        let (folder, name) = name.split_once('/').unwrap();
        let of_kind = folder == "kubernetes" && text.contains("deploy/kubernetes");
        assert!(
            of_kind || text.contains(name),
            "docs/deploying.md says nothing of {file}"
        );
    }
}
