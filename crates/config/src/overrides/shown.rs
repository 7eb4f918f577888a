//! What holds in a room, and which of it comes from the file? The body of
//! `GET /rooms/{name}/settings`.

use std::collections::BTreeMap;

use anteroom_room::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{HeldStop, HeldStops, RoomOverrides};
use crate::RoomConfig;
use crate::time_text::rfc3339_millis;

/// Where a value comes from that the file did not set.
const OPERATOR: &str = "operator";
const FILE: &str = "file";

/// What holds in a room.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    /// Name of the room.
    pub room: String,
    /// How often an operator said something about it.
    pub version: u64,
    /// The pause; `null` = there is none.
    pub paused: Option<ShownPause>,
    /// What stands on the page; `null` = nothing of the operator's.
    pub message: Option<String>,
    /// The values of all keys that can be changed while the room runs.
    pub values: BTreeMap<String, ShownValue>,
    /// Values that an operator set and that do not fit the file any more: they do not hold.
    pub ignored: Vec<String>,
    /// Stops that hold at the answering node only, until its store answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<ShownHeld>,
    /// What came of a command that is not written down; `null` = it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A stop that one node holds by itself.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownHeld {
    /// As a command.
    pub command: String,
    /// Since when: RFC 3339.
    pub since: String,
    /// Whether it is in the node's data folder, so that a restart keeps it.
    pub is_kept: bool,
}

impl ShownHeld {
    /// What is shown of the stops that a node holds.
    #[must_use]
    pub fn of(held: &HeldStops, is_kept: bool) -> Vec<Self> {
        let shown = |held: &HeldStop| Self {
            command: held.stop.order().command(),
            since: rfc3339_millis(Timestamp(held.at)),
            is_kept,
        };
        held.iter().map(shown).collect()
    }
}

/// A pause.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ShownPause {
    /// Since when: RFC 3339.
    pub since: String,
    /// Why.
    pub message: Option<String>,
}

/// What a key has.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ShownValue {
    /// What holds.
    pub value: Value,
    /// `operator` or `file`.
    pub from: String,
    /// What the file says at this node.
    pub file: Value,
}

impl ShownValue {
    /// Whether an operator set it.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.from == OPERATOR
    }
}

impl Shown {
    /// The keys that an operator set.
    pub fn overrides(&self) -> impl Iterator<Item = (&String, &ShownValue)> {
        let values = self.values.iter();
        values.filter(|(_, value)| value.is_set())
    }

    /// What holds where the file says `file`.
    #[must_use]
    pub fn of(orders: &RoomOverrides, file: &RoomConfig) -> Self {
        let changed = orders.applied_to(file);
        let in_file = file.values();
        let values = changed.config.values().into_iter().map(|(key, value)| {
            let is_set = orders.values.contains_key(key);
            let shown = ShownValue {
                value,
                from: if is_set { OPERATOR } else { FILE }.to_owned(),
                file: in_file.get(key).cloned().unwrap_or_default(),
            };
            (key.to_owned(), shown)
        });
        Self {
            room: file.name.to_string(),
            version: orders.version,
            paused: orders.pause.as_ref().map(|pause| ShownPause {
                since: rfc3339_millis(Timestamp(pause.since)),
                message: pause.message.clone(),
            }),
            message: orders.message().map(str::to_owned),
            values: values.collect(),
            ignored: changed.problems.iter().map(ToString::to_string).collect(),
            held: Vec::new(),
            note: None,
        }
    }
}
