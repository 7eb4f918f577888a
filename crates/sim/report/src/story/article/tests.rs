//! The fixture has the article's numbers; the code must yield them, and the text must contain them.

use serde_json::Value;

use super::*;

fn article() -> Value {
    let text = include_str!("../../../testdata/article.json");
    serde_json::from_str(text).expect("the fixture is JSON")
}

fn number(value: &Value) -> u32 {
    u32::try_from(value.as_u64().expect("a count")).expect("a small one")
}

#[track_caller]
fn check_same(found: f64, expected: &Value) {
    let expected = expected.as_f64().expect("a number");
    assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
}

#[test]
fn slots_and_shares_are_those_of_the_article() {
    let (facts, derived) = (facts(), &article()["derived"]);
    assert_eq!(facts.budget.slots, number(&derived["slots"]));
    check_same(facts.utilization, &derived["utilization"]);
    let names = ["San Jose", "London", "Delhi", "Anywhere"];
    for (name, share) in names.iter().zip(facts.shares) {
        check_same(share, &derived["share"][name]);
    }
    let of = &derived["slots_of"];
    assert_eq!(facts.budget.share_of(SAN_JOSE), number(&of["San Jose"]));
    assert_eq!(facts.budget.share_of(DELHI), number(&of["Delhi"]));
    assert_eq!(facts.budget.anywhere, number(&of["Anywhere"]));
}

#[test]
fn our_parts_sum_to_the_whole_and_the_articles_to_one_more() {
    let (facts, rounding) = (facts(), &article()["rounding"]);
    let theirs = &rounding["half_up_as_in_the_article"];
    let ours = &rounding["largest_remainder_ties_to_anywhere_as_we_do"];
    let expected = |of: &Value| ["San Jose", "London", "Anywhere"].map(|name| number(&of[name]));
    assert_eq!(facts.half_up, expected(theirs));
    assert_eq!(facts.half_up.iter().sum::<u32>(), number(&theirs["sum"]));
    let budget = &facts.budget;
    let parts = [
        budget.share_of(SAN_JOSE),
        budget.share_of(LONDON),
        budget.anywhere,
    ];
    assert_eq!(parts, expected(ours));
    assert_eq!(parts.iter().sum::<u32>(), number(&ours["sum"]));
}

#[test]
fn even_gives_what_the_article_gives() {
    let (facts, even) = (facts(), &article()["even"]);
    let of = |name: &str| number(&even[name]);
    assert_eq!(facts.even_parts[0], of("San Jose node, data-center slots"));
    assert_eq!(facts.even_parts[1], of("any node, Anywhere slots"));
    assert_eq!(facts.even_totals[0], of("San Jose node, total"));
    assert_eq!(facts.even_totals[1], of("Delhi node, total"));
}

#[test]
fn the_curve_gives_what_the_article_gives() {
    let (facts, article) = (facts(), article());
    let curve = |at: usize| number(&article["curve"][at]["per_worker"]);
    assert_eq!(facts.curve_part, curve(0));
    assert_eq!(facts.of_ten, [curve(1), curve(2), curve(3)]);
    check_same(facts.adapted_nodes, &article["curve"][0]["adapted_workers"]);
    let note = article["curve"][1]["note"].as_str().expect("a text");
    assert!(note.contains(&format!("{:.5}", facts.exponent)), "{note}");
}

#[test]
fn two_nodes_with_ten_slots_admit_as_in_the_article() {
    let article = article();
    let cases = article["two_nodes_ten_slots"].as_array().expect("a list");
    let found = facts().two_nodes;
    assert_eq!(cases.len(), found.len());
    for (case, found) in cases.iter().zip(found) {
        let list = |value: &Value| {
            let numbers = value.as_array().expect("a list").iter().map(number);
            numbers.collect::<Vec<u32>>()
        };
        assert_eq!(list(&case["arrivals"]), found.arrivals, "{case}");
        assert_eq!(number(&case["queued"]), found.queued(), "{case}");
        if case["admitted"].is_array() {
            assert_eq!(list(&case["admitted"]), found.admitted, "{case}");
        } else {
            assert_eq!(
                number(&case["admitted_total"]),
                found.admitted_total(),
                "{case}"
            );
        }
    }
}

#[test]
fn counters_admit_as_in_the_article() {
    let (facts, article) = (facts(), article());
    let counter = &article["counter"];
    for at in 0..2 {
        assert_eq!(counter[at]["admitted"].as_bool(), Some(facts.numbers[at]));
        let case = &counter[at + 2];
        assert_eq!(number(&case["admitted"]), facts.at_one_node[at]);
    }
}

/// Collects every number of a JSON value, at any depth, and those in texts, such as `20/200`.
fn numbers(value: &Value, found: &mut Vec<f64>) {
    match value {
        Value::Number(number) => found.extend(number.as_f64()),
        Value::String(text) => found.extend(numbers_in(text)),
        Value::Array(values) => values.iter().for_each(|value| numbers(value, found)),
        Value::Object(fields) => fields.values().for_each(|value| numbers(value, found)),
        Value::Bool(_) | Value::Null => {}
    }
}

/// Returns the numbers of a text, written with digits and a point.
fn numbers_in(text: &str) -> Vec<f64> {
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    text.split(|c: char| !is_part(c))
        .filter_map(|word| word.trim_matches('.').parse().ok())
        .collect()
}

#[test]
fn every_number_of_the_article_is_in_the_text() {
    let mut article = article();
    // The fixture's source is not part of the article.
    article["source"] = Value::Null;
    let mut expected = Vec::new();
    numbers(&article, &mut expected);
    assert!(expected.len() > 80, "{}", expected.len());
    let found = numbers_in(&crate::story::text::worked_example());
    for number in expected {
        let is_found = found.iter().any(|one| (one - number).abs() < 1e-9);
        assert!(is_found, "{number} is missing");
    }
}
