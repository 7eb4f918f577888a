//! Values in effect in a room, and where they come from. The body of `GET
//! /api/v1/rooms/{name}/settings`.

use std::collections::BTreeMap;

use anteroom_room::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{End, PendingStop, PendingStops, RoomOverrides, SetBy};
use crate::time_text::rfc3339_millis;
use crate::{Effective, RoomConfig};

/// Origin of a value that the file did not set.
const OPERATOR: &str = "operator";
const EVENT: &str = "event";
const FILE: &str = "file";

/// Values in effect in a room.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoomOverridesView {
    /// Name of the room.
    pub room: String,
    /// Number of changes that operators made to the room.
    pub version: u64,
    /// The pause; `null` = there is none.
    pub paused: Option<PauseView>,
    /// Message on the page; `null` = none from an operator.
    pub message: Option<String>,
    /// The values of all keys that can be changed while the room runs.
    pub values: BTreeMap<String, ValueView>,
    /// Operators who set each override, and its end: by key, `message` or `pause`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, SetView>,
    /// Values of the next event that have no effect, because an operator set others that do not end
    /// before it: a sentence for each, from an hour before the event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Values that an operator set but that no longer fit the file: they have no effect.
    pub ignored: Vec<String>,
    /// Stops that only the responding node applies, until its store responds.
    #[serde(
        default,
        rename = "heldCommands",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub held: Vec<PendingStopView>,
    /// Result of a command that is not stored; `null` = it is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Stop that one node applies until it can be stored.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingStopView {
    /// The stop as a command.
    pub command: String,
    /// Start: RFC 3339.
    pub since: String,
    /// Whether it is in the node's data folder, so that a restart keeps it.
    pub is_kept: bool,
}

impl PendingStopView {
    /// Returns the view of a node's pending stops.
    #[must_use]
    pub fn of(held: &PendingStops, is_kept: bool) -> Vec<Self> {
        let shown = |held: &PendingStop| Self {
            command: held.stop.command().to_text(),
            since: rfc3339_millis(Timestamp(held.at)),
            is_kept,
        };
        held.iter().map(shown).collect()
    }
}

/// A pause.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, utoipa::ToSchema)]
pub struct PauseView {
    /// Start: RFC 3339.
    pub since: String,
    /// Reason.
    pub message: Option<String>,
}

/// Operator who set an override, with its time and its end.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, utoipa::ToSchema)]
pub struct SetView {
    /// Operator.
    pub by: String,
    /// Time: RFC 3339.
    pub at: String,
    /// End: RFC 3339; `null` = it does not end by itself, or with an event without an end.
    pub until: Option<String>,
    /// Event with which it ends; `null` = none.
    pub event: Option<String>,
}

impl SetView {
    fn of(set: &SetBy, file: &RoomConfig) -> Self {
        let end = set.end.as_ref();
        Self {
            by: set.who.clone(),
            at: rfc3339_millis(Timestamp(set.at)),
            until: end.and_then(|end| end.at(file)).map(rfc3339_millis),
            event: end.and_then(|end| match end {
                End::Event(event) => Some(event.name().to_owned()),
                End::At(_) => None,
            }),
        }
    }
}

/// Value of a key.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, utoipa::ToSchema)]
pub struct ValueView {
    /// Value in effect.
    pub value: Value,
    /// `operator`, `event` or `file`.
    pub from: String,
    /// Value of this node's file.
    pub file: Value,
}

impl ValueView {
    /// Whether an operator set the value.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.from == OPERATOR
    }

    /// Whether it is the value of the active event.
    #[must_use]
    pub fn is_of_event(&self) -> bool {
        self.from == EVENT
    }
}

impl RoomOverridesView {
    /// Returns the keys that an operator set.
    pub fn overrides(&self) -> impl Iterator<Item = (&String, &ValueView)> {
        let values = self.values.iter();
        values.filter(|(_, value)| value.is_set())
    }

    /// Returns the view of `overrides` over `file` at `now`, by the wall clock. Both make
    /// `effective`.
    #[must_use]
    pub fn of(
        overrides: &RoomOverrides,
        file: &RoomConfig,
        effective: &Effective,
        now: Timestamp,
    ) -> Self {
        let overrides = &*overrides.in_effect(file, now);
        let hidden = overrides.hidden_values(file, now).into_iter();
        let near = hidden.filter(|value| value.is_near);
        let set = overrides.set_by.iter();
        let set = set.map(|(key, set)| (key.clone(), SetView::of(set, file)));
        let in_file = file.values();
        let values = effective.values.iter().map(|(&key, value)| {
            let from = if overrides.values.contains_key(key) {
                OPERATOR
            } else if effective.of_event.contains(key) {
                EVENT
            } else {
                FILE
            };
            let shown = ValueView {
                value: value.clone(),
                from: from.to_owned(),
                file: in_file.get(key).cloned().unwrap_or_default(),
            };
            (key.to_owned(), shown)
        });
        Self {
            room: file.name.to_string(),
            version: overrides.version,
            paused: overrides.pause.as_ref().map(|pause| PauseView {
                since: rfc3339_millis(Timestamp(pause.since)),
                message: pause.message.clone(),
            }),
            message: overrides.message().map(str::to_owned),
            values: values.collect(),
            set: set.collect(),
            warnings: near.map(|value| value.sentence).collect(),
            ignored: effective.problems.iter().map(ToString::to_string).collect(),
            held: Vec::new(),
            note: None,
        }
    }
}
