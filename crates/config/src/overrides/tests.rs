//! Commands of operators in sequence, and the overrides that follow.

use anteroom_room::time::{DurationMs, Timestamp};
use serde_json::json;

use super::command::{MESSAGE_CHARS_MAX, message};
use super::log::ENTRIES_MAX;
use super::*;
use crate::testing::room;
use crate::time_text::rfc3339_millis;

const NOW: Timestamp = Timestamp(1_900_000_000_000);

fn who() -> Actor {
    Actor {
        token: "local".to_owned(),
        user: Some("alice".to_owned()),
        address: "127.0.0.1".to_owned(),
    }
}

fn set(values: Value) -> OperatorCommand {
    let Value::Object(values) = values else {
        panic!("{values}");
    };
    OperatorCommand::Set(values.into_iter().collect())
}

fn pause(text: &str) -> OperatorCommand {
    OperatorCommand::Pause {
        message: Some(text.to_owned()),
    }
}

/// Returns the overrides after all of these commands.
fn after(overrides: &[OperatorCommand], file: &RoomConfig) -> RoomOverrides {
    overrides
        .iter()
        .fold(RoomOverrides::default(), |before, command| {
            before.after(command, file, &who(), NOW).unwrap()
        })
}

#[test]
fn a_change_is_logged_with_operator_time_and_values() {
    let overrides = after(
        &[set(json!({ "total_active_users": 300, "pacing": true }))],
        &room(""),
    );
    assert_eq!(
        serde_json::to_value(overrides.newest.unwrap()).unwrap(),
        json!({
            "version": 1,
            "at": NOW.0,
            "who": { "token": "local", "user": "alice", "address": "127.0.0.1" },
            "what": "set pacing=true total_active_users=300",
            // Pacing was on already: now an override sets it, and nothing changes.
            "changes": [{ "key": "total_active_users", "before": 200, "after": 300 }],
        })
    );
}

#[test]
fn a_pause_is_its_own_layer_and_resume_removes_only_that() {
    let file = room("");
    let steps = [
        OperatorCommand::Message(Some("Sold out for Saturday".to_owned())),
        OperatorCommand::QueueAll,
        pause("Payment problem"),
    ];
    let paused = after(&steps, &file);
    assert_eq!(paused.message(), Some("Payment problem"));
    assert_eq!(paused.pause.as_ref().map(|pause| pause.since), Some(NOW.0));
    let later = Timestamp(NOW.0 + 5_000);
    let again = paused.after(&pause("Still"), &file, &who(), later).unwrap();
    assert_eq!(
        again.pause.as_ref().map(|pause| pause.since),
        Some(NOW.0),
        "it is the same pause"
    );
    let resumed = again
        .after(&OperatorCommand::Resume, &file, &who(), later)
        .unwrap();
    assert_eq!(resumed.message(), Some("Sold out for Saturday"));
    assert!(resumed.applied_to(&file).config.rules.queue_all);
}

#[test]
fn a_message_has_the_time_of_its_own_newest_command() {
    let file = room("");
    let at = |seconds: u64| Timestamp(NOW.0 + seconds * 1_000);
    let message = |text: &str| OperatorCommand::Message(Some(text.to_owned()));
    let then = |before: &RoomOverrides, command: &OperatorCommand, seconds| {
        before.after(command, &file, &who(), at(seconds)).unwrap()
    };
    let said = then(&RoomOverrides::default(), &message("Soon"), 1);
    assert_eq!(said.message_at(), Some(at(1)));
    let paused = then(&said, &pause("Payment problem"), 2);
    assert_eq!(paused.message_at(), Some(at(2)));
    let again = then(&paused, &pause("Still"), 9);
    assert_eq!(again.message_at(), Some(at(9)), "news in the same pause");
    let resumed = then(&again, &OperatorCommand::Resume, 10);
    assert_eq!(resumed.message_at(), Some(at(1)));
    let reset = then(&resumed, &OperatorCommand::Reset(None), 11);
    assert_eq!(reset.message_at(), None);
    let mut unrecorded = said;
    unrecorded.decided_at = DecidedAt::default();
    assert_eq!(unrecorded.message_at(), None);
}

#[test]
fn open_ends_pauses_and_moves_the_opening_to_now() {
    let file = room("opens_at = \"2040-01-01T00:00:00Z\"\ndraw = true\nqueue_all = true");
    let opened = after(&[pause("wait"), OperatorCommand::Open], &file);
    let changed = opened.applied_to(&file);
    assert_eq!(changed.problems, []);
    let rules = changed.config.rules;
    assert_eq!(
        (rules.queue_all, rules.opens_at, rules.draw),
        (false, Some(NOW), true)
    );
    assert_eq!(opened.pause, None);

    let opened_long_ago = room("opens_at = \"2020-01-01T00:00:00Z\"");
    let opened = after(&[OperatorCommand::Open], &opened_long_ago);
    assert_eq!(opened.values.keys().collect::<Vec<_>>(), ["queue_all"]);
}

#[test]
fn reset_restores_the_file_for_one_key_or_all() {
    let file = room("");
    let steps = [
        set(json!({ "total_active_users": 300, "queueing_method": "random" })),
        OperatorCommand::Message(Some("hello".to_owned())),
        pause("wait"),
    ];
    let all = after(&steps, &file);
    let reset = |key: &str| {
        let command = OperatorCommand::Reset(Some(key.to_owned()));
        all.after(&command, &file, &who(), NOW)
    };
    let one = reset("total_active_users").unwrap();
    assert_eq!(one.values.keys().collect::<Vec<_>>(), ["queueing_method"]);
    assert_eq!(reset("message").unwrap().message, None);
    assert_eq!(reset("pause").unwrap().pause, None);
    assert!(
        reset("pauze")
            .unwrap_err()
            .to_string()
            .contains("did you mean pause?")
    );
    let nothing = all
        .after(&OperatorCommand::Reset(None), &file, &who(), NOW)
        .unwrap();
    assert!(nothing.values.is_empty() && nothing.pause.is_none() && nothing.message.is_none());
    assert_eq!(nothing.version, 4, "a reset is a new version too");
}

#[test]
fn a_command_with_a_mistake_changes_nothing() {
    let file = room("");
    let before = after(&[set(json!({ "total_active_users": 300 }))], &file);
    let command = set(json!({ "total_active_users": 400, "new_users_per_minute": 0, "drow": 1 }));
    let problems = before.after(&command, &file, &who(), NOW).unwrap_err();
    assert_eq!(problems.0.len(), 2, "{problems}");
    let empty = before.after(&set(json!({})), &file, &who(), NOW);
    assert!(empty.unwrap_err().to_string().contains("key=value"));
}

#[test]
fn a_value_that_is_too_long_is_rejected() {
    let long = format!("{}5m", "0".repeat(5_000));
    let command = set(json!({ "session_duration": long }));
    let refused = RoomOverrides::default().after(&command, &room(""), &who(), NOW);
    assert!(refused.unwrap_err().to_string().contains("bytes of values"));
}

#[test]
fn a_suspended_room_rejects_commands_that_queue() {
    let file = room("suspended = true");
    for command in [pause("wait"), OperatorCommand::QueueAll] {
        let problems = RoomOverrides::default().after(&command, &file, &who(), NOW);
        assert!(
            problems
                .unwrap_err()
                .to_string()
                .contains("set suspended=false first")
        );
    }
    let command = set(json!({ "suspended": false }));
    assert!(after(&[command, pause("wait")], &file).pause.is_some());
}

#[test]
fn overrides_that_no_longer_fit_the_file_can_be_reset() {
    let opening = room("opens_at = \"2040-01-01T00:00:00Z\"");
    let overrides = after(
        &[
            set(json!({ "draw": true, "total_active_users": 5 })),
            pause("x"),
        ],
        &opening,
    );
    let file = room("");
    let changed = overrides.applied_to(&file);
    assert!(!changed.config.rules.draw);
    assert_eq!(changed.config.rules.limits.total_active_users, 5);
    assert_eq!(shown(&overrides, &file).ignored.len(), 1);
    assert!(
        overrides
            .after(&OperatorCommand::Resume, &file, &who(), NOW)
            .is_ok()
    );
    assert!(
        overrides
            .after(
                &OperatorCommand::Reset(Some("draw".to_owned())),
                &file,
                &who(),
                NOW
            )
            .is_ok()
    );
    let more = set(json!({ "total_active_users": 6 }));
    for command in [more, pause("a newer one"), OperatorCommand::QueueAll] {
        assert!(
            overrides.after(&command, &file, &who(), NOW).is_ok(),
            "{command:?} has nothing to do with the draw"
        );
    }
    let again = set(json!({ "draw": true }));
    assert!(
        overrides.after(&again, &file, &who(), NOW).is_err(),
        "a value that does not fit is reported if it is set"
    );
}

#[test]
fn the_last_change_is_newer_whatever_its_clock_and_version() {
    let file = room("");
    let first = after(&[pause("x"), OperatorCommand::Resume], &file);
    let behind = Timestamp(NOW.0 - 60_000);
    let next = first.after(&pause("y"), &file, &who(), behind).unwrap();
    assert!(
        next.is_newer_than(&first),
        "its clock goes after the others'"
    );
    assert!(!first.is_newer_than(&next));
    let forked = RoomOverrides::default()
        .after(
            &OperatorCommand::QueueAll,
            &file,
            &who(),
            Timestamp(NOW.0 + 60_000),
        )
        .unwrap();
    assert!(forked.version < next.version && forked.is_newer_than(&next));
    assert!(
        !next.is_newer_than(&next),
        "a record is not newer than itself"
    );
    assert!(first.is_newer_than(&RoomOverrides::default()));
}

#[test]
fn a_message_is_one_bounded_line_of_text() {
    let check = |text: &str, expected: Result<Option<&str>, &str>| {
        let found = message(text);
        let found = found.as_ref().map(Option::as_deref).map_err(String::as_str);
        assert_eq!(found, expected);
    };
    check("  Doors <b>at</b> 10  ", Ok(Some("Doors <b>at</b> 10")));
    check(" \n ", Ok(None));
    check("a\nb", Err("the control character \\u{a}"));
    check("a\u{1b}[31m", Err("the control character \\u{1b}"));
    check(&"é".repeat(MESSAGE_CHARS_MAX + 1), Err("501 characters"));
    let longest = "é".repeat(MESSAGE_CHARS_MAX);
    check(&longest, Ok(Some(&longest)));
}

#[test]
fn the_view_names_the_origin_of_each_value() {
    let file = room("");
    let overrides = after(
        &[set(json!({ "total_active_users": 300 })), pause("wait")],
        &file,
    );
    let shown = serde_json::to_value(shown(&overrides, &file)).unwrap();
    assert_eq!(
        shown["values"]["total_active_users"],
        json!({ "value": 300, "from": "operator", "file": 200 })
    );
    assert_eq!(shown["values"]["pacing"]["from"], "file");
    assert_eq!(
        shown["paused"],
        json!({ "since": "2030-03-17T17:46:40.000Z", "message": "wait" })
    );
    assert_eq!(
        (&shown["version"], &shown["ignored"]),
        (&json!(2), &json!([]))
    );
}

#[test]
fn a_record_is_read_back_and_anything_else_is_damaged() {
    let overrides = after(
        &[set(json!({ "session_duration": "2m" })), pause("wait")],
        &room(""),
    );
    assert_eq!(
        RoomOverrides::decode(&overrides.encode()),
        Ok(overrides.clone())
    );
    let mut log = Log::default();
    log.add(overrides.newest.as_ref().unwrap());
    assert_eq!(Log::decode(&log.encode()), Ok(log));
    for bytes in [&b""[..], b"{}", b"{\"form\":1}", b"\xff", b"[1]"] {
        assert_eq!(
            RoomOverrides::decode(bytes),
            Err(UnreadableOverrides::Damaged)
        );
    }
    let later = b"{\"form\":2,\"version\":1}";
    assert_eq!(
        RoomOverrides::decode(later),
        Err(UnreadableOverrides::OtherForm(2))
    );
    // Fields of a later version are ignored.
    let more = b"{\"form\":1,\"version\":3,\"weather\":\"fine\"}";
    assert_eq!(RoomOverrides::decode(more).unwrap().version, 3);
}

#[test]
fn the_log_keeps_the_newest_and_counts_what_it_dropped() {
    let entry = |version, length| Entry {
        version,
        at: NOW.0,
        who: who(),
        what: "x".repeat(length),
        changes: Vec::new(),
        room_id: None,
    };
    let mut log = Log::default();
    assert!(log.add(&entry(1, 1)));
    assert!(!log.add(&entry(1, 1)), "once is enough");
    for version in 2..=250 {
        log.add(&entry(version, 1));
    }
    assert_eq!((log.entries.len(), log.dropped), (ENTRIES_MAX, 50));
    assert_eq!(log.entries.last().unwrap().version, 250);
    for version in 251..300 {
        log.add(&entry(version, 10_000));
    }
    assert!(log.encode().len() < 150_000);
    assert_eq!(log.entries.last().unwrap().version, 299);
}

#[test]
fn a_value_that_an_event_cannot_have_is_refused_with_its_name() {
    let file = room(
        "[[room.event]]\nname = \"sale\"\nevent_start_time = \"2030-01-31T10:00:00Z\"\n\
         queueing_method = \"random\"\n",
    );
    let draw = set(json!({"draw": true, "opens_at": "2030-01-31T09:00:00Z"}));
    let refused = RoomOverrides::default().after(&draw, &file, &who(), NOW);
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("event sale"), "{text}");
    let fifo = set(json!({
        "draw": true, "opens_at": "2030-01-31T09:00:00Z", "queueing_method": "fifo"
    }));
    assert!(
        RoomOverrides::default()
            .after(&fifo, &file, &who(), NOW)
            .is_ok()
    );
}

#[test]
fn open_does_not_start_an_event() {
    let at = |at: Timestamp| rfc3339_millis(at);
    let file = room(&format!(
        "[[room.event]]\nname = \"sale\"\nprequeue_start_time = \"{}\"\n\
         event_start_time = \"{}\"\n",
        at(NOW),
        at(NOW + DurationMs(600_000)),
    ));
    let open = |now| RoomOverrides::default().after(&OperatorCommand::Open, &file, &who(), now);
    let text = open(NOW).unwrap_err().to_string();
    assert!(text.contains("visitors wait for event sale"), "{text}");
    assert!(open(NOW - DurationMs(1)).is_ok());
    assert!(open(NOW + DurationMs(600_000)).is_ok());
}

fn shown(overrides: &RoomOverrides, file: &RoomConfig) -> RoomOverridesView {
    let effective = crate::effective(file, overrides, Timestamp::ZERO);
    RoomOverridesView::of(overrides, file, &effective, NOW)
}

#[test]
fn a_change_is_undone_key_by_key() {
    let file = room("");
    let mut overrides = RoomOverrides::default();
    let mut log = Vec::new();
    let commands = [
        set(json!({ "total_active_users": 300, "pacing": false })),
        pause("Back soon"),
        set(json!({ "new_users_per_minute": 90 })),
    ];
    for command in commands {
        overrides = overrides.after(&command, &file, &who(), NOW).unwrap();
        log.push(overrides.newest.clone().unwrap());
    }
    for entry in log.iter().rev() {
        let undo = OperatorCommand::Undo(Box::new(entry.clone()));
        overrides = overrides.after(&undo, &file, &who(), NOW).unwrap();
        assert_eq!(
            overrides.newest.as_ref().unwrap().what,
            format!("undo {}", entry.version)
        );
    }
    // The values of the file need no override.
    assert!(overrides.values.is_empty(), "{:?}", overrides.values);
    assert_eq!(overrides.pause, None);
    // An undo can be undone.
    let redo = OperatorCommand::Undo(Box::new(overrides.newest.clone().unwrap()));
    let redone = overrides.after(&redo, &file, &who(), NOW).unwrap();
    assert_eq!(redone.values["total_active_users"], json!(300));
    assert_eq!(redone.values["pacing"], json!(false));
}

#[test]
fn a_change_whose_key_was_changed_again_is_not_undone() {
    let file = room("");
    let first = after(
        &[set(json!({ "total_active_users": 300, "pacing": false }))],
        &file,
    );
    let entry = first.newest.clone().unwrap();
    let second = first
        .after(
            &set(json!({ "total_active_users": 400 })),
            &file,
            &who(),
            NOW,
        )
        .unwrap();
    let undo = OperatorCommand::Undo(Box::new(entry));
    let problems = second.after(&undo, &file, &who(), NOW).unwrap_err();
    let keys: Vec<_> = problems.0.iter().map(|problem| &*problem.key).collect();
    assert_eq!(keys, ["total_active_users"]);
    let text = problems.0[0].to_string();
    assert!(
        text.contains("it is now 400; change 1 made it 300"),
        "{text}"
    );
    let nothing = after(&[OperatorCommand::AssumeEmpty], &file);
    let undo = OperatorCommand::Undo(Box::new(nothing.newest.clone().unwrap()));
    let problems = nothing.after(&undo, &file, &who(), NOW).unwrap_err();
    assert!(problems.0[0].to_string().contains("changed no value"));
}
