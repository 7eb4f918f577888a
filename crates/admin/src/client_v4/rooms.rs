//! Waiting rooms on the wire.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::RoomId;
use anteroom_config::api_rooms::{ApiRoom, ApiRooms};
use anteroom_config::overrides::{OperatorCommand, Until};
use anteroom_config::time_text::rfc3339_millis;
use anteroom_node::{RoomCommandError, RoomHandle};
use anteroom_room::event::EventPhase;
use anteroom_room::time::Timestamp;
use axum::http::Method;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::envelope::{self, Refusal, Reply};
use super::fields::{self, Found, Values};
use super::zones::Zone;
use super::{Answer, Call, events};
use crate::api_error::ApiError;
use crate::api_rooms::{Edit, RoomRefusal};
use crate::known_rooms::{self, From, Room, RoomEdit, repeated};

/// Key that two fields set.
const SESSION_DURATION: &str = "session_duration";
/// Longest wait for an override of a room of the file.
const OVERRIDE_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns a room at `now`, by the wall clock.
fn written(shown: &Room, now: Timestamp) -> Value {
    let room = shown.content();
    let mut written = fields::written(fields::ROOM, &room.values, &room.sent);
    let modified_at = match &shown.from {
        From::Api(entry) => Some(entry.at),
        From::File => None,
    };
    let created_at = modified_at.map(|_| room.created_at);
    let time = |at: Option<u64>| at.map(|at| rfc3339_millis(Timestamp(at)));
    let next = shown.config.as_ref();
    let next = next.and_then(|config| events::next(config, now));
    let prequeue =
        next.and_then(|times| (times.prequeue_at < times.starts_at).then_some(times.prequeue_at));
    let own = json!({
        "id": shown.wire_id,
        "created_on": time(created_at),
        "modified_on": time(modified_at),
        "description": room.description,
        "next_event_start_time": next.map(|times| rfc3339_millis(times.starts_at)),
        "next_event_prequeue_start_time": prequeue.map(rfc3339_millis),
    });
    if let Value::Object(own) = own {
        written.extend(own);
    }
    Value::Object(written)
}

/// Finds the room that a path names.
pub(super) fn find(call: &Call<'_>, zone: &Zone, wire_id: &str) -> Result<Room, Refusal> {
    let found = known_rooms::all(call.inner, Some(&zone.name), Some(wire_id)).pop();
    found.ok_or_else(|| Refusal::not_found("Object"))
}

pub(super) fn list(call: &Call<'_>, zone: Option<&Zone>) -> Answer {
    let (rooms, now) = (
        known_rooms::all(call.inner, zone.map(|zone| &*zone.name), None),
        call.now(),
    );
    call.page(rooms.iter().map(|room| written(room, now)).collect())
}

pub(super) async fn create(call: &Call<'_>, zone: &Zone) -> Answer {
    let mut room = ApiRoom {
        created_by: call.who.token.clone(),
        site: zone.name.clone(),
        ..ApiRoom::default()
    };
    let found = read(call.object()?, &mut room);
    found.mistakes.check()?;
    let id = new_id()?;
    let id = RoomId::new(&id).ok_or_else(|| Refusal::not_found("Id"))?;
    let as_kept = call.inner.api_rooms.without_pages(&room);
    let edit = |record: &ApiRooms, at: u64| {
        if let Some(same) = repeated(record, &as_kept, at) {
            return Ok(Edit::Keep(same));
        }
        let room = ApiRoom {
            created_at: at,
            ..room.clone()
        };
        Ok(Edit::Write(id.clone(), Some(Box::new(room))))
    };
    let written = call.inner.api_rooms.change(&call.who, "create", edit).await;
    let written = written.map_err(|error| envelope::of_change(error, ""))?;
    call.note_applied(written.applied);
    shown(call, zone, &written.id, found.messages)
}

fn shown(call: &Call<'_>, zone: &Zone, id: &RoomId, mut messages: Vec<String>) -> Answer {
    let room = find(call, zone, id.as_str())?;
    let hidden = known_rooms::hidden_values(call.inner, &room).into_iter();
    messages.extend(hidden.map(|value| value.sentence));
    Ok(Reply {
        result: written(&room, call.now()),
        tag: room.tag(),
        messages,
        ..Reply::default()
    })
}

/// Returns an id for a new object.
pub(super) fn new_id() -> Result<String, Refusal> {
    let no_id = || Refusal::body("the system has no random bytes".to_owned());
    known_rooms::random_id().ok_or_else(no_id)
}

/// Sets the fields of a body in a room.
fn read(body: &Map<String, Value>, room: &mut ApiRoom) -> Found {
    let mut body = body.clone();
    let mut mistakes = Vec::new();
    match body.remove("description") {
        None => {}
        Some(Value::Null) => room.description.clear(),
        Some(Value::String(text)) => room.description = text,
        Some(_) => mistakes.push("description"),
    }
    let mut values = Values {
        file: &mut room.values,
        sent: &mut room.sent,
    };
    let mut found = fields::read(fields::ROOM, fields::is_room_key, &body, &mut values);
    // Where nothing is sent, no command is enabled; in the file it would be one.
    room.values
        .entry("enabled_origin_commands")
        .or_insert_with(|| json!([]));
    for key in mistakes {
        found.mistakes.add(key, format!("{key} has to be a text"));
    }
    found
}

pub(super) async fn one(call: &Call<'_>, zone: &Zone, wire_id: &str) -> Answer {
    let room = find(call, zone, wire_id)?;
    if call.method == Method::PUT || call.method == Method::PATCH {
        return match room.from {
            From::File => override_file(call, zone, &room).await,
            From::Api(_) => edit(call, zone, &room).await,
        };
    }
    if call.method == Method::DELETE {
        return delete(call, &room).await;
    }
    call.only_get()?;
    Ok(Reply {
        result: written(&room, call.now()),
        tag: room.tag(),
        messages: remarks(call, &room.id),
        ..Reply::default()
    })
}

/// Returns what a reader of a room has to know about this node.
fn remarks(call: &Call<'_>, id: &RoomId) -> Vec<String> {
    let api_rooms = &call.inner.api_rooms;
    let mut remarks = Vec::new();
    if let Some(left_out) = api_rooms.left_out(id) {
        let problems: Vec<_> = left_out.problems.iter().map(ToString::to_string).collect();
        let why = if left_out.is_shadowed {
            "this room is not served (shadowed_by_file)"
        } else {
            "this room is not served"
        };
        remarks.push(format!("{why}: {}", problems.join("; ")));
    }
    if api_rooms.lacks_page(id) {
        let text =
            "this node has not read a custom page of this room yet, and shows the one before";
        remarks.push(text.to_owned());
    }
    remarks
}

/// Replaces a room, or changes the fields that were sent.
async fn edit(call: &Call<'_>, zone: &Zone, room: &Room) -> Answer {
    let body = call.object()?;
    let is_whole = call.method == Method::PUT;
    let change = |known: &ApiRoom| {
        let mut next = known.clone();
        if is_whole {
            next.values.clear();
            next.sent.clear();
            next.description.clear();
        }
        let found = read(body, &mut next);
        (next, found)
    };
    let (_, found) = change(&room.content());
    found.mistakes.check()?;
    let edit = |known: &ApiRoom, _: u64| Ok(change(known).0);
    change_room(call, room, "edit", "", edit).await?;
    shown(call, zone, &room.id, found.messages)
}

/// Changes a room of the API.
pub(super) async fn change_room(
    call: &Call<'_>,
    room: &Room,
    what: &str,
    prefix: &str,
    edit: impl Fn(&ApiRoom, u64) -> Result<ApiRoom, RoomRefusal>,
) -> Result<ApiRoom, Refusal> {
    only_of_api(room)?;
    let edit = |known: &ApiRoom, at: u64| edit(known, at).map(Some);
    let written = change_of(call, what).apply(call.inner, room, edit).await;
    let written = written.map_err(|error| envelope::of_change(error, prefix))?;
    call.note_applied(written.applied);
    let found = written.record.room(&room.id);
    let (_, room) = found.ok_or_else(|| Refusal::not_found("Object"))?;
    Ok(call.inner.api_rooms.with_pages(room))
}

fn change_of<'a>(call: &'a Call<'_>, what: &'a str) -> RoomEdit<'a> {
    RoomEdit {
        who: &call.who,
        what,
        expected: call.expected.as_deref(),
    }
}

/// Refuses a change of a room of the file.
pub(super) fn only_of_api(room: &Room) -> Result<(), Refusal> {
    known_rooms::reason_against_change(room)
        .map_or(Ok(()), |reason| Err(Refusal::forbidden(reason)))
}

/// Sets overrides of a room of the file.
async fn override_file(call: &Call<'_>, zone: &Zone, room: &Room) -> Answer {
    let (Some(handle), Some(config)) = (known_rooms::handle(call.inner, room), &room.config) else {
        return Err(Refusal::not_found("Object"));
    };
    if call.expected.is_some() {
        return Err(Refusal::precondition("a room of the file has no tag"));
    }
    let mut sent = ApiRoom::default();
    let found = read(call.object()?, &mut sent);
    found.mistakes.check()?;
    let present = room.content().values;
    let mut wanted = present.clone();
    let was_sent = |key: &str| call.body.get(key).is_some() || key == SESSION_DURATION;
    let typed = sent.values.into_iter().filter(|(key, _)| was_sent(key));
    wanted.extend(typed);
    // As clients see them: a client that sends back what it has read changes nothing.
    let none = Map::new();
    let before = fields::written(fields::ROOM, &present, &none);
    let after = fields::written(fields::ROOM, &wanted, &none);
    let changed = wanted
        .into_iter()
        .filter(|(key, _)| before.get(key) != after.get(key));
    let changed: BTreeMap<_, _> = changed.collect();
    let live = config.values();
    if let Some(key) = changed.keys().find(|key| !live.contains_key(key.as_str())) {
        return Err(Refusal::forbidden(format!(
            "{key}: the room {} is in the configuration file: change it there and send SIGHUP",
            config.name
        )));
    }
    let mut messages = found.messages;
    let ended = ended_overrides(call, &handle, &live);
    if !ended.is_empty() {
        messages.push(format!(
            "{}: as the configuration file says",
            ended.join(", ")
        ));
    }
    for key in ended {
        override_room(call, &handle, &OperatorCommand::Reset(Some(key))).await?;
    }
    if !changed.is_empty() {
        let keys: Vec<&str> = changed.keys().map(String::as_str).collect();
        messages.push(format!(
            "the room is in the configuration file: {} set as overrides, which win over the file",
            keys.join(", ")
        ));
        // A client that writes a room means it for good, even during an event.
        let set = Box::new(OperatorCommand::Set(changed));
        override_room(call, &handle, &OperatorCommand::Until(set, Until::Never)).await?;
    }
    Ok(Reply {
        result: written(&find(call, zone, &room.wire_id)?, call.now()),
        messages,
        ..Reply::default()
    })
}

/// Returns the overrides that a body ends: `null` means the default, which is the file's value.
fn ended_overrides(
    call: &Call<'_>,
    handle: &RoomHandle,
    live: &BTreeMap<&str, Value>,
) -> Vec<String> {
    let overrides = handle.overrides();
    let body = call.body.as_object().into_iter().flatten();
    let ended = body.filter(|(key, value)| {
        value.is_null() && live.contains_key(key.as_str()) && overrides.values.contains_key(*key)
    });
    ended.map(|(key, _)| key.clone()).collect()
}

/// Executes a command on a room of the file.
async fn override_room(
    call: &Call<'_>,
    handle: &Arc<RoomHandle>,
    command: &OperatorCommand,
) -> Result<(), Refusal> {
    let executing = handle.execute(command, &call.who);
    match timeout(OVERRIDE_TIMEOUT, executing).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(RoomCommandError::Refused(problems))) => {
            Err(Refusal::invalid(envelope::mistakes(problems.0, "")))
        }
        Ok(Err(_)) | Err(_) => Err(ApiError::StoreUnavailable.into()),
    }
}

async fn delete(call: &Call<'_>, room: &Room) -> Answer {
    if let Some(reason) = known_rooms::reason_against_deletion(call.inner, room).await {
        return Err(Refusal::forbidden(reason));
    }
    let change = change_of(call, "delete");
    let deleted = change.apply(call.inner, room, |_, _| Ok(None)).await;
    let written = deleted.map_err(|error| envelope::of_change(error, ""))?;
    call.note_applied(written.applied);
    Ok(Reply::of(json!({ "id": room.wire_id })))
}

/// Returns the present state of a room.
pub(super) async fn status(call: &Call<'_>, room: &Room) -> Answer {
    let Some(handle) = known_rooms::handle(call.inner, room) else {
        return Err(Refusal::not_found("A node that serves the room was"));
    };
    let state = handle.state().await;
    let event = state.event.as_ref();
    let is_prequeue = event.is_some_and(|event| event.phase == EventPhase::Prequeue);
    let status = if state.suspended {
        "suspended"
    } else if is_prequeue {
        "event_prequeueing"
    } else if state.queued_users > 0 || state.rules.queue_all {
        "queueing"
    } else {
        "not_queueing"
    };
    let event_id = event.and_then(|event| events::id_of_name(room, &event.name));
    let longest = handle.longest_wait().map(|wait| wait.0.div_ceil(60_000));
    let as_of = handle.wall_now().0.saturating_sub(state.age.0);
    Ok(Reply::of(json!({
        "status": status,
        "event_id": event_id.unwrap_or_default(),
        "estimated_queued_users": state.queued_users,
        "estimated_total_active_users": state.active_users,
        "max_estimated_time_minutes": longest.unwrap_or(0),
        "as_of": rfc3339_millis(Timestamp(as_of)),
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_command_of_the_origin_is_enabled_unless_it_is_sent() {
        let commands = |body: Value| {
            let mut room = ApiRoom::default();
            read(body.as_object().expect("an object"), &mut room);
            room.values["enabled_origin_commands"].clone()
        };
        assert_eq!(commands(json!({})), json!([]));
        assert_eq!(
            commands(json!({ "enabled_origin_commands": null })),
            json!([])
        );
        let sent = json!({ "enabled_origin_commands": ["revoke"] });
        assert_eq!(commands(sent), json!(["revoke"]));
    }
}
