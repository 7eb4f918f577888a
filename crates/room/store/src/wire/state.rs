//! Body of `GET /api/v1/rooms/{name}/state`: the present state of a room. The first members are
//! those of the published design with counters, in its format; ours follow.
//!
//! All of it is as old as `ageMs` says. No decision depends on it.

use std::collections::BTreeMap;

use anteroom_room::id::Epoch;
use anteroom_room::queue_position::QueueReason;
use anteroom_room::rules::Rules;
use anteroom_room::sync::ClosedBy;
use anteroom_room::time::{DurationMs, Minute, Timestamp};
use serde::{Deserialize, Serialize};

use anteroom_config::overrides::{PendingStopView, RoomOverridesView, ValueView};
use anteroom_config::time_text::{rfc3339_millis, rfc3339_secs};
use anteroom_config::words;
use anteroom_config::{EventNow, RoomName};

/// Name of the part of the limit that no data center has used. No data center may have this name.
pub const ANYWHERE: &str = "Anywhere";

/// Facts about a room, as the node that replies knows them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StateFacts {
    /// Name of the room.
    pub room: RoomName,
    /// Rules in effect.
    pub rules: Rules,
    /// Whether the room is switched off.
    pub suspended: bool,
    /// Overrides of operators.
    pub shown: RoomOverridesView,
    /// Active visitors.
    pub active_users: u32,
    /// Waiting visitors.
    pub queued_users: u32,
    /// Admissions of the present minute.
    pub admissions_this_minute: u32,
    /// Live nodes of all data centers.
    pub global_nodes: u32,
    /// Live nodes of the replying node's data center.
    pub data_center_nodes: u32,
    /// Admissions of each data center, by minute.
    pub history: Vec<MinuteTraffic>,
    /// Visitors who may take a slot.
    pub watermark: Watermark,
    /// Age of the facts.
    pub age: DurationMs,
    /// Epoch of the ledger.
    pub epoch: Epoch,
    /// Seats that count as taken because lost children may have given them.
    pub phantom_seats: u32,
    /// Time at which the ledger grants slots again, in room time; `None` = it does.
    pub reopens_at: Option<Timestamp>,
    /// Cause of that.
    pub closed_by: Option<ClosedBy>,
    /// Reason why the room admits fewer than its limits allow; `None` = it does not.
    pub degraded: Option<QueueReason>,
    /// Whether the store of the root ledger is unavailable.
    pub is_root_store_unavailable: bool,
    /// Whether the room lets everybody pass as soon as nobody waits.
    pub is_draining: bool,
    /// The active event; `None` if there is none.
    pub event: Option<EventNow>,
    /// The next event; `None` if there is none.
    pub next_event: Option<EventNow>,
}

/// Cause of a time in which a ledger grants no slots.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClosedState {
    /// `maybe_first_start`, `lost_record`, `lost_record_without_visitors`, `missing_reports` or
    /// `unsafe_name`.
    pub cause: String,
    /// Number of nodes, or of data centers, that have not reported since their store came back;
    /// `null` with another cause.
    pub missing_reports: Option<u32>,
}

impl From<ClosedBy> for ClosedState {
    fn from(by: ClosedBy) -> Self {
        let missing_reports = match by {
            ClosedBy::MissingReports(missing) => Some(missing),
            _ => None,
        };
        Self {
            cause: by.name().to_owned(),
            missing_reports,
        }
    }
}

/// Admissions of all data centers in one minute.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MinuteTraffic {
    /// Minute of the admissions.
    pub minute: Minute,
    /// Admissions by name of the data center.
    pub admitted: BTreeMap<String, u32>,
}

/// Arrival time up to which waiting visitors may take a slot.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Watermark {
    /// None may take a slot.
    Closed,
    /// Visitors may who arrived by then, in room time.
    ArrivedBy(Timestamp),
    /// All visitors may, new ones included.
    Open,
}

/// Body of the response.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoomState {
    /// Active visitors.
    pub active_users: u32,
    /// Live nodes of all data centers.
    pub global_workers_active: u32,
    /// Live nodes of the replying node's data center.
    pub data_center_workers_active: u32,
    /// Admissions / limit of new users per minute, by minute (RFC 3339) and data center.
    /// [`ANYWHERE`] is the rest of the limit.
    pub traffic_history: BTreeMap<String, BTreeMap<String, String>>,
    /// Name of the room.
    pub room: String,
    /// Limit of active visitors.
    pub total_active_users: u32,
    /// Limit of admissions.
    pub new_users_per_minute: u32,
    /// Waiting visitors.
    pub queued_users: u32,
    /// Admissions of the present minute.
    pub admissions_this_minute: u32,
    /// Arrival time up to which visitors may take a slot (RFC 3339); `null` = none or all may.
    pub watermark: Option<String>,
    /// Whether all visitors may take a slot, new ones included.
    pub watermark_open: bool,
    /// Age of the facts, in milliseconds.
    pub age_ms: u64,
    /// Epoch of the ledger: the number of its losses.
    pub epoch: u32,
    /// Seats that count as taken because lost nodes may have given them.
    pub phantom_seats: u32,
    /// Time at which the ledger grants slots again (RFC 3339); `null` = it does.
    pub reopens_at: Option<String>,
    /// Cause of that; `null` = it grants slots.
    pub closed_by: Option<ClosedState>,
    /// Reason why the room admits fewer than its limits allow; `null` = it does not.
    pub degraded: Option<String>,
    /// `fifo`, `random`, `passthrough` or `reject`.
    pub queueing_method: String,
    /// `even`, `curve`, `counters` or `leases`.
    pub allocation: String,
    /// Whether the operator queues all visitors.
    pub queue_all: bool,
    /// Whether the room is switched off.
    pub suspended: bool,
    /// Opening time, past or future (RFC 3339); `null` = the room is always open.
    #[serde(default)]
    pub opens_at: Option<String>,
    /// Milliseconds until the opening, by the replying node's clock; `null` = the room is open.
    #[serde(default)]
    pub opens_in_ms: Option<u64>,
    /// Whether an operator paused the room.
    #[serde(default)]
    pub paused: bool,
    /// Operator's message on the page; `null` = none.
    #[serde(default)]
    pub message: Option<String>,
    /// Keys that an operator has set over the file, and the file's values.
    #[serde(default)]
    pub overrides: BTreeMap<String, ValueView>,
    /// Values of the next event that have no effect, because an operator set others that do not end
    /// before it: a sentence for each, from an hour before the event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Version of the overrides: the number of changes so far.
    #[serde(default)]
    pub override_version: u64,
    /// Stops in effect at the replying node only, until its store is available again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_commands: Vec<PendingStopView>,
    /// Whether the replying node cannot reach the store of the root ledger.
    #[serde(default, rename = "rootStoreUnavailable")]
    pub is_root_store_unavailable: bool,
    /// Whether the room lets everybody pass as soon as nobody waits: an event or a stop has ended.
    #[serde(default, rename = "draining")]
    pub is_draining: bool,
    /// The active event; `null` = there is none.
    #[serde(default)]
    pub event: Option<EventState>,
    /// The next event; `null` = there is none.
    #[serde(default)]
    pub next_event: Option<EventState>,
    /// Origins of the room, as the replying node sees them; empty without a proxy.
    #[serde(default)]
    pub origins: Vec<OriginState>,
}

/// Event of a room, as one node sees it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventState {
    /// Name.
    pub name: String,
    /// `upcoming`, `prequeue` or `running`.
    pub phase: String,
    /// Time from which new visitors are queued for the start (RFC 3339); `null` = they are not.
    pub prequeue_starts_at: Option<String>,
    /// Start (RFC 3339).
    pub starts_at: String,
    /// End (RFC 3339); `null` = it has none.
    pub ends_at: Option<String>,
    /// Milliseconds until its phase ends, by the replying node's clock; `null` = it does not.
    pub changes_in_ms: Option<u64>,
}

impl EventState {
    fn of(event: &EventNow) -> Self {
        let times = &event.times;
        let has_prequeue = times.prequeue_at < times.starts_at;
        Self {
            name: event.name.clone(),
            phase: event.phase.name().to_owned(),
            prequeue_starts_at: has_prequeue.then(|| rfc3339_millis(times.prequeue_at)),
            starts_at: rfc3339_millis(times.starts_at),
            ends_at: times.ends_at.map(rfc3339_millis),
            changes_in_ms: None,
        }
    }
}

/// Origin of a room, as one node sees it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OriginState {
    /// `http://host:port`.
    pub url: String,
    /// `up`, `out` (requests failed; tried again after a while) or `unhealthy` (checks failed).
    pub condition: String,
    /// Time in this condition, in milliseconds.
    pub for_ms: u64,
    /// Requests in flight.
    pub in_flight: u64,
    /// Milliseconds until the head of the response, the mean of about the last 32; `null` before
    /// the first.
    #[serde(default)]
    pub response_time_ms: Option<u64>,
    /// Most recent failure, however old; `null` = none so far.
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
            closed_by: facts.closed_by.map(ClosedState::from),
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
            warnings: shown.warnings.clone(),
            override_version: shown.version,
            held_commands: shown.held.clone(),
            is_root_store_unavailable: facts.is_root_store_unavailable,
            is_draining: facts.is_draining,
            event: facts.event.as_ref().map(EventState::of),
            next_event: facts.next_event.as_ref().map(EventState::of),
            origins: Vec::new(),
        }
    }
}

/// Returns `20/200` for each data center, and the unused rest of the limit; the rest is 0 if more
/// were admitted than the limit now allows.
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
            shown: RoomOverridesView::default(),
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
            closed_by: None,
            degraded: None,
            is_root_store_unavailable: false,
            is_draining: false,
            event: None,
            next_event: None,
        }
    }

    fn body(facts: &StateFacts) -> serde_json::Value {
        serde_json::to_value(RoomState::from(facts)).unwrap()
    }

    #[test]
    fn the_state_of_the_articles_example_is_as_printed_there() {
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
            "closedBy": null,
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
            "draining": false,
            "event": null,
            "nextEvent": null,
            "origins": [],
        });
        assert_eq!(body(&facts()), expected);
    }

    #[test]
    fn an_open_or_closed_watermark_has_no_time() {
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
    fn a_degraded_room_has_a_reason_and_an_end() {
        let mut facts = facts();
        let reopens_at = Timestamp(1_694_433_000_000);
        facts.reopens_at = Some(reopens_at);
        facts.closed_by = Some(ClosedBy::MissingReports(2));
        facts.degraded = Some(QueueReason::Recovering { reopens_at });
        let body = body(&facts);
        assert_eq!(body["degraded"], "recovering");
        assert_eq!(body["reopensAt"], "2023-09-11T11:50:00.000Z");
        assert_eq!(body["closedBy"]["cause"], "missing_reports");
        assert_eq!(body["closedBy"]["missingReports"], 2);
    }

    #[test]
    fn a_lowered_limit_leaves_no_rest() {
        let mut facts = facts();
        facts.rules.limits.new_users_per_minute = 40;
        let minute = body(&facts)["trafficHistory"]["2023-09-11T11:44:00Z"].clone();
        assert_eq!(minute["Anywhere"], "0/40");
        assert_eq!(minute["London"], "30/40");
    }

    #[test]
    fn a_state_survives_a_round_trip() {
        let state = RoomState::from(&facts());
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<RoomState>(&text).unwrap(), state);
    }
}
