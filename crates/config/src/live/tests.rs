//! Values that are set while a room runs: those that are accepted, and the messages of those that
//! are rejected.

use anteroom_room::rules::QueueingMethod;
use anteroom_room::time::DurationMs;
use serde_json::json;

use super::*;
use crate::testing::room;

fn values(values: &Value) -> LiveValues {
    let values = values.as_object().unwrap().clone();
    values.into_iter().collect()
}

fn messages(changed: &Changed) -> Vec<String> {
    changed.problems.iter().map(ToString::to_string).collect()
}

#[test]
fn only_the_set_values_change() {
    let file = room("session_duration = \"2m\"");
    let changed = file.with_values(&values(&json!({
        "total_active_users": 300,
        "session_duration": "90s",
        "queueing_method": "random",
        "disable_session_renewal": true,
        "queueing_status_code": 503,
    })));
    assert_eq!(messages(&changed), [""; 0]);
    let mut expected = file.clone();
    expected.rules.limits.total_active_users = 300;
    expected.rules.session_duration = DurationMs::from_secs(90);
    expected.rules.queueing_method = QueueingMethod::Random;
    expected.rules.session_renewal = false;
    expected.queueing_status_code = 503;
    assert_eq!(changed.config, expected);
    assert_eq!(file.with_values(&LiveValues::new()).config, file);
}

#[test]
fn all_mistakes_are_reported_together_in_the_words_of_the_file() {
    let changed = room("").with_values(&values(&json!({
        "total_active_users": 0,
        "session_duration": 5,
        "sesion_duration": "5m",
        "queueing_method": "fofi",
        "opens_at": "tomorrow",
        "origin": "http://elsewhere",
        "pacing": [1],
        "draw": null,
    })));
    let mut messages = messages(&changed);
    messages.sort();
    assert_eq!(
        messages,
        [
            "room \"shop\": draw: found \"\", allowed: true or false",
            "room \"shop\": opens_at: found \"tomorrow\", allowed: a date and time with its \
             offset, \
             such as \"2030-01-31T10:00:00+01:00\", or none",
            "room \"shop\": origin: only the configuration file sets this; change it there and \
             send SIGHUP",
            "room \"shop\": pacing: found a list, allowed: true or false",
            "room \"shop\": queueing_method: found \"fofi\", allowed: \"fifo\", \"random\", \
             \"passthrough\" or \"reject\"; did you mean \"fifo\"?",
            "room \"shop\": sesion_duration: unknown key; did you mean session_duration?",
            "room \"shop\": session_duration: found 5, allowed: a duration from 1s to 24h; did \
             you mean \"5m\"?",
            "room \"shop\": total_active_users: found 0, allowed: an integer from 1 to 2147483647",
        ]
    );
}

#[test]
fn a_draw_needs_an_opening_time_from_the_file_or_an_override() {
    let opening = "opens_at = \"2030-01-31T10:00:00Z\"\n";
    let check = |file: &str, set: Value, is_right: bool| {
        let changed = room(file).with_values(&values(&set));
        assert_eq!(changed.problems.is_empty(), is_right, "{file} {set}");
        if !is_right {
            assert!(!changed.config.rules.draw);
        }
    };
    check("", json!({ "draw": true }), false);
    check(opening, json!({ "draw": true }), true);
    check(
        "",
        json!({ "draw": true, "opens_at": "2030-01-31T10:00:00Z" }),
        true,
    );
    check(
        opening,
        json!({ "draw": true, "queueing_method": "random" }),
        false,
    );
    check(
        &format!("{opening}draw = true"),
        json!({ "opens_at": "none" }),
        false,
    );
    check(
        &format!("{opening}draw = true"),
        json!({ "opens_at": "none", "draw": false }),
        true,
    );
}

#[test]
fn an_optional_key_can_be_set_to_none() {
    let file = room(
        "opens_at = \"2030-01-31T10:00:00Z\"\nrefresh_interval = \"5s\"\n\
         max_addresses_per_ticket = 2",
    );
    let set = values(&json!({
        "opens_at": "none", "refresh_interval": "none", "max_addresses_per_ticket": null,
    }));
    let changed = file.with_values(&set);
    assert_eq!(messages(&changed), [""; 0]);
    let rules = changed.config.rules;
    assert_eq!((rules.opens_at, rules.refresh_interval), (None, None));
    assert_eq!(changed.config.max_addresses_per_ticket, None);
}

#[test]
fn the_values_of_one_room_can_be_copied_to_another() {
    let file = room(
        "session_duration = \"90s\"\ndisable_session_renewal = true\nopens_at = \
         \"2030-01-31T10:00:00.250+01:00\"\ndraw = true\nallocation = \"curve\"\n\
         curve_factor = 1.5\n\
         pacing = false\nseat_needs_cookie = \"always\"\nposition_grace = \"1h30m\"\n\
         turn_held_for = \"90s\"\n\
         refresh_interval = \"7s\"\n\
         on_store_failure = \"admit\"\nsuspended = true\njson_response_enabled = true\n\
         queueing_status_code = 429\nnon_navigation_status_code = 503\nqueue_all = true\n\
         max_addresses_per_ticket = 8",
    );
    let values = file.values();
    let values = values
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value));
    let changed = room("").with_values(&values.collect());
    assert_eq!(messages(&changed), [""; 0]);
    assert_eq!(changed.config, file);
}

#[test]
fn these_room_keys_can_be_changed_while_the_gateway_runs() {
    let live: Vec<_> = room("").values().into_keys().collect();
    let expected = [
        "allocation",
        "curve_factor",
        "disable_session_renewal",
        "draw",
        "json_response_enabled",
        "max_addresses_per_ticket",
        "new_users_per_minute",
        "new_users_window",
        "non_navigation_status_code",
        "on_store_failure",
        "opens_at",
        "pacing",
        "position_grace",
        "queue_all",
        "queueing_method",
        "queueing_status_code",
        "refresh_interval",
        "seat_needs_cookie",
        "session_duration",
        "suspended",
        "total_active_users",
        "turn_held_for",
    ];
    assert_eq!(live, expected);
}

#[test]
fn only_a_known_key_can_be_reset() {
    let room = room("");
    assert_eq!(check_live_key(&room, "opens_at", &[]), Ok(()));
    assert_eq!(check_live_key(&room, "message", &["message"]), Ok(()));
    let messages = |key| {
        check_live_key(&room, key, &["message"])
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        messages("mesage"),
        "room \"shop\": mesage: unknown key; did you mean message?"
    );
    assert!(messages("bypass").contains("only the configuration file sets this"));
}
