//! Waiting rooms on the wire.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::api_rooms::{ApiRoom, ApiRoomEntry, ApiRooms};
use anteroom_config::overrides::OperatorCommand;
use anteroom_config::time_text::rfc3339_millis;
use anteroom_config::words;
use anteroom_config::{Config, RoomConfig, RoomId, RoomOrigins};
use anteroom_node::{RoomCommandError, RoomHandle};
use anteroom_room::event::EventPhase;
use anteroom_room::time::Timestamp;
use axum::http::Method;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::envelope::{self, Refusal, Reply};
use super::fields::{self, Found, Values};
use super::zones::{Zone, id_of, random_id};
use super::{Answer, Call, events, rules};
use crate::api_error::ApiError;
use crate::api_rooms::{Edit, RoomRefusal};

/// Time within which an equal room is the one that was just made: clients repeat a POST whose
/// response was lost.
const REPEATED_WITHIN_MS: u64 = 60_000;
/// Key that two fields set.
const SESSION_DURATION: &str = "session_duration";
/// Longest wait for an override of a room of the file.
const OVERRIDE_TIMEOUT: Duration = Duration::from_secs(5);

/// Room that a path names.
pub(super) struct Room {
    /// Id on the wire.
    pub(super) wire_id: String,
    pub(super) id: RoomId,
    pub(super) from: From,
    /// Configuration; `None` if it is not served.
    pub(super) config: Option<RoomConfig>,
    /// Site of its zone.
    site: String,
}

/// Origin of a room.
pub(super) enum From {
    File,
    Api(Box<ApiRoomEntry>),
}

impl Room {
    /// Returns the room as the API has it; one of the file as if it were made here.
    pub(super) fn content(&self) -> ApiRoom {
        match (&self.from, &self.config) {
            (From::Api(entry), _) => entry.room.clone().unwrap_or_default(),
            (From::File, Some(config)) => of_file(config),
            (From::File, None) => ApiRoom::default(),
        }
    }

    fn tag(&self) -> Option<String> {
        match &self.from {
            From::Api(entry) => Some(entry.tag()),
            From::File => None,
        }
    }

    /// Returns the room at `now`, by the wall clock.
    fn written(&self, now: Timestamp) -> Value {
        let room = self.content();
        let mut written = fields::written(fields::ROOM, &room.values, &room.sent);
        let modified_at = match &self.from {
            From::Api(entry) => Some(entry.at),
            From::File => None,
        };
        let created_at = modified_at.map(|_| room.created_at);
        let time = |at: Option<u64>| at.map(|at| rfc3339_millis(Timestamp(at)));
        let next = self.config.as_ref();
        let next = next.and_then(|config| events::next(config, now));
        let prequeue = next
            .and_then(|times| (times.prequeue_at < times.starts_at).then_some(times.prequeue_at));
        let own = json!({
            "id": self.wire_id,
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
}

/// Returns a room of the file as if it were made over the API.
fn of_file(config: &RoomConfig) -> ApiRoom {
    let mut values: Map<String, Value> = Map::new();
    for (key, value) in config.values() {
        if !value.is_null() {
            values.insert(key.to_owned(), value);
        }
    }
    values.insert("name".to_owned(), config.name.as_str().into());
    let route =
        |route: &anteroom_config::Route| json!({ "host": route.host.name(), "path": route.path });
    let mut routes = config.routes.iter();
    if let Some(own) = routes.next() {
        values.insert("host".to_owned(), own.host.name().into());
        values.insert("path".to_owned(), own.path.as_str().into());
    }
    let routes: Vec<Value> = routes.map(route).collect();
    values.insert("additional_routes".to_owned(), routes.into());
    if let Some(suffix) = &config.cookie.suffix {
        values.insert("cookie_suffix".to_owned(), suffix.as_str().into());
    }
    let attributes = json!({
        "samesite": words::same_site(config.cookie.same_site),
        "secure": words::secure(config.cookie.secure),
    });
    values.insert("cookie_attributes".to_owned(), attributes);
    let commands: &[&str] = if config.origin_commands.revoke {
        &["revoke"]
    } else {
        &[]
    };
    values.insert("enabled_origin_commands".to_owned(), json!(commands));
    ApiRoom {
        values,
        events: events::of_file(config),
        rules: rules::of_file(config),
        ..ApiRoom::default()
    }
}

/// Returns the rooms of a zone, or of all: those of the file, then those of the API.
fn rooms(call: &Call<'_>, zone: Option<&Zone>) -> Vec<Room> {
    let api_rooms = &call.inner.api_rooms;
    let (file, record, placed) = (api_rooms.file(), api_rooms.record(), api_rooms.placed());
    let configs = placed.rooms.iter().map(|room| (&room.id, room));
    let configs: BTreeMap<&RoomId, &RoomConfig> = configs.collect();
    let is_here = |site: &str| zone.is_none_or(|zone| zone.name == site);
    let of_file = file.rooms.iter().filter_map(|room| match &room.origins {
        RoomOrigins::Site(site) => is_here(site.as_str()).then(|| (room, site.to_string())),
        RoomOrigins::Own(_) => zone.is_none().then(|| (room, String::new())),
    });
    let of_file = of_file.map(|(config, site)| {
        // Overrides are what this API can write in a room of the file.
        let handle = call.inner.node.room_of_id(&config.id);
        let overridden = handle.map(|handle| handle.overrides().applied_to(config).config);
        Room {
            wire_id: id_of("room", config.id.as_str()),
            id: config.id.clone(),
            from: From::File,
            config: Some(overridden.unwrap_or_else(|| config.clone())),
            site,
        }
    });
    let present = record.present();
    let of_api = present.into_iter().filter_map(|(id, entry, room)| {
        let id = RoomId::new(id)?;
        let config = configs.get(&id).map(|config| (*config).clone());
        let site = zone_site(&file, config.as_ref(), room);
        is_here(&site).then(|| Room {
            wire_id: id.to_string(),
            config,
            from: From::Api(Box::new(entry.clone())),
            id,
            site,
        })
    });
    of_file.chain(of_api).collect()
}

/// Returns the site of the zone of a room: the one that serves it, or for a room that is not served
/// the one that did. A room whose site has gone is in the first zone, so that it can be deleted.
fn zone_site(file: &Config, config: Option<&RoomConfig>, room: &ApiRoom) -> String {
    if let Some(RoomOrigins::Site(site)) = config.map(|config| &config.origins) {
        return site.to_string();
    }
    let mut sites = file.sites.iter().map(|site| site.name.as_str());
    let first = sites.next().unwrap_or_default();
    let is_there = first == room.site || sites.any(|site| site == room.site);
    if is_there {
        room.site.clone()
    } else {
        first.to_owned()
    }
}

/// Finds the room that a path names.
pub(super) fn find(call: &Call<'_>, zone: &Zone, wire_id: &str) -> Result<Room, Refusal> {
    let mut rooms = rooms(call, Some(zone)).into_iter();
    let found = rooms.find(|room| room.wire_id == wire_id);
    found.ok_or_else(|| Refusal::not_found("Object"))
}

pub(super) fn list(call: &Call<'_>, zone: Option<&Zone>) -> Answer {
    let (rooms, now) = (rooms(call, zone), call.now());
    call.page(rooms.iter().map(|room| room.written(now)).collect())
}

pub(super) async fn create(call: &Call<'_>, zone: &Zone) -> Answer {
    let mut room = ApiRoom {
        created_by: call.who.token.clone(),
        site: zone.name.clone(),
        ..ApiRoom::default()
    };
    let found = read(call.object()?, &mut room);
    found.mistakes.check()?;
    let id = random_id()?;
    let id = RoomId::new(&id).ok_or_else(|| Refusal::not_found("Id"))?;
    let edit = |record: &ApiRooms, at: u64| {
        if let Some(same) = repeated(record, &room, at) {
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
    shown(call, zone, &written.id, found.messages)
}

/// Returns the room that the same token has made a moment ago from the same body.
fn repeated(record: &ApiRooms, room: &ApiRoom, at: u64) -> Option<RoomId> {
    let is_same = |(_, entry, known): &(&str, &ApiRoomEntry, &ApiRoom)| {
        let same = ApiRoom {
            created_at: known.created_at,
            ..room.clone()
        };
        entry.rev == 1 && at.saturating_sub(entry.at) < REPEATED_WITHIN_MS && **known == same
    };
    let (id, ..) = record.present().into_iter().find(is_same)?;
    RoomId::new(id)
}

fn shown(call: &Call<'_>, zone: &Zone, id: &RoomId, messages: Vec<String>) -> Answer {
    let room = find(call, zone, id.as_str())?;
    Ok(Reply {
        result: room.written(call.now()),
        tag: room.tag(),
        messages,
        ..Reply::default()
    })
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
    let mut messages = Vec::new();
    if let Some(left_out) = call.inner.api_rooms.left_out(&room.id) {
        let problems: Vec<_> = left_out.problems.iter().map(ToString::to_string).collect();
        messages.push(format!("this room is not served: {}", problems.join("; ")));
    }
    Ok(Reply {
        result: room.written(call.now()),
        tag: room.tag(),
        messages,
        ..Reply::default()
    })
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
    let edit = |record: &ApiRooms, at: u64| {
        let (entry, known) = record.room(&room.id).ok_or(RoomRefusal::NotFound)?;
        check_tag(call, entry)?;
        let next = ApiRoom {
            site: room.site.clone(),
            ..edit(known, at)?
        };
        Ok(Edit::Write(room.id.clone(), Some(Box::new(next))))
    };
    let written = call.inner.api_rooms.change(&call.who, what, edit).await;
    let written = written.map_err(|error| envelope::of_change(error, prefix))?;
    let found = written.record.room(&room.id);
    let (_, room) = found.ok_or_else(|| Refusal::not_found("Object"))?;
    Ok(room.clone())
}

fn check_tag(call: &Call<'_>, entry: &ApiRoomEntry) -> Result<(), RoomRefusal> {
    let tag = entry.tag();
    match &call.expected {
        Some(expected) if *expected != tag => Err(RoomRefusal::Changed { tag }),
        _ => Ok(()),
    }
}

/// Refuses a change of a room of the file.
pub(super) fn only_of_api(room: &Room) -> Result<(), Refusal> {
    match &room.from {
        From::Api(_) => Ok(()),
        From::File => {
            let name = room.config.as_ref().map(|config| config.name.to_string());
            let name = name.unwrap_or_default();
            Err(Refusal::forbidden(format!(
                "the room {name} is in the configuration file: change it there and send SIGHUP"
            )))
        }
    }
}

/// Sets overrides of a room of the file.
async fn override_file(call: &Call<'_>, zone: &Zone, room: &Room) -> Answer {
    let (Some(handle), Some(config)) = (handle(call, room), &room.config) else {
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
        override_room(call, &handle, &OperatorCommand::Set(changed)).await?;
    }
    Ok(Reply {
        result: find(call, zone, &room.wire_id)?.written(call.now()),
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
    only_of_api(room)?;
    if let Some(handle) = handle(call, room) {
        let waiting = handle.state().await.queued_users;
        let is_suspended = handle.config().suspended;
        if waiting > 0 && !is_suspended {
            return Err(Refusal::forbidden(format!(
                "{waiting} people wait: suspend the room first"
            )));
        }
    }
    let edit = |record: &ApiRooms, _: u64| {
        let (entry, _) = record.room(&room.id).ok_or(RoomRefusal::NotFound)?;
        check_tag(call, entry)?;
        Ok(Edit::Write(room.id.clone(), None))
    };
    let written = call.inner.api_rooms.change(&call.who, "delete", edit).await;
    written.map_err(|error| envelope::of_change(error, ""))?;
    Ok(Reply::of(json!({ "id": room.wire_id })))
}

/// Returns the running room; `None` if it is not served.
fn handle(call: &Call<'_>, room: &Room) -> Option<Arc<RoomHandle>> {
    call.inner.node.room_of_id(&room.id)
}

/// Returns the present state of a room.
pub(super) async fn status(call: &Call<'_>, room: &Room) -> Answer {
    let Some(handle) = handle(call, room) else {
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
