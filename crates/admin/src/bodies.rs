//! Bodies of JSON responses. They serialize and deserialize, so that `anteroom status` reads what
//! is written here.
//!
//! The state of one room is in [`anteroom_store::wire::state`].

use anteroom_store::wire::state::{OriginState, RoomState};
use serde::{Deserialize, Serialize};

/// Body of `GET /healthz`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// Whether every room has a live lease.
    pub healthy: bool,
    /// Rooms that admit less than their limits allow, by name.
    pub rooms: Vec<RoomTrouble>,
    /// Rate limits whose stores are unavailable, by name. They do not make a node unhealthy: other
    /// nodes have the same problem, and visitors still enter and leave.
    #[serde(default)]
    pub limits: Vec<LimitTrouble>,
    /// Shortage of client connections; absent without one. It does not make a node unhealthy:
    /// visitors with a ticket still get responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<ConnectionTrouble>,
    /// Clocks that differ from that of this node by more than half a second; absent if there
    /// are none. They do not make a node unhealthy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<ClockTrouble>,
    /// Error of the newest config file; `null` if it was accepted. It does not make a node
    /// unhealthy: the previous file stays in force.
    pub last_reload_error: Option<String>,
}

/// Clock that differs from that of the responding node.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClockTrouble {
    /// `store.local`, `store.global`, or a node by the id of its process.
    pub owner: String,
    /// Milliseconds by which it is ahead; negative: behind.
    pub ahead_ms: i64,
    /// Explanation for people.
    pub detail: String,
}

/// Problem of a room.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoomTrouble {
    /// Name of the room.
    pub room: String,
    /// Stable word for the problem, the same as in metrics and in the room's state.
    pub reason: String,
    /// Whether the problem makes the node unhealthy.
    pub failing: bool,
    /// Description for people.
    pub detail: String,
}

/// Rate limit whose store cannot count requests.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LimitTrouble {
    /// Name of the limit.
    pub limit: String,
    /// Store that is unavailable, by its word in the config file.
    pub store: String,
    /// Milliseconds since the last request that could not be counted. Only requests show that a
    /// store is back.
    pub last_failure_ms: u64,
    /// Description for people.
    pub detail: String,
}

/// Shortage of client connections.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionTrouble {
    /// Open connections.
    pub open: u64,
    /// Open connections with a ticket.
    pub with_ticket: u64,
    /// Limit on open connections.
    pub limit: u64,
    /// Description for people.
    pub detail: String,
}

/// Body of `GET /livez`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Liveness {
    /// Constant `true`: a process that is not live sends no response.
    pub live: bool,
    /// Rooms of the node.
    pub rooms: usize,
}

/// Body of `GET /readyz`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Readiness {
    /// Whether visitors may be sent here.
    pub ready: bool,
    /// Reason why visitors may not be sent here; `null` if they may.
    pub detail: Option<String>,
}

impl Readiness {
    pub(crate) fn not(reason: &str) -> Self {
        Self {
            ready: false,
            detail: Some(reason.to_owned()),
        }
    }
}

/// State of a site.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SiteState {
    /// Name of the site.
    pub site: String,
    /// Origins, as this node sees them, in the order of the file.
    pub origins: Vec<OriginState>,
}

/// Body of `GET /api/v1/state`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoomStates {
    /// All rooms, by name.
    pub rooms: Vec<RoomState>,
    /// All sites, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<SiteState>,
    /// Rate limits whose stores are unavailable, by name, as in `/healthz`.
    #[serde(default)]
    pub limits: Vec<LimitTrouble>,
    /// Description of how the journal lost its memory, while a room recovers from that; `null`
    /// otherwise.
    #[serde(default)]
    pub journal: Option<String>,
    /// Shortage of client connections, as in `/healthz`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<ConnectionTrouble>,
    /// Clocks that differ from that of this node, as in `/healthz`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<ClockTrouble>,
}

/// Body of `POST /api/v1/limits/{name}/show`: usage of one client at the store of the limit.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientStanding {
    /// Requests allowed within the window.
    pub requests: u32,
    /// Length of the window, in seconds.
    pub window_seconds: u64,
    /// Requests of cost 1 that the limit would allow now.
    pub remaining: u32,
    /// Milliseconds until the limit allows one request, if the client sends none before; `null` if
    /// it never does.
    pub free_after_ms: Option<u64>,
    /// Milliseconds until none of the client's requests count.
    pub full_after_ms: u64,
}

/// Body of `POST /api/v1/limit-leases/assume-empty`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssumedEmpty {
    /// Limits whose clients start at zero.
    pub limits: Vec<String>,
}
