//! How are answers written down as JSON? Both ways, so that `anteroom status` reads what is written
//! here.
//!
//! The state of one room is not here: its shape is older than this crate
//! ([`anteroom_store::wire::state`]).

use anteroom_store::wire::state::RoomState;
use serde::{Deserialize, Serialize};

/// The body of `GET /healthz`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// Whether every room has a lease that has not ended.
    pub healthy: bool,
    /// The rooms that admit less than their limits would allow, by name.
    pub rooms: Vec<RoomTrouble>,
    /// The limits of calls whose stores are away, by name. Another node would have the same
    /// trouble, and visitors go in and out, so this alone does not make a node unhealthy.
    #[serde(default)]
    pub limits: Vec<LimitTrouble>,
    /// That connections of visitors run short; absent while they do not. Visitors with a ticket are
    /// answered all the same, so this alone does not make a node unhealthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<ConnectionTrouble>,
    /// Why the newest config file was not taken; `null` if it was. The one before holds, so this
    /// alone does not make a node unhealthy.
    pub last_reload_error: Option<String>,
}

/// What is the matter with a room.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoomTrouble {
    /// Name of the room.
    pub room: String,
    /// Stable word for what is the matter, the same as in metrics and in the room's state.
    pub reason: String,
    /// Whether it makes the node unhealthy.
    pub failing: bool,
    /// The same for people.
    pub detail: String,
}

/// A limit of calls that cannot be counted where it should be.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitTrouble {
    /// Name of the limit.
    pub limit: String,
    /// The store that is away, by its word in the config file.
    pub store: String,
    /// Milliseconds since a call could not be counted last. Only calls show that a store is back.
    pub last_failure_ms: u64,
    /// The same for people.
    pub detail: String,
}

/// Connections of visitors that run short.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionTrouble {
    /// How many are open.
    pub open: u64,
    /// How many of them have a ticket.
    pub with_ticket: u64,
    /// How many there may be.
    pub limit: u64,
    /// The same for people.
    pub detail: String,
}

/// The body of `GET /livez`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Liveness {
    /// Always; a process that is not does not answer.
    pub live: bool,
    /// How many rooms it has.
    pub rooms: usize,
}

/// The body of `GET /readyz`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Readiness {
    /// Whether visitors may be sent here.
    pub ready: bool,
    /// Why not; `null` if they may.
    pub detail: Option<String>,
}

impl Readiness {
    pub(crate) fn not(why: &str) -> Self {
        Self {
            ready: false,
            detail: Some(why.to_owned()),
        }
    }
}

/// The body of `GET /rooms`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoomStates {
    /// All rooms, by name.
    pub rooms: Vec<RoomState>,
    /// The limits of calls whose stores are away, by name, as in `/healthz`.
    #[serde(default)]
    pub limits: Vec<LimitTrouble>,
    /// How the journal lost its memory, while a room recovers from that; `null` otherwise.
    #[serde(default)]
    pub journal: Option<String>,
    /// That connections of visitors run short, as in `/healthz`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<ConnectionTrouble>,
}

/// The body of `POST /limits/{name}/show`: how one client stands where the limit is counted.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientStanding {
    /// How many calls may come in how many seconds.
    pub calls: u32,
    /// The window of that.
    pub window_seconds: u64,
    /// How many calls that count one would go through now.
    pub remaining: u32,
    /// In how many milliseconds one would go through, if it calls no more; `null` if none ever
    /// does.
    pub free_after_ms: Option<u64>,
    /// In how many milliseconds nothing of its calls is left.
    pub full_after_ms: u64,
}

/// The body of `POST /limits/assume-empty`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AssumedEmpty {
    /// The limits whose clients begin anew.
    pub limits: Vec<String>,
}

/// The body of an answer that is none.
#[derive(Debug, Serialize)]
pub(crate) struct RefusalBody<'a> {
    pub(crate) error: &'static str,
    pub(crate) message: &'static str,
    /// The rooms that there are, where one was asked for that there is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rooms: Option<&'a [String]>,
    /// The limits that there are, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limits: Option<&'a [String]>,
    /// What is wrong, one by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problems: Option<&'a [String]>,
}
