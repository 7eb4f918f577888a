//! Rooms of the file and of the API as one list, as both HTTP APIs show and change them.

use std::collections::BTreeMap;
use std::sync::Arc;

use anteroom_config::api_rooms::{ApiEvent, ApiRoom, ApiRoomEntry, ApiRooms, ApiRule};
use anteroom_config::overrides::{Actor, HiddenValue};
use anteroom_config::time_text::rfc3339_millis;
use anteroom_config::{
    Config, PageTemplate, RoomConfig, RoomEvent, RoomId, RoomOrigins, duration, words,
};
use anteroom_node::RoomHandle;
use aws_lc_rs::digest::{SHA256, digest};
use serde_json::{Map, Value, json};

use crate::api_rooms::{Edit, LiveApiRooms, RoomChangeError, RoomRefusal, Written};
use crate::api_state::Inner;

/// Bytes of an id: 32 hexadecimal digits.
const ID_BYTES: usize = 16;
/// Time within which an equal room is the one that was just made: clients repeat a POST whose
/// response was lost.
const REPEATED_WITHIN_MS: u64 = 60_000;

/// Room that a path names.
pub(crate) struct Room {
    /// Id on the wire.
    pub(crate) wire_id: String,
    pub(crate) id: RoomId,
    pub(crate) from: From,
    /// Configuration; `None` if it is not served.
    pub(crate) config: Option<RoomConfig>,
    /// Name of the site that serves it; of a room that is not served, the one that did.
    pub(crate) site: String,
}

/// Origin of a room.
pub(crate) enum From {
    File,
    Api(Box<ApiRoomEntry>),
}

impl Room {
    /// Returns the room as the API has it; one of the file as if it were made here.
    pub(crate) fn content(&self) -> ApiRoom {
        match (&self.from, &self.config) {
            (From::Api(entry), _) => entry.room.clone().unwrap_or_default(),
            (From::File, Some(config)) => of_file(config),
            (From::File, None) => ApiRoom::default(),
        }
    }

    /// Returns the room with the content that it has in a record.
    pub(crate) fn in_record(self, record: &ApiRooms, api_rooms: &LiveApiRooms) -> Self {
        let Some((entry, room)) = record.room(&self.id) else {
            return self;
        };
        let entry = ApiRoomEntry {
            room: Some(api_rooms.with_pages(room)),
            ..entry.clone()
        };
        Self {
            from: From::Api(Box::new(entry)),
            ..self
        }
    }

    pub(crate) fn tag(&self) -> Option<String> {
        match &self.from {
            From::Api(entry) => Some(entry.tag()),
            From::File => None,
        }
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
        events: events_of_file(config),
        rules: rules_of_file(config),
        ..ApiRoom::default()
    }
}

/// Returns the events of a room of the file.
fn events_of_file(config: &RoomConfig) -> Vec<ApiEvent> {
    let event = |event: &RoomEvent| {
        let values = &event.values;
        let template = match &values.template {
            Some(PageTemplate::Html(html)) => Some(html.as_str()),
            _ => None,
        };
        let limits = values.limits;
        let times = &event.times;
        let prequeue = (times.prequeue_at < times.starts_at).then_some(times.prequeue_at);
        let written = json!({
            "name": event.name.as_str(),
            "description": event.description,
            "suspended": event.is_suspended,
            "event_start_time": rfc3339_millis(times.starts_at),
            "event_end_time": times.ends_at.map(rfc3339_millis),
            "prequeue_start_time": prequeue.map(rfc3339_millis),
            "shuffle_at_event_start": event.is_shuffled,
            "new_users_per_minute": limits.map(|limits| limits.new_users_per_minute),
            "total_active_users": limits.map(|limits| limits.total_active_users),
            "session_duration": values.session_duration.map(duration::text),
            "disable_session_renewal": values.session_renewal.map(|renewal| !renewal),
            "queueing_method": values.queueing_method.map(words::queueing_method),
            "custom_page_html": template,
        });
        let written = match written {
            Value::Object(written) => written,
            _ => Map::new(),
        };
        ApiEvent {
            id: id_of("event", &format!("{}/{}", config.id, event.name)),
            values: written
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .collect(),
            ..ApiEvent::default()
        }
    };
    config.events.iter().map(event).collect()
}

/// Returns the rules of a room of the file.
fn rules_of_file(config: &RoomConfig) -> Vec<ApiRule> {
    let rules = config.bypass.iter().enumerate();
    let rules = rules.map(|(number, rule)| ApiRule {
        id: id_of("rule", &format!("{}/{number}", config.id)),
        version: 1,
        expression: rule.expression.clone(),
        enabled: true,
        ..ApiRule::default()
    });
    rules.collect()
}

/// Returns a sentence for each value of a room and its events that has no effect, because an
/// operator has set another one.
pub(crate) fn hidden_values(inner: &Inner, room: &Room) -> Vec<HiddenValue> {
    let (Some(handle), Some(config)) = (inner.node.room_of_id(&room.id), &room.config) else {
        return Vec::new();
    };
    let overrides = handle.overrides();
    let mut hidden = overrides.hidden_values(config, inner.node.clock().wall());
    // A room of the file is shown with what operators set.
    if matches!(room.from, From::Api(_)) {
        let keys = overrides.values.keys();
        hidden.extend(keys.map(|key| HiddenValue {
            event: String::new(),
            is_near: true,
            sentence: format!("{key}: {}", overrides.setting(key, config)),
        }));
    }
    hidden
}

/// Returns the rooms of a site, or of all: those of the file, then those of the API. With `only`,
/// the room with this id on the wire alone.
pub(crate) fn all(inner: &Inner, wanted: Option<&str>, only: Option<&str>) -> Vec<Room> {
    let is_wanted = |wire_id: &str| only.is_none_or(|only| only == wire_id);
    let api_rooms = &inner.api_rooms;
    let (file, record, placed) = (api_rooms.file(), api_rooms.record(), api_rooms.placed());
    let configs = placed.rooms.iter().map(|room| (&room.id, room));
    let configs: BTreeMap<&RoomId, &RoomConfig> = configs.collect();
    let is_here = |site: &str| wanted.is_none_or(|wanted| wanted == site);
    let of_file = file.rooms.iter().filter_map(|room| match &room.origins {
        RoomOrigins::Site(site) => is_here(site.as_str()).then(|| (room, site.to_string())),
        RoomOrigins::Own(_) => wanted.is_none().then(|| (room, String::new())),
    });
    let of_file = of_file.map(|(config, site)| (config, id_of("room", config.id.as_str()), site));
    let of_file = of_file.filter(|(_, wire_id, _)| is_wanted(wire_id));
    let of_file = of_file.map(|(config, wire_id, site)| {
        // Overrides are what Cloudflare's API can write in a room of the file.
        let handle = inner.node.room_of_id(&config.id);
        let overridden = handle.map(|handle| handle.overrides().applied_to(config).config);
        Room {
            wire_id,
            id: config.id.clone(),
            from: From::File,
            config: Some(overridden.unwrap_or_else(|| config.clone())),
            site,
        }
    });
    let present = record.present();
    let present = present.into_iter().filter(|(id, ..)| is_wanted(id));
    let of_api = present.filter_map(|(id, entry, room)| {
        let id = RoomId::new(id)?;
        let config = configs.get(&id).map(|config| (*config).clone());
        let site = zone_site(&file, config.as_ref(), room);
        is_here(&site).then(|| Room {
            wire_id: id.to_string(),
            config,
            from: From::Api(Box::new(ApiRoomEntry {
                room: Some(api_rooms.with_pages(room)),
                ..entry.clone()
            })),
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

/// Returns the room that the same token has made a moment ago from the same body.
pub(crate) fn repeated(record: &ApiRooms, room: &ApiRoom, at: u64) -> Option<RoomId> {
    let wanted = without_times(room);
    let is_same = |(_, entry, known): &(&str, &ApiRoomEntry, &ApiRoom)| {
        let is_new = entry.rev == 1 && at.saturating_sub(entry.at) < REPEATED_WITHIN_MS;
        is_new && without_times(known) == wanted
    };
    let (id, ..) = record.present().into_iter().find(is_same)?;
    RoomId::new(id)
}

/// Returns a room without what differs if it is made twice from the same body.
fn without_times(room: &ApiRoom) -> ApiRoom {
    let mut room = room.clone();
    room.created_at = 0;
    for event in &mut room.events {
        event.id.clear();
        event.created_at = 0;
        event.modified_at = 0;
    }
    for rule in &mut room.rules {
        rule.id.clear();
        rule.modified_at = 0;
    }
    room
}

/// Change of a room of the API.
pub(crate) struct RoomEdit<'a> {
    /// Operator.
    pub(crate) who: &'a Actor,
    /// Words for the audit log.
    pub(crate) what: &'a str,
    /// Tag that the room has to have, if the client sent one.
    pub(crate) expected: Option<&'a str>,
}

impl RoomEdit<'_> {
    /// Changes a room of the API. `edit` gets the room and the time of the change; `None` deletes
    /// the room.
    ///
    /// # Errors
    ///
    /// As [`crate::api_rooms::LiveApiRooms::change`].
    pub(crate) async fn apply(
        &self,
        inner: &Inner,
        room: &Room,
        edit: impl Fn(&ApiRoom, u64) -> Result<Option<ApiRoom>, RoomRefusal>,
    ) -> Result<Written, RoomChangeError> {
        let edit = |record: &ApiRooms, at: u64| {
            let (entry, known) = record.room(&room.id).ok_or(RoomRefusal::NotFound)?;
            let tag = entry.tag();
            if self.expected.is_some_and(|expected| expected != tag) {
                return Err(RoomRefusal::Changed { tag });
            }
            let next = edit(known, at)?.map(|next| {
                Box::new(ApiRoom {
                    site: room.site.clone(),
                    ..next
                })
            });
            Ok(Edit::Write(room.id.clone(), next))
        };
        inner.api_rooms.change(self.who, self.what, edit).await
    }
}

/// Returns the running room; `None` if it is not served.
pub(crate) fn handle(inner: &Inner, room: &Room) -> Option<Arc<RoomHandle>> {
    inner.node.room_of_id(&room.id)
}

/// Returns why a room may not be changed over the API; `None` if it may.
pub(crate) fn reason_against_change(room: &Room) -> Option<String> {
    match &room.from {
        From::Api(_) => None,
        From::File => {
            let name = room.config.as_ref().map(|config| config.name.to_string());
            let name = name.unwrap_or_default();
            Some(format!(
                "the room {name} is in the configuration file: change it there and send SIGHUP"
            ))
        }
    }
}

/// Returns why a room may not be deleted over the API; `None` if it may.
pub(crate) async fn reason_against_deletion(inner: &Inner, room: &Room) -> Option<String> {
    if let Some(reason) = reason_against_change(room) {
        return Some(reason);
    }
    let handle = handle(inner, room)?;
    let waiting = handle.state().await.queued_users;
    let is_suspended = handle.config().suspended;
    (waiting > 0 && !is_suspended).then(|| format!("{waiting} people wait: suspend the room first"))
}

/// Returns the id of something that has a name in the file.
pub(crate) fn id_of(kind: &str, name: &str) -> String {
    let digest = digest(&SHA256, format!("{kind}/{name}").as_bytes());
    hex(digest.as_ref().get(..ID_BYTES).unwrap_or_default())
}

/// Returns a random id; `None` if the system has no random bytes.
pub(crate) fn random_id() -> Option<String> {
    let mut bytes = [0; ID_BYTES];
    aws_lc_rs::rand::fill(&mut bytes).ok()?;
    Some(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
