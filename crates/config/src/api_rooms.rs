//! Rooms that are made over the API: one record with all of them, so that names and routes stay
//! unique, and one swap of the record decides about each change.
//!
//! Each room is an object of the record: it states when it was last changed, and what it is now, or
//! that it was deleted. Records that a loss of the store has made different are merged object by
//! object; the later change wins. The time of a change is the store's, and later than every change
//! that the writer knows.
//!
//! Custom pages are not in the record, which refers to them.
//!
//! Where the record is stored, when nodes read it and who may change it is not decided here.

use std::collections::BTreeMap;

use anteroom_room::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::RoomId;
use crate::overrides::{Entry, FORM, Record};

mod pages;
mod placed;

pub use pages::{API_PAGES_BYTES_MAX, Pages};
pub use placed::{LeftOut, PlacedRooms};

/// Most rooms that the API makes.
pub const API_ROOMS_MAX: usize = 1_000;
/// Most bytes of the record.
pub const API_ROOMS_BYTES_MAX: usize = 1024 * 1024;
/// Time for which the record says that a room was deleted. A copy that is older may bring it back.
pub const DELETED_FOR: anteroom_room::time::DurationMs =
    anteroom_room::time::DurationMs::from_secs(31 * 86_400);

/// Record of all rooms that were made over the API.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiRooms {
    /// Number of changes so far.
    pub version: u64,
    /// Rooms by id, deleted ones among them.
    #[serde(default)]
    pub rooms: BTreeMap<String, ApiRoomEntry>,
    /// Newest change.
    #[serde(default)]
    pub newest: Option<Entry>,
    /// Fields of later versions of the program.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// Room of the API at its newest change.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiRoomEntry {
    /// Number of changes of this room.
    pub rev: u64,
    /// Time of the newest one, in Unix milliseconds by the store's clock.
    pub at: u64,
    /// The room; `None` if it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<ApiRoom>,
    /// Fields of later versions of the program.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// Room of the API.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiRoom {
    /// Time of its creation, in Unix milliseconds by the store's clock.
    pub created_at: u64,
    /// Name of the token that created it.
    #[serde(default)]
    pub created_by: String,
    /// Description, in an operator's words.
    #[serde(default)]
    pub description: String,
    /// Name of the site that serves it.
    #[serde(default)]
    pub site: String,
    /// Keys of `[[room]]`, as the file has them, without events and bypass rules.
    pub values: Map<String, Value>,
    /// Events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<ApiEvent>,
    /// Bypass rules, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<ApiRule>,
    /// Fields without an effect, as a client sent them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub sent: Map<String, Value>,
    /// Fields of later versions of the program.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// Event of a room of the API.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiEvent {
    /// Id, which no other event has.
    pub id: String,
    /// Time of its creation, in Unix milliseconds by the store's clock.
    pub created_at: u64,
    /// Time of its newest change.
    pub modified_at: u64,
    /// Keys of `[[room.event]]`, as the file has them.
    pub values: Map<String, Value>,
    /// Fields without an effect, as a client sent them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub sent: Map<String, Value>,
    /// Fields of later versions of the program.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// Bypass rule of a room of the API.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiRule {
    /// Id, which no other rule has.
    pub id: String,
    /// Number of changes.
    pub version: u64,
    /// Time of the newest one, in Unix milliseconds by the store's clock.
    pub modified_at: u64,
    /// Condition, in CEL.
    pub expression: String,
    /// Description, in an operator's words.
    #[serde(default)]
    pub description: String,
    /// Whether the rule is in force.
    pub enabled: bool,
    /// Fields of later versions of the program.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

impl ApiRoom {
    /// Returns the keys of `[[room]]` with events and bypass rules, as the file has them.
    #[must_use]
    pub fn file_values(&self) -> Map<String, Value> {
        let mut values = self.values.clone();
        let events = self.events.iter();
        let events: Vec<Value> = events.map(|event| event.values.clone().into()).collect();
        let rules = self.rules.iter().filter(|rule| rule.enabled);
        let rules: Vec<Value> = rules.map(|rule| rule.expression.clone().into()).collect();
        values.insert("event".to_owned(), events.into());
        values.insert("bypass".to_owned(), rules.into());
        values
    }
}

impl ApiRoomEntry {
    /// Whether this is a mark of a deletion that no copy contradicts any more at this time.
    const fn is_expired(&self, at: u64) -> bool {
        self.room.is_none() && self.at.saturating_add(DELETED_FOR.0) <= at
    }

    /// Returns the order of changes: a later time wins, then more changes.
    const fn recency(&self) -> (u64, u64) {
        (self.at, self.rev)
    }

    /// Returns the tag of this state: `"rev-at"` without the quotes.
    #[must_use]
    pub fn tag(&self) -> String {
        format!("{}-{}", self.rev, self.at)
    }
}

impl ApiRooms {
    /// Returns the rooms that are not deleted, the oldest first.
    #[must_use]
    pub fn present(&self) -> Vec<(&str, &ApiRoomEntry, &ApiRoom)> {
        let rooms = self.rooms.iter();
        let present = rooms.filter_map(|(id, entry)| Some((&**id, entry, entry.room.as_ref()?)));
        let mut present: Vec<_> = present.collect();
        present.sort_by_key(|(id, _, room)| (room.created_at, *id));
        present
    }

    /// Returns a room that is not deleted.
    #[must_use]
    pub fn room(&self, id: &RoomId) -> Option<(&ApiRoomEntry, &ApiRoom)> {
        let entry = self.rooms.get(id.as_str())?;
        Some((entry, entry.room.as_ref()?))
    }

    /// Returns the time of a change that begins now: later than every change that is known, even
    /// after the store's clock stepped back.
    #[must_use]
    pub fn time_of_change(&self, store: Timestamp) -> u64 {
        if self.rooms.is_empty() {
            return store.0;
        }
        store.0.max(self.newest_at().saturating_add(1))
    }

    /// Returns the record after a change of one room, at a time of [`Self::time_of_change`]; `None`
    /// deletes the room. The caller adds the change to the log.
    #[must_use]
    pub fn with(&self, id: &RoomId, room: Option<ApiRoom>, at: u64) -> Self {
        self.with_all(vec![(id.clone(), room)], at)
    }

    /// Returns the record after a change of several rooms, as [`ApiRooms::with`] does for one.
    #[must_use]
    pub fn with_all(&self, rooms: Vec<(RoomId, Option<ApiRoom>)>, at: u64) -> Self {
        let mut next = self.clone();
        next.rooms.retain(|_, entry| !entry.is_expired(at));
        for (id, room) in rooms {
            let before = self.rooms.get(id.as_str());
            let others = before.map(|before| before.others.clone());
            let entry = ApiRoomEntry {
                rev: before.map_or(1, |before| before.rev + 1),
                at,
                room,
                others: others.unwrap_or_default(),
            };
            next.rooms.insert(id.to_string(), entry);
        }
        next
    }

    /// Returns the form that a program has to read to know all of this record. There is one so far.
    #[must_use]
    pub const fn form(&self) -> u64 {
        FORM
    }

    /// Returns the time of the newest change of a room, in Unix milliseconds by the store's clock.
    #[must_use]
    pub fn newest_at(&self) -> u64 {
        let times = self.rooms.values().map(|entry| entry.at);
        times.max().unwrap_or(0)
    }

    /// Returns the later of the two newest entries of the log.
    fn newer_change<'a>(&'a self, other: &'a Self) -> &'a Self {
        let recency = |record: &Self| {
            let at = record.newest.as_ref().map_or(0, |newest| newest.at);
            (at, record.version)
        };
        if recency(self) > recency(other) {
            self
        } else {
            other
        }
    }
}

impl Record for ApiRooms {
    fn version(&self) -> u64 {
        self.version
    }

    fn newest(&self) -> Option<&Entry> {
        self.newest.as_ref()
    }

    /// Whether a room is here that `other` lacks, or that was changed later here.
    fn is_newer_than(&self, other: &Self) -> bool {
        let now = self.newest_at().max(other.newest_at());
        let mut lasting = self
            .rooms
            .iter()
            .filter(|(_, entry)| !entry.is_expired(now));
        lasting.any(|(id, entry)| {
            let known = other.rooms.get(id);
            known.is_none_or(|known| entry.recency() > known.recency())
        })
    }

    /// Returns each room at its later change.
    fn merged(&self, other: &Self) -> Self {
        let now = self.newest_at().max(other.newest_at());
        let mut rooms = other.rooms.clone();
        for (id, entry) in &self.rooms {
            let is_later = |known: &ApiRoomEntry| entry.recency() > known.recency();
            if rooms.get(id).is_none_or(is_later) {
                rooms.insert(id.clone(), entry.clone());
            }
        }
        rooms.retain(|_, entry| !entry.is_expired(now));
        Self {
            version: self.version.max(other.version),
            rooms,
            ..self.newer_change(other).clone()
        }
    }
}

#[cfg(test)]
mod tests;
