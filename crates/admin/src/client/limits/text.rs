//! Responses about limits as text for people.

use std::fmt::Write as _;

use crate::overrides::client_overrides::{ShownLimits, ShownOverride, in_words};
use crate::{AssumedEmpty, ClientStanding};
use anteroom_config::LiveValues;

use crate::client::text::{STRING, printable};

/// Formats the clients with settings of their own; all of them, or only those from operators.
pub(super) fn limits(shown: &ShownLimits, with_file: bool) -> String {
    let mut text = String::new();
    for limit in &shown.limits {
        let name = printable(&limit.limit);
        match &limit.values {
            Some(values) => writeln!(text, "limit {name}: {}", words(values)),
            None => writeln!(
                text,
                "limit {name}: NOT IN THE FILE, so its overrides do not apply"
            ),
        }
        .expect(STRING);
        let rows: Vec<_> = limit
            .overrides
            .iter()
            .filter(|row| with_file || row.is_live())
            .collect();
        for row in &rows {
            line(&mut text, row);
        }
        if rows.is_empty() && with_file {
            text.push_str("  no client has settings of its own\n");
        } else if rows.is_empty() {
            text.push_str("  no client has settings from an operator\n");
        }
    }
    if shown.limits.is_empty() {
        text.push_str("there are no limits\n");
    }
    if shown.left_off > 0 {
        writeln!(
            text,
            "{} more clients of the file are not shown",
            shown.left_off
        )
        .expect(STRING);
    }
    text
}

fn line(text: &mut String, row: &ShownOverride) {
    let client: Vec<String> = row.client.0.iter().map(|part| printable(part)).collect();
    let mark = if row.is_live() { "*" } else { " " };
    write!(text, "{mark} {}", client.join(" + ")).expect(STRING);
    if let Some(values) = &row.values {
        write!(text, ": {}", words(values)).expect(STRING);
    }
    if row.is_live() {
        let file = row.file.as_ref().map(words);
        let file = file.unwrap_or_else(|| "nothing".to_owned());
        write!(text, "  (operator; the file says {file})").expect(STRING);
    }
    text.push('\n');
    for problem in &row.problems {
        writeln!(text, "    DOES NOT APPLY: {}", printable(problem)).expect(STRING);
    }
}

fn words(values: &LiveValues) -> String {
    printable(&in_words(values))
}

/// Formats the usage of a client.
pub(super) fn standing(limit: &str, standing: &ClientStanding) -> String {
    let ClientStanding {
        requests,
        window_seconds,
        remaining,
        free_after_ms,
        full_after_ms,
    } = standing;
    let free = match free_after_ms {
        None => "every request is rejected".to_owned(),
        Some(0) => format!("{remaining} would pass now"),
        Some(wait) => format!("the next one passes in {}", seconds(*wait)),
    };
    let full = match full_after_ms {
        0 => "nothing is counted".to_owned(),
        wait => format!("nothing is counted after {}", seconds(*wait)),
    };
    format!(
        "limit {limit}, at its store: {requests} requests in {window_seconds} s; {free}; {full}\n"
    )
}

/// Formats the limits whose clients start at zero.
pub(super) fn assumed_empty(assumed: &AssumedEmpty) -> String {
    let names: Vec<String> = assumed.limits.iter().map(|name| printable(name)).collect();
    format!(
        "clients of these limits start at zero, at all nodes within five seconds: {}\n",
        names.join(", ")
    )
}

/// Formats a duration in seconds, rounded up so that a retry after it is not early.
fn seconds(millis: u64) -> String {
    format!("{} s", millis.div_ceil(1_000))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_shows_the_source_of_values_and_escapes_control_characters() {
        let row = |client: &str, from: &str, file: serde_json::Value| {
            json!({ "client": [client, "x"], "values": { "limit": "5/m" }, "from": from,
                    "file": file, "problems": [] })
        };
        let mut gone = row("old", "operator", json!(null));
        gone["values"] = json!(null);
        gone["problems"] = json!(["the file has no limit of this name"]);
        let shown = json!({ "version": 3, "leftOff": 2, "limits": [
            { "limit": "api", "values": { "limit": "100/m", "burst": 7 }, "overrides": [
                row("go\u{1b}ld", "operator", json!({ "limit": "9/s" })),
                row("new", "operator", json!(null)),
                row("tin", "file", json!({ "limit": "5/m" })),
            ] },
            { "limit": "none", "values": { "limit": "1/s" }, "overrides": [] },
            { "limit": "gone", "values": null, "overrides": [gone] },
        ] });
        let shown: ShownLimits = serde_json::from_value(shown).unwrap();
        assert_eq!(
            limits(&shown, true),
            "limit api: burst=7 limit=100/m\n\
             * go\\u{1b}ld + x: limit=5/m  (operator; the file says limit=9/s)\n\
             * new + x: limit=5/m  (operator; the file says nothing)\n  \
               tin + x: limit=5/m\n\
             limit none: limit=1/s\n  no client has settings of its own\n\
             limit gone: NOT IN THE FILE, so its overrides do not apply\n\
             * old + x  (operator; the file says nothing)\n    \
                 DOES NOT APPLY: the file has no limit of this name\n\
             2 more clients of the file are not shown\n"
        );
        assert!(!limits(&shown, false).contains("tin + x"));
        let none = limits(&ShownLimits::default(), true);
        assert_eq!(none, "there are no limits\n");
    }

    #[test]
    fn the_limits_that_start_at_zero_are_listed() {
        let limits = vec!["api".to_owned(), "lo\u{1b}gin".to_owned()];
        assert_eq!(
            assumed_empty(&AssumedEmpty { limits }),
            "clients of these limits start at zero, at all nodes within five seconds: api, \
             lo\\u{1b}gin\n"
        );
    }

    #[test]
    fn the_usage_of_a_client_is_formatted() {
        let check = |remaining, free_after_ms, full_after_ms, expected: &str| {
            let text = standing(
                "api",
                &ClientStanding {
                    requests: 5,
                    window_seconds: 60,
                    remaining,
                    free_after_ms,
                    full_after_ms,
                },
            );
            assert!(text.contains(expected), "{text}");
        };
        check(
            5,
            Some(0),
            0,
            "5 requests in 60 s; 5 would pass now; nothing is counted\n",
        );
        check(
            0,
            Some(1_001),
            59_000,
            "the next one passes in 2 s; nothing is counted after 59 s",
        );
        check(0, None, 0, "every request is rejected");
    }
}
