//! Alerts: each uses existing series, and the docs say what to do about it.

use std::collections::BTreeSet;

use anteroom_e2e::deploy::files::read;
use anteroom_e2e::deploy::metrics::{selected, series};
use anteroom_e2e::deploy::yaml;
use serde_json::Value;

use crate::deploy::docs::{rows_of_alerts, symptoms};

fn alerts() -> Vec<Value> {
    let file = yaml::parse(&read("deploy/prometheus/alerts.yaml")).unwrap();
    let groups = file[0]["groups"].as_array().unwrap();
    let rules = groups
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap().clone());
    let rules: Vec<Value> = rules.collect();
    assert!(rules.len() > 10);
    rules
}

fn text<'a>(alert: &'a Value, path: &str) -> &'a str {
    let found = alert.pointer(path).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("{path} of {alert}"))
}

#[test]
fn alerts_use_existing_series_and_their_labels() {
    let series = series();
    for alert in alerts() {
        let name = text(&alert, "/alert");
        let expression = text(&alert, "/expr");
        let found = selected(expression);
        assert!(!found.is_empty() || expression.starts_with("up{"), "{name}");
        for (metric, labels) in found {
            let known = series.get(&metric);
            let known = known.unwrap_or_else(|| panic!("{name}: there is no {metric}"));
            for label in labels {
                assert!(known.contains(&label), "{name}: {metric} has no {label}");
            }
        }
    }
}

#[test]
fn each_alert_has_a_name_an_urgency_and_an_instruction() {
    let symptoms = symptoms();
    let rows = rows_of_alerts();
    let mut names = BTreeSet::new();
    for alert in alerts() {
        let name = text(&alert, "/alert").to_owned();
        assert!(
            ["page", "ticket"].contains(&text(&alert, "/labels/severity")),
            "{name}"
        );
        assert!(!text(&alert, "/annotations/summary").is_empty());
        let look = text(&alert, "/annotations/look");
        assert!(
            symptoms.contains(look),
            "{name}: what-to-do-when.md has no row \"{look}\""
        );
        assert_eq!(rows.get(&name).map(String::as_str), Some(look), "{name}");
        assert!(names.insert(name), "stands twice");
    }
}

#[test]
fn values_of_labels_are_words_of_the_program() {
    let program = [
        read("crates/room/core/src/queue_position.rs"),
        read("crates/proxy/src/upstream/outcome.rs"),
    ];
    for alert in alerts() {
        let expression = text(&alert, "/expr");
        for word in expression.split('"').skip(1).step_by(2) {
            let quoted = format!("\"{word}\"");
            let is_known = program.iter().any(|text| text.contains(&quoted));
            assert!(is_known || word == "anteroom", "{word} in {expression}");
        }
    }
}

#[test]
fn tests_of_alerts_name_existing_alerts() {
    let names: BTreeSet<String> = alerts()
        .iter()
        .map(|it| text(it, "/alert").to_owned())
        .collect();
    let tests = yaml::parse(&read("deploy/prometheus/alerts.test.yaml")).unwrap();
    for test in tests[0]["tests"].as_array().unwrap() {
        for case in test["alert_rule_test"].as_array().unwrap() {
            let name = text(case, "/alertname");
            assert!(names.contains(name), "{name}");
        }
        for input in test["input_series"].as_array().unwrap() {
            let (metric, _) = &selected(text(input, "/series"))[0];
            assert!(series().contains_key(metric), "{metric}");
        }
    }
}
