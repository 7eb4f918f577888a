//! `kind = "event"`: an operator changes an event in the configuration file.

use anteroom_config::toml_file::{Key, Moment, Switch, Table, Text};
use anteroom_config::{Finding, read_room_limits};
use anteroom_room::time::DurationMs;

use super::super::{Frame, did_you_mean, one_line};
use super::WITHIN;
use crate::scenario::model::{EventChange, EventRef, FaultKind, RoomPlan};

/// Shortest time from start to end, as in the configuration file.
const LENGTH_MIN: DurationMs = DurationMs::from_secs(60);

const EVENT: Key<Text<String>> = Key {
    name: "event",
    kind: Text {
        allowed: "a room and the name of one of its events, such as \"shop/sale\"",
        read: |text| one_line(text, 129),
    },
    default: None,
};
const ENDS_AT: Key<Moment> = Key {
    name: "event_end_time",
    kind: Moment,
    default: None,
};
const SUSPENDED: Key<Switch> = Key {
    name: "suspended",
    kind: Switch,
    default: None,
};
const LIMITS: [&str; 2] = ["total_active_users", "new_users_per_minute"];

/// Reads the change of an event.
pub(super) fn read(table: &mut Table<'_>, frame: &Frame<'_>) -> Option<FaultKind> {
    let name = table.required(&EVENT);
    let has_limits = LIMITS.iter().any(|key| table.has(key));
    let limits = if has_limits {
        read_room_limits(table)
    } else {
        None
    };
    let ends_at = table.optional(&ENDS_AT);
    let is_suspended = table.optional(&SUSPENDED);
    let within = table.defaulted(&WITHIN);
    if !has_limits && !table.has(ENDS_AT.name) && !table.has(SUSPENDED.name) {
        let location = table.location(EVENT.name);
        let finding = Finding::Remark("nothing changes".to_owned());
        let allowed = "at least one of total_active_users with new_users_per_minute, \
                       event_end_time, suspended";
        table.notes.report(&location, finding, allowed, None);
    }
    let rooms = frame.rooms?;
    let event = find(table, &name?, rooms)?;
    let change = EventChange {
        limits,
        ends_at,
        is_suspended,
    };
    check_end(table, &rooms[event.room], event.event, change);
    Some(FaultKind::Event {
        event,
        change,
        within,
    })
}

/// Returns the event that `shop/sale` names.
fn find(table: &mut Table<'_>, text: &str, rooms: &[RoomPlan]) -> Option<EventRef> {
    let named =
        |room: &RoomPlan, event: usize| format!("{}/{}", room.name, room.events[event].name);
    let all = rooms.iter().enumerate().flat_map(|(room, plan)| {
        (0..plan.events.len()).map(move |event| (EventRef { room, event }, named(plan, event)))
    });
    let all: Vec<(EventRef, String)> = all.collect();
    let found = all.iter().find(|(_, name)| name == text);
    if found.is_none() {
        let known = all.iter().map(|(_, name)| name.as_str());
        let hint = anteroom_config::toml_file::nearest(text, known).map(did_you_mean);
        let location = table.location(EVENT.name);
        let finding = Finding::Value(format!("{text:?}"));
        table
            .notes
            .report(&location, finding, EVENT.kind.allowed, hint);
    }
    found.map(|(event, _)| *event)
}

/// Reports a new end that the configuration file would not accept.
fn check_end(table: &mut Table<'_>, room: &RoomPlan, index: usize, change: EventChange) {
    let mut event = room.events[index].clone();
    change.apply(&mut event);
    let starts_at = event.times.starts_at;
    let mut others = room.events.iter().enumerate();
    let is_other = |other: usize| other != index && !room.events[other].is_suspended;
    let is_too_short = change
        .ends_at
        .is_some_and(|ends_at| ends_at < starts_at + LENGTH_MIN);
    let overlaps = !event.is_suspended
        && others.any(|(other, plan)| is_other(other) && plan.times.overlaps(&event.times));
    let (finding, allowed) = if is_too_short {
        let finding = format!("less than 1m after the start of {}", event.name);
        (finding, "at least 1m after event_start_time")
    } else if overlaps {
        let finding = format!("{} overlaps with another event then", event.name);
        (finding, "one event at a time")
    } else {
        return;
    };
    let location = table.location(ENDS_AT.name);
    table
        .notes
        .report(&location, Finding::Remark(finding), allowed, None);
}
