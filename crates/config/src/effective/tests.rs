//! Layers of settings, against a naive model of what holds when.

use anteroom_room::rules::Draw;
use anteroom_room::split_mix::SplitMix;
use serde_json::json;

use super::*;
use crate::overrides::{EventLatch, Pause};
use crate::testing::room;

const MINUTE: u64 = 60_000;
/// 2030-01-31T10:00:00Z.
const TEN: Timestamp = Timestamp(1_896_084_000_000);

fn sale(lines: &str) -> RoomConfig {
    room(&format!(
        "[[room.event]]\nname = \"sale\"\nprequeue_start_time = \"2030-01-31T09:30:00Z\"\n\
         event_start_time = \"2030-01-31T10:00:00Z\"\nevent_end_time = \"2030-01-31T12:00:00Z\"\n\
         {lines}"
    ))
}

fn at(room: &RoomConfig, minutes: i64) -> Effective {
    effective(room, &RoomOverrides::default(), after_ten(minutes))
}

fn after_ten(minutes: i64) -> Timestamp {
    let ms = DurationMs(minutes.unsigned_abs() * MINUTE);
    if minutes < 0 { TEN - ms } else { TEN + ms }
}

fn limits(effective: &Effective) -> (u32, u32) {
    let limits = effective.config.rules.limits;
    (limits.total_active_users, limits.new_users_per_minute)
}

#[test]
fn values_of_an_event_hold_from_its_prequeue_to_its_end() {
    let room = sale(
        "total_active_users = 500\nnew_users_per_minute = 300\nqueueing_method = \"random\"\n\
         session_duration = \"2m\"\ndisable_session_renewal = true\n\
         custom_page_html = \"<p>sale</p>\"\n",
    );
    for (minutes, is_active) in [
        (-31, false),
        (-30, true),
        (0, true),
        (119, true),
        (120, false),
    ] {
        let found = at(&room, minutes);
        assert_eq!(found.event.is_some(), is_active, "{minutes}");
        let expected = if is_active { (500, 300) } else { (200, 100) };
        assert_eq!(limits(&found), expected, "{minutes}");
        let rules = found.config.rules;
        assert_eq!(rules.queueing_method == QueueingMethod::Random, is_active);
        assert_eq!(
            rules.session_duration == DurationMs::from_secs(120),
            is_active
        );
        assert_eq!(rules.session_renewal, !is_active);
        assert_eq!(found.config.page.template.is_some(), is_active);
        let keys: Vec<_> = found.of_event.into_iter().collect();
        let expected: &[&str] = &[
            "disable_session_renewal",
            "new_users_per_minute",
            "queueing_method",
            "session_duration",
            "total_active_users",
        ];
        assert_eq!(keys, if is_active { expected } else { &[] }, "{minutes}");
    }
}

#[test]
fn new_visitors_are_held_from_the_prequeue_to_the_start() {
    let room = sale("shuffle_at_event_start = true\n");
    for (minutes, is_held) in [
        (-40, false),
        (-31, false),
        (-30, true),
        (-1, true),
        (0, false),
    ] {
        let found = at(&room, minutes);
        let ahead = found.config.rules.opening_ahead(after_ten(minutes));
        assert_eq!(ahead, is_held.then_some(TEN), "{minutes}");
    }
    // The room knows the times before they come, and keeps the order of the draw after the end.
    let drawn = Some(Draw {
        from: after_ten(-30),
        until: TEN,
        name: Timestamp::ZERO,
    });
    for (minutes, expected) in [
        (-32, None),
        (-31, drawn),
        (-5, drawn),
        (0, drawn),
        (500, drawn),
    ] {
        assert_eq!(
            at(&room, minutes).config.rules.drawn(),
            expected,
            "{minutes}"
        );
    }
}

#[test]
fn an_event_without_a_prequeue_holds_nobody() {
    let room = room(
        "[[room.event]]\nname = \"more\"\nevent_start_time = \"2030-01-31T10:00:00Z\"\n\
         total_active_users = 500\nnew_users_per_minute = 300\n",
    );
    for (minutes, expected) in [(-1, (200, 100)), (0, (500, 300)), (1_000_000, (500, 300))] {
        let found = at(&room, minutes);
        assert_eq!(limits(&found), expected, "{minutes}");
        let rules = found.config.rules;
        assert_eq!(
            (rules.opening_ahead(after_ten(minutes)), rules.drawn()),
            (None, None)
        );
    }
    assert_eq!(at(&room, 1).next_change_at, None);
}

#[test]
fn steps_change_the_limits_in_the_course_of_an_event() {
    let room = sale(
        "total_active_users = 500\nnew_users_per_minute = 300\n\
         steps = [{ after = \"10m\", new_users_per_minute = 600 }, \
         { after = \"20m\", total_active_users = 900, new_users_per_minute = 900 }]\n",
    );
    for (minutes, expected, next) in [
        (-5, (500, 300), 0),
        (0, (500, 300), 10),
        (9, (500, 300), 10),
        (10, (500, 600), 20),
        (20, (900, 900), 120),
        (120, (200, 100), 0),
    ] {
        let found = at(&room, minutes);
        assert_eq!(limits(&found), expected, "{minutes}");
        let next = (next > minutes).then(|| after_ten(next));
        assert_eq!(found.next_change_at, next, "{minutes}");
    }
}

#[test]
fn what_an_operator_set_wins_over_the_event() {
    let room = sale("total_active_users = 500\nnew_users_per_minute = 300\n");
    let overrides = RoomOverrides {
        values: [("total_active_users".to_owned(), json!(150))].into(),
        pause: Some(Pause {
            message: None,
            since: 1,
        }),
        ..RoomOverrides::default()
    };
    let found = effective(&room, &overrides, TEN);
    assert_eq!(limits(&found), (150, 300));
    assert!(found.config.rules.queue_all);
    assert_eq!(
        found.values["queue_all"],
        json!(false),
        "a pause is no value"
    );
}

#[test]
fn a_latched_phase_outlives_a_clock_that_steps_back() {
    let room = sale("total_active_users = 500\nnew_users_per_minute = 300\n");
    let times = &room.events[0].times;
    let mut overrides = RoomOverrides::default();
    let latch = EventLatch::new(EventPhase::Running, TEN, TEN);
    overrides.events.advance("sale", times, latch);
    let found = effective(&room, &overrides, after_ten(-600));
    assert_eq!(found.event.unwrap().phase, EventPhase::Running);
    let over = EventLatch::new(EventPhase::Over, TEN, TEN);
    overrides.events.advance("sale", times, over);
    assert_eq!(effective(&room, &overrides, TEN).event, None);
}

#[test]
fn a_suspended_event_is_ignored() {
    let found = at(
        &sale("suspended = true\ntotal_active_users = 5\nnew_users_per_minute = 3\n"),
        1,
    );
    assert_eq!(
        (limits(&found), found.event, found.next),
        ((200, 100), None, None)
    );
}

#[test]
fn opens_at_is_an_event_without_an_end() {
    let room = room("opens_at = \"2030-01-31T10:00:00Z\"\ndraw = true\n");
    let found = at(&room, -500);
    assert_eq!(found.config.rules.opening_ahead(after_ten(-500)), Some(TEN));
    assert_eq!(found.next_change_at, Some(TEN));
    assert_eq!(found.prequeue_of.unwrap().name, "opening");
    let found = at(&room, 0);
    assert_eq!(found.config.rules.opening_ahead(TEN), None);
    let drawn = found.config.rules.drawn().unwrap();
    assert_eq!((drawn.from, drawn.until), (Timestamp::ZERO, TEN));
    assert_eq!(found.next_change_at, None);
}

#[test]
fn the_opening_that_came_last_has_its_draw_and_an_earlier_one_keeps_its_order() {
    let room = sale("shuffle_at_event_start = true\n");
    let values = [
        ("opens_at".to_owned(), json!("2030-01-31T20:00:00Z")),
        ("draw".to_owned(), json!(true)),
    ];
    let overrides = RoomOverrides {
        values: values.into(),
        ..RoomOverrides::default()
    };
    let evening = after_ten(600);
    let found = effective(&room, &overrides, evening);
    assert_eq!(found.prequeue_of.unwrap().name, "opening");
    assert_eq!(found.config.rules.drawn().unwrap().until, evening);
    assert_eq!(found.earlier_draw.unwrap().name, "sale");
}

#[test]
fn the_rules_of_the_event_that_ended_last_are_known() {
    let room = sale(
        "total_active_users = 500\nnew_users_per_minute = 300\n\
         steps = [{ after = \"10m\", new_users_per_minute = 600 }]\n",
    );
    assert_eq!(at(&room, 119).last_rules, None);
    let limits = at(&room, 120).last_rules.unwrap().limits;
    assert_eq!(
        (limits.total_active_users, limits.new_users_per_minute),
        (500, 600)
    );
}

/// Between two changes that it announces, nothing changes; at each of them the naive model and the
/// function agree.
#[test]
fn random_schedules_hold_what_the_list_of_events_says() {
    let mut random = SplitMix(5);
    let mut below = |end: u64| random.next_u64() % end;
    let time = |minutes: u64| crate::time_text::rfc3339_millis(after_ten(minutes.cast_signed()));
    for _ in 0..300 {
        let mut lines = String::new();
        let mut spans = Vec::new();
        let mut from = below(30);
        for number in 0..below(4) {
            let start = from + if below(2) == 0 { 0 } else { 5 + below(20) };
            let end = start + 1 + below(60);
            let prequeue = time(from);
            if from < start {
                lines += &format!("[[room.event]]\nprequeue_start_time = \"{prequeue}\"\n");
            } else {
                lines += "[[room.event]]\n";
            }
            lines += &format!(
                "name = \"e{number}\"\nevent_start_time = \"{}\"\nevent_end_time = \"{}\"\n\
                 total_active_users = {}\nnew_users_per_minute = 7\n",
                time(start),
                time(end),
                number + 1
            );
            spans.push((from, start, end));
            from = end + below(3) * 10;
        }
        let room = room(&lines);
        let mut before: Option<Effective> = None;
        for minute in 0_u64..300 {
            let found = at(&room, minute.cast_signed());
            let number = spans
                .iter()
                .position(|span| (span.0..span.2).contains(&minute));
            let expected = number.map_or(200, |number| u32::try_from(number).unwrap() + 1);
            assert_eq!(limits(&found).0, expected, "minute {minute} of {lines}");
            let held = spans.iter().find(|span| (span.0..span.1).contains(&minute));
            let ahead = found
                .config
                .rules
                .opening_ahead(after_ten(minute.cast_signed()));
            let expected = held.map(|span| after_ten(span.1.cast_signed()));
            assert_eq!(ahead, expected, "minute {minute} of {lines}");
            if let Some(before) = before {
                let now = after_ten(minute.cast_signed());
                let was_announced = before.next_change_at.is_some_and(|at| at <= now);
                let is_same = before.config == found.config;
                assert!(is_same || was_announced, "minute {minute} of {lines}");
            }
            before = Some(found);
        }
    }
}
