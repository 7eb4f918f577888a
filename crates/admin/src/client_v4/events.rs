//! Events of a room on the wire.

use anteroom_config::api_rooms::{ApiEvent, ApiRoom};
use anteroom_config::time_text::rfc3339_millis;
use anteroom_config::{RoomConfig, RoomEvent};
use anteroom_room::event::EventTimes;
use anteroom_room::time::Timestamp;
use axum::http::Method;
use serde_json::{Map, Value, json};

use super::envelope::{Mistakes, Refusal, Reply};
use super::fields::{self, Found, Values};
use super::rooms::{change_room, new_id};
use super::{Answer, Call};
use crate::api_rooms::RoomRefusal;
use crate::known_rooms::{self, Room};

/// Fields that a new event needs.
const REQUIRED: [&str; 3] = ["name", "event_start_time", "event_end_time"];
/// Values of a room that an event may have of its own.
const INHERITED: [&str; 9] = [
    "new_users_per_minute",
    "total_active_users",
    "session_duration",
    "session_duration_seconds",
    "disable_session_renewal",
    "queueing_method",
    "custom_page_html",
    "turnstile_mode",
    "turnstile_action",
];

/// Returns the times of the event that is active at `now`, by the wall clock, or comes next.
pub(super) fn next(config: &RoomConfig, now: Timestamp) -> Option<EventTimes> {
    let is_ahead = |event: &&RoomEvent| {
        !event.is_suspended && event.times.ends_at.is_none_or(|ends_at| now < ends_at)
    };
    let ahead = config.events.iter().filter(is_ahead);
    ahead
        .map(|event| event.times)
        .min_by_key(|times| times.starts_at)
}

/// Returns the id of an event of this name.
pub(super) fn id_of_name(room: &Room, name: &str) -> Option<String> {
    let events = room.content().events;
    let found = events
        .into_iter()
        .find(|event| name_of(event) == Some(name));
    found.map(|event| event.id)
}

fn name_of(event: &ApiEvent) -> Option<&str> {
    event.values.get("name")?.as_str()
}

fn written(event: &ApiEvent) -> Value {
    let mut written = fields::written(fields::EVENT, &event.values, &event.sent);
    let time = |at: u64| (at > 0).then(|| rfc3339_millis(Timestamp(at)));
    written.insert("id".to_owned(), event.id.as_str().into());
    written.insert("created_on".to_owned(), json!(time(event.created_at)));
    written.insert("modified_on".to_owned(), json!(time(event.modified_at)));
    Value::Object(written)
}

pub(super) async fn all(call: &Call<'_>, room: &Room) -> Answer {
    if call.method == Method::POST {
        return create(call, room).await;
    }
    call.only_get()?;
    call.page(room.content().events.iter().map(written).collect())
}

/// Sets the fields of a body in an event.
fn read(body: &Map<String, Value>, event: &mut ApiEvent) -> Found {
    let mut values = Values {
        file: &mut event.values,
        sent: &mut event.sent,
    };
    fields::read(fields::EVENT, |key| key == "steps", body, &mut values)
}

fn check_required(body: &Map<String, Value>, mistakes: &mut Mistakes) {
    for key in REQUIRED {
        if body.get(key).is_none_or(Value::is_null) {
            mistakes.add(key, format!("{key}: missing"));
        }
    }
}

async fn create(call: &Call<'_>, room: &Room) -> Answer {
    let body = call.object()?;
    let mut event = ApiEvent {
        id: new_id()?,
        ..ApiEvent::default()
    };
    let mut found = read(body, &mut event);
    check_required(body, &mut found.mistakes);
    found.mistakes.check()?;
    // Its place in the file, for messages.
    let prefix = format!("event[{}].", room.content().events.len() + 1);
    let edit = |known: &ApiRoom, at: u64| {
        let mut next = known.clone();
        next.events.push(ApiEvent {
            created_at: at,
            modified_at: at,
            ..event.clone()
        });
        Ok(next)
    };
    let changed = change_room(call, room, "event create", &prefix, edit).await?;
    shown(
        &changed,
        &event.id,
        with_hidden(call, room, &event, found.messages),
    )
}

/// Adds the values of an event that have no effect, because an operator has set others.
fn with_hidden(
    call: &Call<'_>,
    room: &Room,
    event: &ApiEvent,
    mut messages: Vec<String>,
) -> Vec<String> {
    let present = known_rooms::all(call.inner, None, Some(&room.wire_id)).pop();
    let hidden = present.map(|room| known_rooms::hidden_values(call.inner, &room));
    let hidden = hidden.into_iter().flatten();
    let name = event.values.get("name").and_then(Value::as_str);
    let of_event = hidden.filter(|value| name == Some(&*value.event));
    messages.extend(of_event.map(|value| value.sentence));
    messages
}

fn shown(room: &ApiRoom, id: &str, messages: Vec<String>) -> Answer {
    let found = room.events.iter().find(|event| event.id == id);
    let event = found.ok_or_else(|| Refusal::not_found("Object"))?;
    Ok(Reply {
        result: written(event),
        messages,
        ..Reply::default()
    })
}

pub(super) async fn one(call: &Call<'_>, room: &Room, id: &str) -> Answer {
    let content = room.content();
    let number = content.events.iter().position(|event| event.id == id);
    let number = number.ok_or_else(|| Refusal::not_found("Object"))?;
    let prefix = format!("event[{}].", number + 1);
    let find = |room: &mut ApiRoom| {
        let found = room.events.iter().position(|event| event.id == id);
        found.ok_or(RoomRefusal::NotFound)
    };
    if call.method == Method::DELETE {
        let edit = |known: &ApiRoom, _: u64| {
            let mut next = known.clone();
            let found = find(&mut next)?;
            next.events.remove(found);
            Ok(next)
        };
        change_room(call, room, "event delete", &prefix, edit).await?;
        return Ok(Reply::of(json!({ "id": id })));
    }
    if call.method != Method::PUT && call.method != Method::PATCH {
        call.only_get()?;
        return shown(&content, id, Vec::new());
    }
    let body = call.object()?;
    let is_whole = call.method == Method::PUT;
    let change = |event: &ApiEvent| {
        let mut next = event.clone();
        if is_whole {
            next.values.clear();
            next.sent.clear();
        }
        let found = read(body, &mut next);
        (next, found)
    };
    let before = content.events.get(number).cloned().unwrap_or_default();
    let (_, mut found) = change(&before);
    if is_whole {
        check_required(body, &mut found.mistakes);
    }
    found.mistakes.check()?;
    let edit = |known: &ApiRoom, at: u64| {
        let mut next = known.clone();
        let found = find(&mut next)?;
        if let Some(event) = next.events.get_mut(found) {
            let (changed, _) = change(event);
            *event = ApiEvent {
                modified_at: at,
                ..changed
            };
        }
        Ok(next)
    };
    let changed = change_room(call, room, "event edit", &prefix, edit).await?;
    let (event, _) = change(&before);
    shown(
        &changed,
        id,
        with_hidden(call, room, &event, found.messages),
    )
}

/// Returns an event with the values that it has of its room.
pub(super) fn details(room: &Room, id: &str) -> Answer {
    let content = room.content();
    let found = content.events.iter().find(|event| event.id == id);
    let event = found.ok_or_else(|| Refusal::not_found("Object"))?;
    let of_room = fields::written(fields::ROOM, &content.values, &content.sent);
    let mut written = written(event);
    if let Value::Object(written) = &mut written {
        for key in INHERITED {
            let value = written.get(key).filter(|value| !value.is_null());
            let value = value.or_else(|| of_room.get(key)).cloned();
            written.insert(key.to_owned(), value.unwrap_or_default());
        }
    }
    Ok(Reply::of(written))
}
