//! Responses about a room as text for people.

use std::fmt::Write as _;

use anteroom_config::overrides::RoomOverridesView;

use crate::api_rooms::{Applied, ImportKind, Imported};
use crate::api_v1::{RoomDocument, RoomDocuments};
use crate::client::text::{STRING, plain, printable};
use crate::found_visitors::{FoundState, FoundVisitors};

/// Formats all values in force as a table.
pub(super) fn shown(shown: &RoomOverridesView) -> String {
    let mut text = short(shown);
    text.push('\n');
    let width = shown.values.keys().map(String::len).max().unwrap_or(0);
    for (key, value) in &shown.values {
        let current = plain(&value.value);
        let file = plain(&value.file);
        let (mark, from) = if value.is_set() {
            ("*", format!("  (operator; the file says {file})"))
        } else if value.is_of_event() {
            ("*", format!("  (event; the file says {file})"))
        } else {
            (" ", String::new())
        };
        writeln!(text, "{mark} {key:<width$}  {current}{from}").expect(STRING);
    }
    text
}

/// Formats the result of a command as one line.
pub(super) fn line(shown: &RoomOverridesView) -> String {
    let note = shown.note.as_deref().map(printable);
    let rest = note.unwrap_or_else(|| format!("settings version {}", shown.version));
    format!("{}; {rest}\n", paused(shown))
}

/// Formats the commands that apply at the responding node only.
fn held(shown: &RoomOverridesView) -> String {
    let mut text = String::new();
    for held in &shown.held {
        let (command, since) = (printable(&held.command), printable(&held.since));
        let kept = if held.is_kept { "keeps" } else { "ends" };
        let line = format!("at this node only since {since}: {command} (a restart {kept} it)");
        writeln!(text, "{line}").expect(STRING);
    }
    text
}

/// Formats the end of an override; empty if it does not end by itself.
fn until(shown: &RoomOverridesView, key: &str) -> String {
    let Some(set) = shown.set.get(key) else {
        return String::new();
    };
    match (&set.until, &set.event) {
        (Some(until), Some(event)) => {
            let (until, event) = (printable(until), printable(event));
            format!(" until {until}, the end of event {event}")
        }
        (Some(until), None) => format!(" until {}", printable(until)),
        (None, Some(event)) => format!(" until the end of event {}", printable(event)),
        (None, None) => String::new(),
    }
}

fn paused(shown: &RoomOverridesView) -> String {
    match &shown.paused {
        Some(pause) => {
            let since = printable(&pause.since);
            format!("PAUSED since {since}{}", until(shown, "pause"))
        }
        None => "not paused".to_owned(),
    }
}

/// Formats only what an operator set.
pub(super) fn short(shown: &RoomOverridesView) -> String {
    let mut text = format!("room {}: {}\n", shown.room, paused(shown));
    match &shown.note {
        Some(note) => writeln!(text, "{}", printable(note)).expect(STRING),
        None => text.push_str(&held(shown)),
    }
    if let Some(message) = &shown.message {
        let until = until(shown, "message");
        writeln!(text, "on the page{until}: {}", printable(message)).expect(STRING);
    }
    let set: Vec<String> = shown
        .overrides()
        .map(|(key, value)| {
            format!(
                "{key}={}{} (file: {})",
                plain(&value.value),
                until(shown, key),
                plain(&value.file)
            )
        })
        .collect();
    let of_event: Vec<String> = shown
        .values
        .iter()
        .filter(|(_, value)| value.is_of_event())
        .map(|(key, value)| format!("{key}={}", plain(&value.value)))
        .collect();
    if !of_event.is_empty() {
        writeln!(text, "of the active event: {}", of_event.join(", ")).expect(STRING);
    }
    if !set.is_empty() {
        writeln!(text, "set by an operator: {}", set.join(", ")).expect(STRING);
    } else if of_event.is_empty() {
        text.push_str("all values are the file's\n");
    }
    for warning in &shown.warnings {
        writeln!(text, "WARNING: {}", printable(warning)).expect(STRING);
    }
    for problem in &shown.ignored {
        writeln!(text, "DOES NOT APPLY: {}", printable(problem)).expect(STRING);
    }
    text
}

/// Formats all rooms as a table.
pub(super) fn rooms(documents: &RoomDocuments) -> String {
    let row = |room: &RoomDocument| {
        let routes = [text_of(room, "host"), text_of(room, "path")].concat();
        let site = room.site.as_deref().unwrap_or("-");
        let events = room.events.len();
        let served = if room.problems.is_empty() {
            ""
        } else {
            "NOT SERVED"
        };
        let cells = [
            &room.name(),
            &room.from,
            &routes,
            site,
            &events.to_string(),
            served,
        ];
        cells.map(printable)
    };
    let head = ["room", "from", "route", "site", "events", ""].map(str::to_owned);
    let rows: Vec<[String; 6]> = [head]
        .into_iter()
        .chain(documents.rooms.iter().map(row))
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..6).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths);
        let line: String = cells
            .map(|(cell, width)| format!("{cell:<width$}  "))
            .collect();
        writeln!(text, "{}", line.trim_end()).expect(STRING);
    }
    text
}

fn text_of<'a>(room: &'a RoomDocument, key: &str) -> &'a str {
    room.values
        .get(key)
        .and_then(|value| value.as_str())
        .unwrap_or_default()
}

/// Formats a room after a change.
pub(super) fn room(room: &RoomDocument) -> String {
    let routes = [text_of(room, "host"), text_of(room, "path")].concat();
    let site = room
        .site
        .as_deref()
        .map(|site| format!(" of site {}", printable(site)));
    let mut text = format!(
        "room {} at {}{}\n",
        printable(&room.name()),
        printable(&routes),
        site.unwrap_or_default()
    );
    for event in &room.events {
        let value = |key: &str| event.get(key).map_or_else(|| "-".to_owned(), plain);
        writeln!(
            text,
            "event {}: {} to {}",
            value("name"),
            value("event_start_time"),
            value("event_end_time")
        )
        .expect(STRING);
    }
    if let Some(applied) = &room.applied {
        text.push_str(&in_force_at(applied));
    }
    for message in &room.messages {
        writeln!(text, "HIDDEN: {}", printable(message)).expect(STRING);
    }
    for problem in &room.problems {
        writeln!(text, "NOT SERVED: {}", printable(problem)).expect(STRING);
    }
    text
}

fn in_force_at(applied: &Applied) -> String {
    format!(
        "in force at {} of {} live nodes\n",
        applied.nodes, applied.of
    )
}

/// Formats the result of an import, or of its preview.
pub(super) fn imported(imported: &Imported, is_preview: bool) -> String {
    let mut text = String::new();
    for room in &imported.rooms {
        let what = match (room.kind, is_preview) {
            (ImportKind::Unchanged, _) => "as it is already",
            (ImportKind::Created, false) => "created",
            (ImportKind::Created, true) => "would be created",
            (ImportKind::Replaced, false) => "replaced",
            (ImportKind::Replaced, true) => "would be replaced",
        };
        writeln!(text, "room {}: {what}", printable(&room.name)).expect(STRING);
        for change in &room.changes {
            let (before, after) = (plain(&change.before), plain(&change.after));
            let key = printable(&change.key);
            writeln!(text, "  {key}: {before} -> {after}").expect(STRING);
        }
    }
    if let Some(applied) = &imported.applied {
        text.push_str(&in_force_at(applied));
    }
    text
}

/// Formats what a node knows of the visitors with a code, one line for each.
pub(super) fn found(found: &FoundVisitors) -> String {
    let mut text = format!(
        "code {} in room {}:\n",
        printable(&found.code),
        printable(&found.room)
    );
    for found in &found.visitors {
        let state = match &found.state {
            FoundState::Waiting {
                arrived_at,
                position,
                counted_until,
            } => {
                let position = position.map(|position| format!(" at position {position}"));
                format!(
                    "waits{} since {}; counted until {} unless it polls again",
                    position.unwrap_or_default(),
                    printable(arrived_at),
                    printable(counted_until)
                )
            }
            FoundState::Left => "left the queue a short time ago".to_owned(),
            FoundState::Active {
                accepted_at,
                seat_ends_at,
            } => format!(
                "active since {}; its session ends at {} or later",
                printable(accepted_at),
                printable(seat_ends_at)
            ),
            FoundState::Revoked => "its session was ended".to_owned(),
        };
        writeln!(text, "{}: {state}", printable(&found.visitor)).expect(STRING);
    }
    if found.visitors.is_empty() {
        text.push_str(
            "this node does not know the visitor: nobody with this code sent a request here \
             lately.\nAsk the other nodes as well (--admin)\n",
        );
    }
    text
}

pub(super) fn assumed_empty(room: &str, is_open: bool) -> String {
    if is_open {
        return format!("room {room} admits again\n");
    }
    format!(
        "room {room}: command stored; it still waits for nodes to report or for their leases to \
         end: `anteroom status` shows until when\n"
    )
}

#[cfg(test)]
mod tests {
    use anteroom_config::overrides::{PauseView, PendingStopView};

    use crate::found_visitors::FoundVisitor;

    use super::*;

    fn held_pause() -> RoomOverridesView {
        RoomOverridesView {
            room: "shop".to_owned(),
            version: 4,
            paused: Some(PauseView {
                since: "2023-09-11T11:45:54.000Z".to_owned(),
                message: None,
            }),
            held: vec![PendingStopView {
                command: "pause".to_owned(),
                since: "2023-09-11T11:45:54.000Z".to_owned(),
                is_kept: true,
            }],
            ..RoomOverridesView::default()
        }
    }

    #[test]
    fn a_visitor_is_found_in_one_line_or_not_known() {
        let check = |state: Option<FoundState>, expected: &str| {
            let visitor = |state| FoundVisitor {
                visitor: "3f9a12c4".to_owned(),
                state,
            };
            let visitors = FoundVisitors {
                room: "shop".to_owned(),
                code: "3F9A-12C4".to_owned(),
                visitors: state.map(visitor).into_iter().collect(),
            };
            let text = found(&visitors);
            let rest = text.strip_prefix("code 3F9A-12C4 in room shop:\n");
            assert_eq!(rest, Some(expected));
        };
        let waiting = |position| FoundState::Waiting {
            arrived_at: "11:45".to_owned(),
            position,
            counted_until: "11:47".to_owned(),
        };
        check(
            Some(waiting(Some(12))),
            "3f9a12c4: waits at position 12 since 11:45; counted until 11:47 unless it polls \
             again\n",
        );
        check(
            Some(waiting(None)),
            "3f9a12c4: waits since 11:45; counted until 11:47 unless it polls again\n",
        );
        let active = FoundState::Active {
            accepted_at: "11:45".to_owned(),
            seat_ends_at: "11:50\u{1b}".to_owned(),
        };
        check(
            Some(active),
            "3f9a12c4: active since 11:45; its session ends at 11:50\\u{1b} or later\n",
        );
        check(
            Some(FoundState::Left),
            "3f9a12c4: left the queue a short time ago\n",
        );
        check(
            Some(FoundState::Revoked),
            "3f9a12c4: its session was ended\n",
        );
        check(
            None,
            "this node does not know the visitor: nobody with this code sent a request here \
             lately.\nAsk the other nodes as well (--admin)\n",
        );
    }

    #[test]
    fn a_command_of_one_node_is_shown_as_such() {
        let shown = held_pause();
        assert_eq!(
            short(&shown),
            "room shop: PAUSED since 2023-09-11T11:45:54.000Z\n\
             at this node only since 2023-09-11T11:45:54.000Z: pause (a restart keeps it)\n\
             all values are the file's\n"
        );
        let note = Some("This holds at this node only.\u{1b}".to_owned());
        let shown = RoomOverridesView { note, ..shown };
        assert_eq!(
            line(&shown),
            "PAUSED since 2023-09-11T11:45:54.000Z; This holds at this node only.\\u{1b}\n"
        );
        let text = short(&shown);
        assert!(text.contains("\nThis holds at this node only."), "{text}");
        let written = RoomOverridesView {
            note: None,
            held: Vec::new(),
            paused: None,
            ..shown
        };
        assert_eq!(line(&written), "not paused; settings version 4\n");
    }
}
