//! Metrics of the program, and metrics that a text names.

use std::collections::{BTreeMap, BTreeSet};

use crate::deploy::files;

/// Golden list of all families; the test of a scrape keeps it.
const GOLDEN: &str = "crates/admin/testdata/metrics.txt";

/// Families without a sample in the state of the golden list, and their labels.
const WITHOUT_SAMPLE: &[(&str, &[&str])] = &[
    ("anteroom_reopens_timestamp_seconds", &["room"]),
    ("anteroom_override_active", &["room", "key"]),
];

/// Returns the names of series as scraped, each with its labels.
#[must_use]
pub fn series() -> BTreeMap<String, BTreeSet<String>> {
    let mut series = BTreeMap::new();
    for line in files::read(GOLDEN).lines() {
        let mut words = line.split([' ', '{', '}', ',']).filter(|it| !it.is_empty());
        let (Some(kind), Some(family)) = (words.next(), words.next()) else {
            continue;
        };
        let mut labels: BTreeSet<String> = words.map(str::to_owned).collect();
        let without_sample = WITHOUT_SAMPLE.iter().find(|(name, _)| *name == family);
        labels.extend(
            without_sample
                .iter()
                .flat_map(|(_, labels)| labels.iter().map(|&it| it.to_owned())),
        );
        for suffix in suffixes(kind) {
            series.insert(format!("{family}{suffix}"), labels.clone());
        }
    }
    series
}

fn suffixes(kind: &str) -> &'static [&'static str] {
    match kind {
        "counter" => &["_total"],
        "info" => &["_info"],
        "histogram" => &["_bucket", "_sum", "_count"],
        _ => &[""],
    }
}

/// Returns our series that a Prometheus expression names, each with the labels that it selects by.
#[must_use]
pub fn selected(expression: &str) -> Vec<(String, Vec<String>)> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut rest = expression;
    while let Some(at) = rest.find("anteroom_") {
        rest = &rest[at..];
        let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        let braces = behind.strip_prefix('{').and_then(|it| it.split_once('}'));
        let matchers = braces.map_or("", |(matchers, _)| matchers);
        let labels = matchers.split(',').filter_map(|matcher| {
            let end = matcher.find(['=', '!'])?;
            Some(matcher[..end].trim().to_owned())
        });
        found.push((name.to_owned(), labels.collect()));
        rest = behind;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_labels_are_found_anywhere_in_an_expression() {
        let found = selected(
            "rate(anteroom_a_total{class!=\"x\", room=\"y\"}[2m]) / anteroom_b > on (room) \
             (anteroom_c{})",
        );
        let name = |at: usize| found[at].0.as_str();
        assert_eq!(
            (name(0), name(1), name(2)),
            ("anteroom_a_total", "anteroom_b", "anteroom_c")
        );
        assert_eq!(found[0].1, ["class", "room"]);
        assert!(found[1].1.is_empty() && found[2].1.is_empty());
    }

    #[test]
    fn series_have_their_scraped_names() {
        let series = series();
        let labels = |name: &str| series[name].iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(labels("anteroom_origin_outcomes_total"), ["class", "room"]);
        assert_eq!(
            labels("anteroom_order_inversion_seconds_bucket"),
            ["le", "room"]
        );
        assert_eq!(labels("anteroom_override_active"), ["key", "room"]);
        assert!(series.contains_key("anteroom_build_info"));
        assert!(!series.contains_key("anteroom_origin_outcomes"));
    }
}
