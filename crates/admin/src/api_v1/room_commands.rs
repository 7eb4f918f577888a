//! Handlers of what operators set while a room runs, and of what they read about it.
//!
//! The code that reads the config file and the node decide what is allowed. This module
//! authenticates the operator, parses the command and writes the response.

use std::sync::Arc;

use anteroom_config::LiveValues;
use anteroom_config::overrides::{Log, OperatorCommand, RoomOverridesView};
use anteroom_node::{CommandOutcome, RoomCommandError, RoomHandle};
use anteroom_room::visitor_code::{NoVisitorCode, VisitorCode};
use anteroom_store::wire::state::RoomState;
use axum::Json;
use axum::body::to_bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use utoipa::ToSchema;

use crate::api_error::{ApiError, ErrorBody, ProblemBody, status_of_command};
use crate::api_state::{Inner, room_of, state_of};
use crate::clocks::Clocks;
use crate::command::{BODY_BYTES_MAX, NoBody, actor, read};
use crate::deadline::{COMMAND_TIMEOUT, CommandFailure, in_time, log_rejected};
use crate::found_visitors::FoundVisitors;
use crate::tokens::Role;

/// Name of a room in a path.
type Name = Result<Path<String>, PathRejection>;
/// Response to a command.
type Executed = Result<(StatusCode, Json<RoomOverridesView>), ApiError>;

/// Command with its scope.
struct ScopedCommand {
    command: OperatorCommand,
    /// Whether the command skips the store and applies at this node.
    this_node: bool,
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct MessageBody {
    /// Text for visitors: one line of at most 500 characters; `null` or an empty text removes it.
    message: Option<String>,
    /// Whether the responding node obeys before it contacts the store.
    #[serde(default)]
    this_node: bool,
}

impl MessageBody {
    fn scoped(self, command: impl FnOnce(Option<String>) -> OperatorCommand) -> ScopedCommand {
        ScopedCommand {
            command: command(self.message),
            this_node: self.this_node,
        }
    }
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct NodeBody {
    /// Whether the responding node obeys before it contacts the store.
    #[serde(default)]
    this_node: bool,
}

impl NodeBody {
    fn scoped(self, command: OperatorCommand) -> ScopedCommand {
        ScopedCommand {
            command,
            this_node: self.this_node,
        }
    }
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResetBody {
    /// Key of `[[room]]`, `message` or `pause`; `null`: all of them.
    key: Option<String>,
}

const fn everywhere(command: OperatorCommand) -> ScopedCommand {
    ScopedCommand {
        command,
        this_node: false,
    }
}

/// Sets overrides: values that win over the file until a reset.
///
/// The body has keys of `[[room]]` with their values.
#[utoipa::path(
    post,
    path = "/rooms/{room}/set",
    tag = "overrides",
    params(("room" = String, Path, description = "Name of the room")),
    request_body = std::collections::BTreeMap<String, serde_json::Value>,
    responses(
        (status = 200, body = RoomOverridesView, description = "In force and stored"),
        (status = 202, body = RoomOverridesView, description = "In force at this node only"),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["operator"])),
)]
pub(crate) async fn set_overrides(
    State(inner): State<Arc<Inner>>,
    name: Name,
    request: Request,
) -> Executed {
    execute(&inner, name, request, |values: LiveValues| {
        everywhere(OperatorCommand::Set(values))
    })
    .await
}

/// Admits nobody new. Active visitors remain active.
#[utoipa::path(
    post,
    path = "/rooms/{room}/pause",
    tag = "overrides",
    params(("room" = String, Path, description = "Name of the room")),
    request_body = MessageBody,
    responses(
        (status = 200, body = RoomOverridesView, description = "In force and stored"),
        (status = 202, body = RoomOverridesView, description = "In force at this node only"),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["operator"])),
)]
pub(crate) async fn pause_room(
    State(inner): State<Arc<Inner>>,
    name: Name,
    request: Request,
) -> Executed {
    execute(&inner, name, request, |body: MessageBody| {
        body.scoped(|message| OperatorCommand::Pause { message })
    })
    .await
}

/// Ends a pause.
#[utoipa::path(
    post,
    path = "/rooms/{room}/resume",
    tag = "overrides",
    params(("room" = String, Path, description = "Name of the room")),
    request_body = NodeBody,
    responses(
        (status = 200, body = RoomOverridesView, description = "In force and stored"),
        (status = 202, body = RoomOverridesView, description = "In force at this node only"),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["operator"])),
)]
pub(crate) async fn resume_room(
    State(inner): State<Arc<Inner>>,
    name: Name,
    request: Request,
) -> Executed {
    execute(&inner, name, request, |body: NodeBody| {
        body.scoped(OperatorCommand::Resume)
    })
    .await
}

/// Queues every visitor who is not active.
#[utoipa::path(
    post,
    path = "/rooms/{room}/queue-all",
    tag = "overrides",
    params(("room" = String, Path, description = "Name of the room")),
    request_body = NodeBody,
    responses(
        (status = 200, body = RoomOverridesView, description = "In force and stored"),
        (status = 202, body = RoomOverridesView, description = "In force at this node only"),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["operator"])),
)]
pub(crate) async fn queue_everybody(
    State(inner): State<Arc<Inner>>,
    name: Name,
    request: Request,
) -> Executed {
    execute(&inner, name, request, |body: NodeBody| {
        body.scoped(OperatorCommand::QueueAll)
    })
    .await
}

/// Ends a pause and queue-all, and opens a room before its `opens_at`.
#[utoipa::path(
    post,
    path = "/rooms/{room}/open",
    tag = "overrides",
    params(("room" = String, Path, description = "Name of the room")),
    request_body = NodeBody,
    responses(
        (status = 200, body = RoomOverridesView, description = "In force and stored"),
        (status = 202, body = RoomOverridesView, description = "In force at this node only"),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["operator"])),
)]
pub(crate) async fn open_room(
    State(inner): State<Arc<Inner>>,
    name: Name,
    request: Request,
) -> Executed {
    execute(&inner, name, request, |body: NodeBody| {
        body.scoped(OperatorCommand::Open)
    })
    .await
}

/// Shows a message on the waiting page.
#[utoipa::path(
    post,
    path = "/rooms/{room}/message",
    tag = "overrides",
    params(("room" = String, Path, description = "Name of the room")),
    request_body = MessageBody,
    responses(
        (status = 200, body = RoomOverridesView, description = "In force and stored"),
        (status = 202, body = RoomOverridesView, description = "In force at this node only"),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["operator"])),
)]
pub(crate) async fn set_message(
    State(inner): State<Arc<Inner>>,
    name: Name,
    request: Request,
) -> Executed {
    execute(&inner, name, request, |body: MessageBody| {
        body.scoped(OperatorCommand::Message)
    })
    .await
}

/// Returns to the values of the file.
#[utoipa::path(
    post,
    path = "/rooms/{room}/reset",
    tag = "overrides",
    params(("room" = String, Path, description = "Name of the room")),
    request_body = ResetBody,
    responses(
        (status = 200, body = RoomOverridesView, description = "In force and stored"),
        (status = 202, body = RoomOverridesView, description = "In force at this node only"),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["operator"])),
)]
pub(crate) async fn reset_overrides(
    State(inner): State<Arc<Inner>>,
    name: Name,
    request: Request,
) -> Executed {
    execute(&inner, name, request, |body: ResetBody| {
        everywhere(OperatorCommand::Reset(body.key))
    })
    .await
}

/// Executes a command on a room.
async fn execute<B: Default + DeserializeOwned>(
    inner: &Inner,
    name: Name,
    request: Request,
    command: impl FnOnce(B) -> ScopedCommand,
) -> Executed {
    let who = actor(inner, &request, Role::Operator).await?;
    let room = room_of(&inner.node, name)?;
    let body = to_bytes(request.into_body(), BODY_BYTES_MAX).await;
    let scoped = command(read(&body.map_err(|_| ApiError::Body)?)?);
    let ScopedCommand { command, this_node } = scoped;
    let (for_task, handle) = (command.clone(), Arc::clone(&room));
    let outcome = in_time(async move {
        if this_node {
            handle.execute_here(&for_task, &who).await
        } else {
            handle.execute(&for_task, &who).await
        }
    });
    let outcome = outcome
        .await
        .map_err(|error| rejected(&room, &command, error))?;
    let mut shown = room.shown();
    shown.note = note(outcome, this_node, shown.paused.is_some());
    Ok((status_of_command(outcome), Json(shown)))
}

fn rejected(
    room: &RoomHandle,
    command: &OperatorCommand,
    error: CommandFailure<RoomCommandError>,
) -> ApiError {
    match error {
        CommandFailure::Failed(RoomCommandError::Refused(problems)) => ApiError::NotAllowed {
            problems: problems.0.iter().map(ProblemBody::from).collect(),
        },
        CommandFailure::Failed(error @ RoomCommandError::NotHere) => {
            ApiError::not_allowed(error.to_string())
        }
        error => {
            let about = format!("room {}", room.config().name);
            log_rejected(&about, &command.to_text(), &error);
            ApiError::StoreUnavailable
        }
    }
}

/// Explains a command that is not stored.
fn note(outcome: CommandOutcome, this_node: bool, is_paused: bool) -> Option<String> {
    let reason = if this_node {
        "the command skipped the store"
    } else {
        "the store is unavailable"
    };
    Some(match outcome {
        CommandOutcome::Written => return None,
        CommandOutcome::Held { is_kept } => {
            let kept = if is_kept {
                "A restart of this node keeps it."
            } else {
                "It is not in the data folder: a restart of this node ends it."
            };
            format!(
                "This applies at this node only: {reason}. All nodes follow when the store \
                 replies. {kept}"
            )
        }
        CommandOutcome::Ended => {
            let rest = if is_paused {
                " The room stays paused by the store, and one node cannot end that."
            } else {
                ""
            };
            format!(
                "The command of this node has ended: {reason}. Commands of other nodes \
                 stay.{rest}"
            )
        }
    })
}

/// Returns the values in force in a room, and the reason for each.
#[utoipa::path(
    get,
    path = "/rooms/{room}/settings",
    tag = "overrides",
    params(("room" = String, Path, description = "Name of the room")),
    responses(
        (status = 200, body = RoomOverridesView),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["viewer"])),
)]
pub(crate) async fn show_settings(
    State(inner): State<Arc<Inner>>,
    name: Name,
    request: Request,
) -> Result<Json<RoomOverridesView>, ApiError> {
    actor(&inner, &request, Role::Viewer).await?;
    let room = room_of(&inner.node, name)?;
    room.refresh_overrides().await;
    Ok(Json(room.shown()))
}

/// Returns who changed what in a room.
#[utoipa::path(
    get,
    path = "/rooms/{room}/audit",
    tag = "audit",
    params(("room" = String, Path, description = "Name of the room")),
    responses(
        (status = 200, body = Log),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["admin"])),
)]
pub(crate) async fn show_room_log(
    State(inner): State<Arc<Inner>>,
    name: Name,
    request: Request,
) -> Result<Json<Log>, ApiError> {
    actor(&inner, &request, Role::Admin).await?;
    let room = room_of(&inner.node, name)?;
    match timeout(COMMAND_TIMEOUT, room.override_log()).await {
        Ok(Ok(log)) => Ok(Json(log)),
        _ => Err(ApiError::StoreUnavailable),
    }
}

/// Returns what this node knows of a visitor.
#[utoipa::path(
    get,
    path = "/rooms/{room}/visitors/{code}",
    tag = "overrides",
    params(("room" = String, Path, description = "Name of the room"),
        ("code" = String, Path, description = "Code as on the visitor's page: 3F9A-12C4")),
    responses(
        (status = 200, body = FoundVisitors),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["operator"])),
)]
pub(crate) async fn find_visitor(
    State(inner): State<Arc<Inner>>,
    path: Result<Path<(String, String)>, PathRejection>,
    request: Request,
) -> Result<Json<FoundVisitors>, ApiError> {
    actor(&inner, &request, Role::Operator).await?;
    let (name, code) = match path {
        Ok(Path((name, code))) => (Ok(Path(name)), code),
        Err(error) => (Err(error), String::new()),
    };
    let room = room_of(&inner.node, name)?;
    let code: VisitorCode = code
        .parse()
        .map_err(|error: NoVisitorCode| ApiError::not_allowed(error.to_string()))?;
    let name = room.config().name.to_string();
    Ok(Json(FoundVisitors::of(&name, code, room.find(code))))
}

/// Assumes that nobody is active: a room whose store has lost its memory admits at once.
#[utoipa::path(
    post,
    path = "/rooms/{room}/assume-empty",
    tag = "overrides",
    params(("room" = String, Path, description = "Name of the room")),
    responses(
        (status = 200, body = RoomState),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["admin"])),
)]
pub(crate) async fn assume_room_empty(
    State(inner): State<Arc<Inner>>,
    name: Name,
    request: Request,
) -> Result<Json<RoomState>, ApiError> {
    let who = actor(&inner, &request, Role::Admin).await?;
    let room = room_of(&inner.node, name)?;
    let body = to_bytes(request.into_body(), BODY_BYTES_MAX).await;
    read::<NoBody>(&body.map_err(|_| ApiError::Body)?)?;
    let command = OperatorCommand::AssumeEmpty;
    let (for_task, handle) = (command.clone(), Arc::clone(&room));
    let logged = in_time(async move { handle.execute(&for_task, &who).await }).await;
    logged.map_err(|error| rejected(&room, &command, error))?;
    let handle = Arc::clone(&room);
    if let Err(error) = in_time(async move { handle.assume_empty().await }).await {
        let about = format!("room {}", room.config().name);
        log_rejected(&about, &command.to_text(), &error);
        return Err(ApiError::StoreUnavailable);
    }
    tracing::warn!(
        room = %room.config().name,
        "operator assumes the room empty: it no longer waits for earlier sessions to end"
    );
    Ok(Json(
        state_of(&room, Clocks::read(inner.node.clock())).await,
    ))
}
