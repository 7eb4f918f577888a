//! Handlers that show the parts of a deployment: nodes, data centers, origins.

use std::collections::BTreeMap;
use std::sync::Arc;

use anteroom_config::OriginOwner;
use anteroom_node::DataCenterOfRoom;
use anteroom_store::wire::state::OriginState;
use axum::Json;
use axum::extract::{Request, State};
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::states::origin_states;
use crate::api_error::{ApiError, ErrorBody};
use crate::api_rooms::NodeState;
use crate::api_state::Inner;
use crate::command::check_reader;

/// Live nodes of the deployment.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct Nodes {
    /// The responding node, then the others by name.
    pub(crate) nodes: Vec<NodeState>,
}

/// Data centers of the deployment.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DataCenters {
    /// Data centers, by name.
    pub(crate) data_centers: Vec<DataCenterState>,
    /// Rooms whose root ledger the node cannot read: what they say is missing.
    pub(crate) unknown_rooms: Vec<String>,
}

/// Data center of the deployment.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DataCenterState {
    /// Name.
    pub(crate) name: String,
    /// Whether the responding node is there.
    pub(crate) is_this: bool,
    /// Rooms that it serves, by name.
    pub(crate) rooms: Vec<RoomOfDataCenter>,
}

/// Room as a data center serves it.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RoomOfDataCenter {
    /// Name of the room.
    pub(crate) room: String,
    /// Nodes with a live lease.
    pub(crate) nodes: u32,
    /// Visitors admitted in this minute.
    pub(crate) admissions_this_minute: u32,
    /// Milliseconds since its newest report to the root ledger. An idle room reports seldom.
    pub(crate) age_ms: u64,
}

/// Origins of the deployment, as one node sees them.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct Origins {
    /// Sites and rooms with origins of their own.
    pub(crate) origins: Vec<OriginsOfOwner>,
}

/// Origins of a site or of a room.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct OriginsOfOwner {
    /// Site that has the origins; `null` for a room's own.
    pub(crate) site: Option<String>,
    /// Room that has the origins; `null` for those of a site.
    pub(crate) room: Option<String>,
    /// Origins, in the order of the file.
    pub(crate) origins: Vec<OriginState>,
}

/// Returns the live nodes.
///
/// A node is live for 15 s after its newest note in the store.
#[utoipa::path(
    get,
    path = "/nodes",
    tag = "state",
    responses(
        (status = 200, body = Nodes),
        (status = "4XX", body = ErrorBody, description = "The request is not allowed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security((), ("token" = ["viewer"])),
)]
pub(crate) async fn show_nodes(
    State(inner): State<Arc<Inner>>,
    request: Request,
) -> Result<Json<Nodes>, ApiError> {
    check_reader(&inner, &request).await?;
    let nodes = inner.api_rooms.nodes().await;
    let nodes = nodes.map_err(|_| ApiError::StoreUnavailable)?;
    Ok(Json(Nodes { nodes }))
}

/// Returns the data centers with the rooms that they serve.
#[utoipa::path(
    get,
    path = "/data-centers",
    tag = "state",
    responses(
        (status = 200, body = DataCenters),
        (status = "4XX", body = ErrorBody, description = "The request is not allowed"),
    ),
    security((), ("token" = ["viewer"])),
)]
pub(crate) async fn show_data_centers(
    State(inner): State<Arc<Inner>>,
    request: Request,
) -> Result<Json<DataCenters>, ApiError> {
    check_reader(&inner, &request).await?;
    let rooms = inner.node.rooms();
    let read = rooms.iter().map(async |room| {
        let name = room.config().name.to_string();
        (name, room.data_centers().await)
    });
    let mut unknown_rooms = Vec::new();
    let mut found: BTreeMap<String, Vec<RoomOfDataCenter>> = BTreeMap::new();
    let now = inner.node.clock().now();
    for (room, data_centers) in join_all(read).await {
        let Some(data_centers) = data_centers else {
            unknown_rooms.push(room);
            continue;
        };
        for data_center in data_centers {
            let DataCenterOfRoom {
                name,
                nodes,
                reported_at,
                admitted,
            } = data_center;
            found.entry(name).or_default().push(RoomOfDataCenter {
                room: room.clone(),
                nodes,
                admissions_this_minute: admitted,
                age_ms: now.since(reported_at).0,
            });
        }
    }
    let here = inner.node.data_center().to_owned();
    // One without a room is one, too.
    found.entry(here.clone()).or_default();
    let data_centers = found.into_iter().map(|(name, rooms)| DataCenterState {
        is_this: name == here,
        name,
        rooms,
    });
    Ok(Json(DataCenters {
        data_centers: data_centers.collect(),
        unknown_rooms,
    }))
}

/// Returns the origins with their conditions, as this node sees them.
#[utoipa::path(
    get,
    path = "/origins",
    tag = "state",
    responses(
        (status = 200, body = Origins),
        (status = "4XX", body = ErrorBody, description = "The request is not allowed"),
    ),
    security((), ("token" = ["viewer"])),
)]
pub(crate) async fn show_origins(
    State(inner): State<Arc<Inner>>,
    request: Request,
) -> Result<Json<Origins>, ApiError> {
    check_reader(&inner, &request).await?;
    let extras = inner.extras.read();
    let origins = extras.origins.iter().map(|(owner, stats)| {
        let (site, room) = match owner {
            OriginOwner::Site(site) => (Some(site.to_string()), None),
            OriginOwner::Room(room) => (None, Some(room.to_string())),
        };
        OriginsOfOwner {
            site,
            room,
            origins: origin_states(stats),
        }
    });
    Ok(Json(Origins {
        origins: origins.collect(),
    }))
}
