//! State that all handlers of the admin address share: the node, its limits, its rooms by name.

use std::sync::Arc;

use crate::overrides::LiveLimits;
use anteroom_config::RoomName;
use anteroom_node::{Node, RoomHandle};
use anteroom_store::wire::state::{RoomState, Watermark};
use axum::extract::Path;
use axum::extract::rejection::PathRejection;

use crate::api_error::ApiError;
use crate::api_rooms::LiveApiRooms;
use crate::client_v4::preview::Previews;
use crate::clocks::Clocks;
use crate::command::WrongTokens;
use crate::extras::Extras;
use crate::metrics::Metrics;
use crate::probes::Ready;
use crate::reload::Reloader;
use crate::tokens::Tokens;

/// Shared state of the handlers.
pub(crate) struct Inner {
    pub(crate) node: Arc<Node>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) wrong_tokens: WrongTokens,
    pub(crate) limits: Arc<LiveLimits>,
    pub(crate) api_rooms: Arc<LiveApiRooms>,
    pub(crate) extras: Arc<dyn Extras>,
    pub(crate) metrics: Metrics,
    pub(crate) ready: Ready,
    pub(crate) previews: Previews,
    pub(crate) reloader: Reloader,
}

/// Returns the room that a path names.
pub(crate) fn room_of(
    node: &Node,
    name: Result<Path<String>, PathRejection>,
) -> Result<Arc<RoomHandle>, ApiError> {
    // A path that is not UTF-8 once its escapes are gone names no room either.
    let name = name.ok().and_then(|Path(name)| RoomName::new(&name));
    name.and_then(|name| node.room(&name)).ok_or_else(|| {
        let rooms = node.rooms();
        let rooms = rooms.iter().map(|room| room.config().name.to_string());
        ApiError::UnknownRoom {
            rooms: rooms.collect(),
        }
    })
}

/// Returns the state of a room, with its times in wall clock time, as on the waiting page.
pub(crate) async fn state_of(room: &RoomHandle, clocks: Clocks) -> RoomState {
    let mut facts = room.state().await;
    facts.reopens_at = facts.reopens_at.map(|at| clocks.to_wall(at));
    if let Watermark::ArrivedBy(at) = &mut facts.watermark {
        *at = clocks.to_wall(*at);
    }
    let mut state = RoomState::from(&facts);
    // `opens_at` is wall clock time already.
    let opens_in = facts.rules.opens_at.map(|at| at.since(clocks.wall).0);
    state.opens_in_ms = opens_in.filter(|ms| *ms > 0);
    let events = [
        (&mut state.event, &facts.event),
        (&mut state.next_event, &facts.next_event),
    ];
    for (state, event) in events {
        if let (Some(state), Some(event)) = (state, event) {
            let ends_at = event.times.phase_ends_at(event.phase);
            state.changes_in_ms = ends_at.map(|at| at.since(clocks.wall).0);
        }
    }
    state
}
