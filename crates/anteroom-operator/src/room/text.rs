//! What a gateway answered about a room, for people.

use std::fmt::Write as _;

use anteroom_config::orders::Shown;

use crate::text::{STRING, plain, printable};

/// Everything that holds, as a table.
pub(super) fn shown(shown: &Shown) -> String {
    let mut text = short(shown);
    text.push('\n');
    let wide = shown.values.keys().map(String::len).max().unwrap_or(0);
    for (key, value) in &shown.values {
        let is_set = value.is_set();
        let mark = if is_set { "*" } else { " " };
        let held = plain(&value.value);
        let from = if is_set {
            format!("  (operator; the file says {})", plain(&value.file))
        } else {
            String::new()
        };
        writeln!(text, "{mark} {key:<wide$}  {held}{from}").expect(STRING);
    }
    text
}

/// What an operator set, and nothing else.
pub(super) fn short(shown: &Shown) -> String {
    let mut text = format!("room {}: ", shown.room);
    match &shown.paused {
        Some(pause) => writeln!(text, "PAUSED since {}", pause.since).expect(STRING),
        None => text.push_str("not paused\n"),
    }
    if let Some(message) = &shown.message {
        writeln!(text, "on the page: {}", printable(message)).expect(STRING);
    }
    let set: Vec<String> = shown
        .overrides()
        .map(|(key, value)| {
            format!(
                "{key}={} (file: {})",
                plain(&value.value),
                plain(&value.file)
            )
        })
        .collect();
    if set.is_empty() {
        text.push_str("all values are the file's\n");
    } else {
        writeln!(text, "set by an operator: {}", set.join(", ")).expect(STRING);
    }
    for problem in &shown.ignored {
        writeln!(text, "DOES NOT HOLD: {}", printable(problem)).expect(STRING);
    }
    text
}

pub(super) fn assumed_empty(room: &str, reopens_at: Option<&str>) -> String {
    match reopens_at {
        None => format!("room {room} admits without waiting for what may have been lent before\n"),
        Some(at) => {
            format!("room {room} was told; until all nodes have heard of it they say {at}\n")
        }
    }
}
