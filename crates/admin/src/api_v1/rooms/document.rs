//! Rooms as `/api/v1` shows and takes them.

use anteroom_config::api_rooms::{ApiEvent, ApiRoom, ApiRule};
use anteroom_config::time_text::rfc3339_millis;
use anteroom_room::time::Timestamp;
use axum::Json;
use axum::http::header::{ETAG, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::api_rooms::Applied;
use crate::api_state::Inner;
use crate::known_rooms::{From, Room, hidden_values, id_of};

/// Key of a name in `[[room]]` and `[[room.event]]`.
const NAME: &str = "name";

/// Room of the file or of the API.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RoomDocument {
    /// Id: it stays when the room gets another name.
    id: String,
    /// `file` or `api`.
    pub(crate) from: String,
    /// Tag of this state, for `If-Match`; `null` for a room of the file.
    tag: Option<String>,
    /// Time of its creation; `null` for a room of the file.
    created_at: Option<String>,
    /// Name of the token that created it; `null` for a room of the file.
    created_by: Option<String>,
    /// Time of the newest change; `null` for a room of the file.
    modified_at: Option<String>,
    /// Site that serves the room; `null` for a room with origins of its own.
    pub(crate) site: Option<String>,
    /// Description, in an operator's words.
    description: String,
    /// Keys of `[[room]]`.
    pub(crate) values: Map<String, Value>,
    /// Events, with the keys of `[[room.event]]`.
    pub(crate) events: Vec<Map<String, Value>>,
    /// Bypass rules, in order.
    rules: Vec<RuleBody>,
    /// Reasons why the room is not served at this node; empty if it is.
    pub(crate) problems: Vec<String>,
    /// Values that have no effect, because an operator set others: a sentence for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) messages: Vec<String>,
    /// Nodes that serve a change, after a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) applied: Option<Applied>,
}

/// All rooms.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct RoomDocuments {
    /// Rooms of the file in its order, then those of the API, the oldest first.
    pub(crate) rooms: Vec<RoomDocument>,
}

/// Bypass rule.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct RuleBody {
    /// Condition, in CEL.
    expression: String,
    /// Description, in an operator's words.
    #[serde(default)]
    description: String,
    /// Whether the rule is in force.
    #[serde(default = "enabled")]
    enabled: bool,
}

const fn enabled() -> bool {
    true
}

/// Room as an operator writes it. What is absent stays as it is, and is the default in a new room.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct RoomBody {
    /// Site that serves the room; without it the one that serves its host.
    site: Option<String>,
    /// Description, in an operator's words.
    description: Option<String>,
    /// Keys of `[[room]]`; `null` removes a key.
    #[serde(default)]
    values: Map<String, Value>,
    /// All events, with the keys of `[[room.event]]`.
    pub(super) events: Option<Vec<Map<String, Value>>>,
    /// All bypass rules, in order.
    pub(super) rules: Option<Vec<RuleBody>>,
}

/// Id of what was deleted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Deleted {
    /// Id of the room.
    pub(super) id: String,
}

impl RoomDocument {
    /// Returns the name of the room.
    pub(crate) fn name(&self) -> String {
        name_of(&self.values).unwrap_or_default().to_owned()
    }

    /// Returns the room after a change that nodes serve.
    pub(super) fn after(self, applied: Option<Applied>) -> Self {
        Self { applied, ..self }
    }

    pub(super) fn of(inner: &Inner, room: &Room) -> Self {
        let content = room.content();
        let (entry, is_of_api) = match &room.from {
            From::Api(entry) => (Some(entry), true),
            From::File => (None, false),
        };
        let time = |at: u64| rfc3339_millis(Timestamp(at));
        let rule = |rule: ApiRule| RuleBody {
            expression: rule.expression,
            description: rule.description,
            enabled: rule.enabled,
        };
        let hidden = hidden_values(inner, room).into_iter();
        let left_out = inner.api_rooms.left_out(&room.id);
        let problems = left_out
            .map(|left_out| left_out.problems)
            .unwrap_or_default();
        Self {
            id: room.id.to_string(),
            from: if is_of_api { "api" } else { "file" }.to_owned(),
            tag: room.tag(),
            created_at: is_of_api.then(|| time(content.created_at)),
            created_by: is_of_api.then_some(content.created_by),
            modified_at: entry.map(|entry| time(entry.at)),
            site: (!room.site.is_empty()).then(|| room.site.clone()),
            description: content.description,
            values: content.values,
            events: content
                .events
                .into_iter()
                .map(|event| event.values)
                .collect(),
            rules: content.rules.into_iter().map(rule).collect(),
            problems: problems.iter().map(ToString::to_string).collect(),
            messages: hidden.map(|value| value.sentence).collect(),
            applied: None,
        }
    }
}

impl IntoResponse for RoomDocument {
    fn into_response(self) -> Response {
        let tag = self.tag.as_ref().map(|tag| format!("\"{tag}\""));
        let mut response = Json(self).into_response();
        if let Some(tag) = tag.and_then(|tag| HeaderValue::try_from(tag).ok()) {
            response.headers_mut().insert(ETAG, tag);
        }
        response
    }
}

impl RoomBody {
    /// Returns a room with what this body says.
    pub(super) fn written_to(&self, room: &ApiRoom, at: u64) -> ApiRoom {
        let mut next = room.clone();
        if let Some(site) = &self.site {
            next.site.clone_from(site);
        }
        if let Some(description) = &self.description {
            next.description.clone_from(description);
        }
        merge(&mut next.values, &self.values);
        if let Some(events) = &self.events {
            next.events = events
                .iter()
                .map(|event| written_event(room, event, at))
                .collect();
        }
        if let Some(rules) = &self.rules {
            next.rules = rules
                .iter()
                .enumerate()
                .map(|(index, rule)| written_rule(room, (index, rule), at))
                .collect();
        }
        next
    }
}

/// Sets keys; `null` removes one.
pub(super) fn merge(values: &mut Map<String, Value>, changed: &Map<String, Value>) {
    for (key, value) in changed {
        if value.is_null() {
            values.remove(key);
        } else {
            values.insert(key.clone(), value.clone());
        }
    }
}

pub(super) fn name_of(values: &Map<String, Value>) -> Option<&str> {
    values.get(NAME)?.as_str()
}

/// Returns an event with these values: the known one of its name, or a new one.
pub(super) fn written_event(room: &ApiRoom, values: &Map<String, Value>, at: u64) -> ApiEvent {
    let mut values = values.clone();
    values.retain(|_, value| !value.is_null());
    let same_name = |event: &&ApiEvent| name_of(&event.values) == name_of(&values);
    match room.events.iter().find(same_name) {
        Some(known) if known.values == values => known.clone(),
        Some(known) => ApiEvent {
            values,
            modified_at: at,
            ..known.clone()
        },
        None => ApiEvent {
            // No other event of this name is made at this time.
            id: id_of(
                "event",
                &format!("{at} {}", name_of(&values).unwrap_or_default()),
            ),
            created_at: at,
            modified_at: at,
            values,
            ..ApiEvent::default()
        },
    }
}

/// Returns a rule, which is at `index`: the known one with this expression, or a new one.
fn written_rule(room: &ApiRoom, (index, rule): (usize, &RuleBody), at: u64) -> ApiRule {
    let known = room
        .rules
        .iter()
        .find(|known| known.expression == rule.expression);
    let is_same =
        |known: &ApiRule| known.description == rule.description && known.enabled == rule.enabled;
    if let Some(known) = known.filter(|known| is_same(known)) {
        return known.clone();
    }
    let base = known.cloned().unwrap_or_else(|| ApiRule {
        id: id_of("rule", &format!("{at} {index} {}", rule.expression)),
        ..ApiRule::default()
    });
    ApiRule {
        version: base.version + 1,
        modified_at: at,
        expression: rule.expression.clone(),
        description: rule.description.clone(),
        enabled: rule.enabled,
        ..base
    }
}

#[cfg(test)]
mod tests {
    use anteroom_config::api_rooms::{ApiRoomEntry, ApiRooms};
    use serde_json::json;

    use super::*;
    use crate::known_rooms::repeated;

    fn made(body: &Value, at: u64) -> ApiRoom {
        let body: RoomBody = serde_json::from_value(body.clone()).unwrap();
        body.written_to(&ApiRoom::default(), at)
    }

    #[test]
    fn a_room_that_is_made_twice_from_one_body_is_one_room() {
        let body = json!({
            "values": { "name": "a" },
            "events": [{ "name": "sale" }, { "name": "other" }],
            "rules": [{ "expression": "true" }, { "expression": "true" }],
        });
        let first = made(&body, 1_000);
        let ids: Vec<&str> = first
            .events
            .iter()
            .map(|event| &*event.id)
            .chain(first.rules.iter().map(|rule| &*rule.id))
            .collect();
        assert!(ids.iter().all(|id| id.len() == 32), "{ids:?}");
        assert!(
            ids.iter().enumerate().all(|(i, id)| !ids[..i].contains(id)),
            "{ids:?}"
        );
        let entry = ApiRoomEntry {
            rev: 1,
            at: 1_000,
            room: Some(first),
            others: Map::default(),
        };
        let record = ApiRooms {
            rooms: [("0123456789abcdef0123456789abcdef".to_owned(), entry)].into(),
            ..ApiRooms::default()
        };
        let found = |body: &Value, at| repeated(&record, &made(body, at), at).is_some();
        assert!(found(&body, 60_999));
        assert!(!found(&body, 61_000));
        let mut other = body;
        other["rules"][0]["enabled"] = json!(false);
        assert!(!found(&other, 2_000));
    }
}
