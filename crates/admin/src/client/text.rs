//! Text that all commands print for people.
//!
//! Control characters are escaped, so that no response can drive a terminal.

use std::fmt::Write as _;

use anteroom_config::overrides::{Entry, Log};
use anteroom_config::time_text::rfc3339_secs;
use anteroom_room::time::Timestamp;
use serde_json::Value;

/// Writing to a `String` cannot fail.
pub(crate) const STRING: &str = "a String takes all that is written to it";

/// Formats an audit log, oldest entry first.
pub(crate) fn log(log: &Log) -> String {
    let mut text = String::new();
    if log.dropped > 0 {
        writeln!(text, "({} older entries were dropped)", log.dropped).expect(STRING);
    }
    for entry in &log.entries {
        writeln!(text, "{}", line(entry)).expect(STRING);
        for change in &entry.changes {
            let (before, after) = (plain(&change.before), plain(&change.after));
            let shown = if before == after {
                format!("{after}, with another end")
            } else {
                format!("{before} -> {after}")
            };
            writeln!(text, "    {}: {shown}", printable(&change.key)).expect(STRING);
        }
    }
    if log.entries.is_empty() {
        text.push_str("nothing was changed yet\n");
    }
    text
}

fn line(entry: &Entry) -> String {
    let who = &entry.who;
    let user = who.user.as_deref().unwrap_or("unknown user");
    if who.address.is_empty() {
        return format!(
            "#{} {} the {}: {}",
            entry.version,
            rfc3339_secs(Timestamp(entry.at)),
            printable(&who.token),
            printable(&entry.what)
        );
    }
    format!(
        "#{} {} {} (token {}, from {}): {}",
        entry.version,
        rfc3339_secs(Timestamp(entry.at)),
        printable(user),
        printable(&who.token),
        printable(&who.address),
        printable(&entry.what),
    )
}

/// Formats all problems of a rejected command, one per line.
pub(crate) fn problems(reply: &Value) -> String {
    let mut text = errors(reply);
    text.push_str("nothing was changed\n");
    text
}

/// Formats all problems of a rejected request, one per line.
pub(crate) fn errors(reply: &Value) -> String {
    let problems = reply["problems"].as_array().cloned().unwrap_or_default();
    let lines = problems
        .iter()
        .filter_map(|problem| problem["message"].as_str());
    lines
        .map(|line| format!("error: {}\n", printable(line)))
        .collect()
}

pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => printable(text),
        other => other.to_string(),
    }
}

pub(crate) fn printable(text: &str) -> String {
    let escape = |c: char| {
        if c.is_control() {
            c.escape_unicode().to_string()
        } else {
            c.to_string()
        }
    };
    text.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use anteroom_config::overrides::{Actor, Change};

    use super::*;

    #[test]
    fn a_log_lists_entries_and_escapes_control_characters() {
        let entry = Entry {
            version: 3,
            at: 1_694_432_754_000,
            who: Actor {
                token: "local".to_owned(),
                user: Some("al\u{1b}[31mice".to_owned()),
                address: "127.0.0.1".to_owned(),
            },
            what: "set total_active_users=300".to_owned(),
            changes: vec![
                Change::new("total_active_users", 200.into(), 300.into()),
                Change::new("pacing", false.into(), false.into()),
            ],
            room_id: None,
        };
        let text = log(&Log {
            entries: vec![entry],
            dropped: 2,
        });
        assert_eq!(
            text,
            "(2 older entries were dropped)\n\
             #3 2023-09-11T11:45:54Z al\\u{1b}[31mice (token local, from 127.0.0.1): \
             set total_active_users=300\n    total_active_users: 200 -> 300\n\
             \x20   pacing: false, with another end\n"
        );
        assert!(log(&Log::default()).contains("nothing was changed yet"));
    }
}
