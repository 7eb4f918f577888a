//! Handlers that show what happens now: states of rooms, origins of sites.

use std::collections::BTreeMap;
use std::sync::Arc;

use anteroom_config::OriginOwner;
use anteroom_node::RoomHandle;
use anteroom_proxy::upstream::{GroupStats, OriginStats};
use anteroom_store::wire::state::{OriginState, RoomState};
use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use futures_util::future::join_all;

use crate::api_error::{ApiError, ErrorBody};
use crate::api_state::{Inner, room_of, state_of};
use crate::bodies::{RoomStates, SiteState};
use crate::clocks::Clocks;
use crate::command::check_reader;
use crate::health;

/// Returns the state of all rooms, and what else needs attention.
///
/// At a loopback address it needs no token.
#[utoipa::path(
    get,
    path = "/state",
    tag = "state",
    responses(
        (status = 200, body = RoomStates),
        (status = "4XX", body = ErrorBody, description = "The request is not allowed"),
    ),
    security((), ("token" = ["viewer"])),
)]
pub(crate) async fn show_state(
    State(inner): State<Arc<Inner>>,
    request: Request,
) -> Result<Json<RoomStates>, ApiError> {
    check_reader(&inner, &request).await?;
    Ok(Json(state_of_node(&inner).await))
}

async fn state_of_node(inner: &Inner) -> RoomStates {
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
    RoomStates {
        journal: journal.filter(|_| rooms.iter().any(is_recovering)),
        sites: site_states(&extras.origins),
        rooms,
        limits,
        connections,
        clocks: health::clock_troubles(&inner.node),
    }
}

/// Returns the state of one room.
///
/// At a loopback address it needs no token.
#[utoipa::path(
    get,
    path = "/rooms/{room}/state",
    tag = "state",
    params(("room" = String, Path, description = "Name of the room")),
    responses(
        (status = 200, body = RoomState),
        (status = "4XX", body = ErrorBody, description = "The request is not allowed"),
    ),
    security((), ("token" = ["viewer"])),
)]
pub(crate) async fn show_room_state(
    State(inner): State<Arc<Inner>>,
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Json<RoomState>, ApiError> {
    check_reader(&inner, &request).await?;
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

pub(super) fn origin_states(stats: &GroupStats) -> Vec<OriginState> {
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
