//! What does a room look like right now? The body of `GET /rooms/{name}/state`: first what nodes
//! of the counted design tell each other, in its shape, then ours.
//!
//! All of it is as old as `ageMs` says; nothing is decided from it.

use std::collections::BTreeMap;

use anteroom_room::decision::QueueReason;
use anteroom_room::id::Epoch;
use anteroom_room::rules::Rules;
use anteroom_room::time::{DurationMs, Minute, Timestamp};
use serde::{Deserialize, Serialize};

use anteroom_config::RoomName;
use anteroom_config::overrides::{Shown, ShownHeld, ShownValue};
use anteroom_config::time_text::{rfc3339_millis, rfc3339_secs};
use anteroom_config::words;

/// What stands for the part of the limit in which no data center has a share; no data center may
/// have this name.
pub const ANYWHERE: &str = "Anywhere";

/// What is known about a room where it is asked for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StateFacts {
    /// Which room.
    pub room: RoomName,
    /// Its rules, as they hold now.
    pub rules: Rules,
    /// Whether the room is off.
    pub suspended: bool,
    /// What operators said while the room runs.
    pub shown: Shown,
    /// Visitors inside.
    pub active_users: u32,
    /// Visitors who wait.
    pub queued_users: u32,
    /// Visitors admitted in the present minute.
    pub admissions_this_minute: u32,
    /// Nodes alive in the world.
    pub global_nodes: u32,
    /// Nodes alive in the answering data center.
    pub data_center_nodes: u32,
    /// What each data center admitted, minute by minute.
    pub history: Vec<MinuteTraffic>,
    /// Who may take a slot.
    pub watermark: Watermark,
    /// How old the facts are.
    pub age: DurationMs,
    /// The ledger's epoch.
    pub epoch: Epoch,
    /// Seats that count as used because of children that fell silent.
    pub phantom_seats: u32,
    /// When the ledger lends again; `None` while it does. Room clock.
    pub reopens_at: Option<Timestamp>,
    /// Why the room admits less than its limits would allow; `None` = it does not.
    pub degraded: Option<QueueReason>,
    /// Whether the store that lends what the limits allow does not answer.
    pub is_root_store_unavailable: bool,
}

/// What data centers admitted in one minute.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MinuteTraffic {
    /// Which minute.
    pub minute: Minute,
    /// Admissions by name of the data center.
    pub admitted: BTreeMap<String, u32>,
}

/// Arrivals up to which a slot may be taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Watermark {
    /// Nobody may.
    Closed,
    /// Those who came by then; room clock.
    ArrivedBy(Timestamp),
    /// Everybody, also who comes now.
    Open,
}

/// The body.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoomState {
    /// Visitors inside.
    pub active_users: u32,
    /// Nodes alive in the world.
    pub global_workers_active: u32,
    /// Nodes alive in the answering data center.
    pub data_center_workers_active: u32,
    /// By minute (RFC 3339) and data center: admitted / limit of new users per minute;
    /// [`ANYWHERE`] is the rest of the limit.
    pub traffic_history: BTreeMap<String, BTreeMap<String, String>>,
    /// Name of the room.
    pub room: String,
    /// The limit.
    pub total_active_users: u32,
    /// The limit.
    pub new_users_per_minute: u32,
    /// Visitors who wait.
    pub queued_users: u32,
    /// Visitors admitted in the present minute.
    pub admissions_this_minute: u32,
    /// RFC 3339: who came by then may take a slot; `null` if nobody may or everybody.
    pub watermark: Option<String>,
    /// Whether everybody may take a slot, also who comes now.
    pub watermark_open: bool,
    /// How old all this is, in milliseconds.
    pub age_ms: u64,
    /// How often the ledger lost its memory.
    pub epoch: u32,
    /// Seats that count as used because of nodes that fell silent.
    pub phantom_seats: u32,
    /// RFC 3339: when the ledger lends again; `null` while it does.
    pub reopens_at: Option<String>,
    /// Why the room admits less than its limits would allow; `null` = it does not.
    pub degraded: Option<String>,
    /// `fifo`, `random`, `passthrough` or `reject`.
    pub queueing_method: String,
    /// `even`, `curve`, `counters` or `leases`.
    pub allocation: String,
    /// Whether the operator holds everybody.
    pub queue_all: bool,
    /// Whether the room is off.
    pub suspended: bool,
    /// RFC 3339: when the room opens or did; `null` = it is always open.
    #[serde(default)]
    pub opens_at: Option<String>,
    /// In how many milliseconds it opens, by the answering node's clock; `null` = it is open.
    #[serde(default)]
    pub opens_in_ms: Option<u64>,
    /// Whether an operator paused the room.
    #[serde(default)]
    pub paused: bool,
    /// What the operator says on the page; `null` = nothing.
    #[serde(default)]
    pub message: Option<String>,
    /// The keys that an operator set while the room runs, and what the file says.
    #[serde(default)]
    pub overrides: BTreeMap<String, ShownValue>,
    /// How often an operator said something about the room.
    #[serde(default)]
    pub override_version: u64,
    /// Stops that hold at the answering node only, until its store answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_commands: Vec<ShownHeld>,
    /// Whether the answering node cannot reach the store that lends what the limits allow.
    #[serde(default, rename = "rootStoreUnavailable")]
    pub is_root_store_unavailable: bool,
    /// Where its requests go, as the answering node sees it; empty where nobody looks.
    #[serde(default)]
    pub origins: Vec<OriginState>,
}

/// One origin of a room, as one node sees it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OriginState {
    /// `http://host:port`.
    pub url: String,
    /// `up`, `out` (failed requests, comes back by itself) or `unhealthy` (failed its checks).
    pub condition: String,
    /// For how long, in milliseconds.
    pub for_ms: u64,
    /// Requests that are there now.
    pub in_flight: u64,
    /// Milliseconds until the heads of answers, the mean of about the last 32; `null` before the
    /// first.
    #[serde(default)]
    pub response_time_ms: Option<u64>,
    /// What went wrong last, whenever that was; `null` = nothing did.
    pub last_error: Option<String>,
}

impl From<&StateFacts> for RoomState {
    fn from(facts: &StateFacts) -> Self {
        let limits = facts.rules.limits;
        let shown = &facts.shown;
        let minute = |traffic: &MinuteTraffic| {
            let key = rfc3339_secs(traffic.minute.starts_at());
            (key, shares(&traffic.admitted, limits.new_users_per_minute))
        };
        Self {
            active_users: facts.active_users,
            global_workers_active: facts.global_nodes,
            data_center_workers_active: facts.data_center_nodes,
            traffic_history: facts.history.iter().map(minute).collect(),
            room: facts.room.to_string(),
            total_active_users: limits.total_active_users,
            new_users_per_minute: limits.new_users_per_minute,
            queued_users: facts.queued_users,
            admissions_this_minute: facts.admissions_this_minute,
            watermark: match facts.watermark {
                Watermark::ArrivedBy(at) => Some(rfc3339_millis(at)),
                Watermark::Closed | Watermark::Open => None,
            },
            watermark_open: facts.watermark == Watermark::Open,
            age_ms: facts.age.0,
            epoch: facts.epoch.0,
            phantom_seats: facts.phantom_seats,
            reopens_at: facts.reopens_at.map(rfc3339_millis),
            degraded: facts.degraded.map(|reason| reason.name().to_owned()),
            queueing_method: words::queueing_method(facts.rules.queueing_method).to_owned(),
            allocation: words::allocation(facts.rules.allocation).to_owned(),
            queue_all: facts.rules.queue_all,
            suspended: facts.suspended,
            opens_at: facts.rules.opens_at.map(rfc3339_millis),
            opens_in_ms: None,
            paused: shown.paused.is_some(),
            message: shown.message.clone(),
            overrides: shown
                .overrides()
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            override_version: shown.version,
            held_commands: shown.held.clone(),
            is_root_store_unavailable: facts.is_root_store_unavailable,
            origins: Vec::new(),
        }
    }
}

/// `20/200` for each data center, and what is left for any; nothing if more was admitted than the
/// limit now allows.
fn shares(admitted: &BTreeMap<String, u32>, limit: u32) -> BTreeMap<String, String> {
    let rest = admitted
        .values()
        .fold(limit, |rest, admitted| rest.saturating_sub(*admitted));
    admitted
        .iter()
        .map(|(name, admitted)| (name.as_str(), *admitted))
        .chain([(ANYWHERE, rest)])
        .map(|(name, part)| (name.to_owned(), format!("{part}/{limit}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn facts() -> StateFacts {
        // The article's worked example, at 2023-09-11T11:45:54Z.
        let now = Timestamp(1_694_432_754_000);
        StateFacts {
            room: RoomName::new("shop").unwrap(),
            rules: Rules::default(),
            suspended: false,
            shown: Shown::default(),
            active_users: 50,
            queued_users: 7,
            admissions_this_minute: 3,
            global_nodes: 10,
            data_center_nodes: 3,
            history: vec![MinuteTraffic {
                minute: now.minute().previous(),
                admitted: [("San Jose", 20), ("London", 30)]
                    .map(|(name, admitted)| (name.to_owned(), admitted))
                    .into(),
            }],
            watermark: Watermark::ArrivedBy(now - DurationMs(1_500)),
            age: DurationMs(250),
            epoch: Epoch(2),
            phantom_seats: 4,
            reopens_at: None,
            degraded: None,
            is_root_store_unavailable: false,
        }
    }

    fn body(facts: &StateFacts) -> serde_json::Value {
        serde_json::to_value(RoomState::from(facts)).unwrap()
    }

    #[test]
    fn the_articles_state_at_san_jose_comes_out_as_printed_there() {
        let expected = json!({
            "activeUsers": 50,
            "globalWorkersActive": 10,
            "dataCenterWorkersActive": 3,
            "trafficHistory": {
                "2023-09-11T11:44:00Z": {
                    "San Jose": "20/200",
                    "London": "30/200",
                    "Anywhere": "150/200",
                },
            },
            "room": "shop",
            "totalActiveUsers": 200,
            "newUsersPerMinute": 200,
            "queuedUsers": 7,
            "admissionsThisMinute": 3,
            "watermark": "2023-09-11T11:45:52.500Z",
            "watermarkOpen": false,
            "ageMs": 250,
            "epoch": 2,
            "phantomSeats": 4,
            "reopensAt": null,
            "degraded": null,
            "queueingMethod": "fifo",
            "allocation": "leases",
            "queueAll": false,
            "suspended": false,
            "opensAt": null,
            "opensInMs": null,
            "paused": false,
            "message": null,
            "overrides": {},
            "overrideVersion": 0,
            "rootStoreUnavailable": false,
            "origins": [],
        });
        assert_eq!(body(&facts()), expected);
    }

    #[test]
    fn a_watermark_is_a_time_or_open_or_neither() {
        let mut facts = facts();
        let mut check = |watermark, open: bool| {
            facts.watermark = watermark;
            let body = body(&facts);
            assert!(body["watermark"].is_null());
            assert_eq!(body["watermarkOpen"], open);
        };
        check(Watermark::Open, true);
        check(Watermark::Closed, false);
    }

    #[test]
    fn a_degraded_room_says_why_and_until_when() {
        let mut facts = facts();
        let reopens_at = Timestamp(1_694_433_000_000);
        facts.reopens_at = Some(reopens_at);
        facts.degraded = Some(QueueReason::Recovering { reopens_at });
        let body = body(&facts);
        assert_eq!(body["degraded"], "recovering");
        assert_eq!(body["reopensAt"], "2023-09-11T11:50:00.000Z");
    }

    #[test]
    fn after_lowering_the_limit_nothing_is_left_for_any() {
        let mut facts = facts();
        facts.rules.limits.new_users_per_minute = 40;
        let minute = body(&facts)["trafficHistory"]["2023-09-11T11:44:00Z"].clone();
        assert_eq!(minute["Anywhere"], "0/40");
        assert_eq!(minute["London"], "30/40");
    }

    #[test]
    fn a_state_is_read_back() {
        let state = RoomState::from(&facts());
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<RoomState>(&text).unwrap(), state);
    }
}
