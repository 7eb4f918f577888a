//! Routes of the admin address, and the handlers that only read.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::overrides::LiveLimits;
use anteroom_config::OriginOwner;
use anteroom_node::{Node, RoomHandle};
use anteroom_proxy::upstream::{GroupStats, OriginStats};
use anteroom_store::wire::state::{OriginState, RoomState};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::{any, get, post};
use axum::{Json, Router, middleware};
use futures_util::future::join_all;

use crate::api_error::{ApiError, status_of_health};
use crate::api_rooms::LiveApiRooms;
use crate::api_state::{Inner, room_of, state_of};
use crate::bodies::{Health, Liveness, Readiness, RoomStates, SiteState};
use crate::client_v4;
use crate::clocks::Clocks;
use crate::command::WrongTokens;
use crate::extras::Extras;
use crate::guard::guard;
use crate::health;
use crate::limits;
use crate::metrics::{self, Metrics};
use crate::probes::{self, Ready};
use crate::room_commands::{self, CommandName};
use crate::tokens::Tokens;

/// Body of `GET /`.
const INDEX: &str = "\
Anteroom admin API. Paths without a method are read with GET.

/healthz             200 while every room has a live lease, else 503; JSON says why
/livez               200; no response: restart this process (stores do not matter)
/readyz              200 while visitors may be sent here, else 503: just started, or about to end
/metrics             metrics in the OpenMetrics text format
/rooms               the states of all rooms, JSON
/rooms/{name}/state  the state of one room, JSON
/rooms/{name}/settings  its values in force, and which of them an operator set, JSON

With the header `Authorization: Bearer TOKEN`, as the command `anteroom room NAME ...` sends it.
The role viewer may read (GET and /show), but for audit logs and visitors. The role operator may do
all but assume-empty and audit logs.

GET  /rooms/{name}/audit         who changed what, JSON
GET  /rooms/{name}/visitors/{code}  what this node knows of the visitor with this code, JSON
POST /rooms/{name}/set           {\"total_active_users\": 300}: wins over the file until a reset
POST /rooms/{name}/pause         {\"message\": \"...\"}: admits nobody new
POST /rooms/{name}/resume        ends a pause
POST /rooms/{name}/queue-all     everybody who is not active waits
POST /rooms/{name}/open          ends both, and opens a room that has not opened yet
POST /rooms/{name}/message       {\"message\": \"...\"}: shown on the page
                                 these five with \"thisNode\": true apply at this node at once, even
                                 if the store is unavailable
POST /rooms/{name}/reset         {\"key\": \"...\"} or nothing: as the file says
POST /rooms/{name}/assume-empty  ends the wait of a room whose store has lost its memory
GET  /limits                     clients with settings of their own, in all limits, JSON
GET  /limits/{name}              clients with settings of their own in one limit, JSON
POST /limits/{name}/set          {\"key\": \"api-key-7\", \"limit\": \"500/min\"}: an override,
                                 which wins over the file until an unset
POST /limits/{name}/unset        {\"key\": \"api-key-7\"}: as the file says
POST /limits/{name}/show         {\"key\": \"api-key-7\"}: the usage of this client
POST /limits/assume-empty        clients of all limits with store = \"leases\" start at zero: for a
                                 store that lost its memory and grants nothing for a window
GET  /audit/limits               who changed what in the limits, JSON
GET  /audit/rooms-of-the-api     who changed what in rooms of the API, JSON
     /client/v4/...              rooms, events and rules, as Cloudflare's API for waiting rooms
";

/// Admin API of a node.
pub struct Control {
    inner: Arc<Inner>,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Control({:?})", self.inner.node)
    }
}

impl Control {
    /// Creates the API of `node`, its rate limits and its rooms of the API, for operators with one
    /// of `tokens`. `extras` are the stats of the rest of the program, [`crate::NoExtras`] if there
    /// are none. The start time in the metrics is now.
    #[must_use]
    pub fn new(
        node: Arc<Node>,
        (limits, api_rooms): (Arc<LiveLimits>, Arc<LiveApiRooms>),
        extras: Arc<dyn Extras>,
        tokens: Arc<Tokens>,
    ) -> Self {
        let metrics = Metrics::new(Arc::clone(&node), Arc::clone(&extras));
        let ready = Ready::new(&node);
        let inner = Inner {
            ready,
            node,
            tokens,
            wrong_tokens: WrongTokens::default(),
            limits,
            api_rooms,
            extras,
            metrics,
            previews: Default::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Returns a router of all paths, for [`crate::serve()`] or any other server.
    pub fn router(&self) -> Router {
        let mut router = Router::new();
        for command in CommandName::ALL {
            let handler = move |inner, name, request| async move {
                room_commands::execute(command, inner, name, request).await
            };
            router = router.route(command.path(), post(handler));
        }
        for command in limits::CommandName::ALL {
            let handler = move |inner, name, request| async move {
                limits::execute(command, inner, name, request).await
            };
            router = router.route(command.path(), post(handler));
        }
        router
            .route(
                &format!("{}{{*path}}", client_v4::PREFIX),
                any(client_v4::respond),
            )
            .route("/client/v4", any(client_v4::respond))
            .route(client_v4::PREFIX, any(client_v4::respond))
            .route("/preview/{id}", get(client_v4::preview::show))
            .route("/limits", get(limits::all))
            // A limit may have the name `assume-empty`: its overrides are read at the same path.
            .route(
                "/limits/{name}",
                get(limits::one).post(limits::assume_empty),
            )
            .route("/audit/limits", get(limits::log))
            .route("/audit/rooms-of-the-api", get(client_v4::log))
            .route("/", get(async || INDEX))
            .route("/healthz", get(healthz))
            .route("/livez", get(livez))
            .route("/readyz", get(readyz))
            .route("/metrics", get(metrics_text))
            .route("/rooms", get(rooms))
            .route("/rooms/{name}/state", get(room_state))
            .route("/rooms/{name}/settings", get(room_commands::settings))
            .route("/rooms/{name}/audit", get(room_commands::log))
            .route("/rooms/{name}/visitors/{code}", get(room_commands::find))
            .fallback(async || ApiError::UnknownPath)
            .method_not_allowed_fallback(async || ApiError::Method)
            .layer(middleware::from_fn(guard))
            .with_state(Arc::clone(&self.inner))
    }
}

async fn healthz(State(inner): State<Arc<Inner>>) -> (StatusCode, Json<Health>) {
    let health = health::of(&inner.node, inner.extras.read());
    (status_of_health(health.healthy), Json(health))
}

async fn livez(State(inner): State<Arc<Inner>>) -> Json<Liveness> {
    Json(probes::liveness(&inner.node))
}

async fn readyz(State(inner): State<Arc<Inner>>) -> (StatusCode, Json<Readiness>) {
    let readiness = inner
        .ready
        .of(&inner.node, &inner.api_rooms, &*inner.extras);
    (status_of_health(readiness.ready), Json(readiness))
}

async fn metrics_text(State(inner): State<Arc<Inner>>) -> Result<impl IntoResponse, ApiError> {
    let text = inner.metrics.text().map_err(|_| ApiError::Metrics)?;
    Ok(([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text))
}

async fn rooms(State(inner): State<Arc<Inner>>) -> Json<RoomStates> {
    let clocks = Clocks::read(inner.node.clock());
    // All at once: an unavailable store costs one timeout and not a thousand.
    let handles = inner.node.rooms();
    let states = handles
        .iter()
        .map(async |room| state_of(room, clocks).await);
    let mut rooms = join_all(states).await;
    let extras = inner.extras.read();
    let limits = health::unavailable_limits(&extras.limits);
    let connections = health::connection_shortage(&extras.connections);
    for (state, room) in rooms.iter_mut().zip(&handles) {
        state.origins = origins_of(room, &extras.origins);
    }
    let is_recovering = |room: &RoomState| room.reopens_at.is_some();
    let journal = extras.journal_loss;
    Json(RoomStates {
        journal: journal.filter(|_| rooms.iter().any(is_recovering)),
        sites: site_states(&extras.origins),
        rooms,
        limits,
        connections,
        clocks: health::clock_troubles(&inner.node),
    })
}

async fn room_state(
    State(inner): State<Arc<Inner>>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<RoomState>, ApiError> {
    let room = room_of(&inner.node, name)?;
    let mut state = state_of(&room, Clocks::read(inner.node.clock())).await;
    state.origins = origins_of(&room, &inner.extras.read().origins);
    Ok(Json(state))
}

/// Returns the origins of a room: its own, or those of its site.
fn origins_of(room: &RoomHandle, origins: &BTreeMap<OriginOwner, GroupStats>) -> Vec<OriginState> {
    let stats = origins.get(&room.config().origin_owner());
    stats.map(origin_states).unwrap_or_default()
}

/// Returns the sites with their origins, by name.
fn site_states(origins: &BTreeMap<OriginOwner, GroupStats>) -> Vec<SiteState> {
    let sites = origins.iter().filter_map(|(owner, stats)| {
        Some(SiteState {
            site: owner.site()?.to_owned(),
            origins: origin_states(stats),
        })
    });
    sites.collect()
}

fn origin_states(stats: &GroupStats) -> Vec<OriginState> {
    let state = |origin: &OriginStats| OriginState {
        url: origin.url.clone(),
        condition: origin.condition.name().to_owned(),
        for_ms: u64::try_from(origin.since.as_millis()).unwrap_or(u64::MAX),
        in_flight: origin.in_flight as u64,
        response_time_ms: origin
            .recent_response_time
            .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        last_error: origin.last_error.clone(),
    };
    stats.origins.iter().map(state).collect()
}
