//! Handlers of commands on a room: one path per command, with a token.
//!
//! The code that reads the config file and the node decide what is allowed. This module
//! authenticates the operator, parses the command and writes the response.

use std::sync::Arc;

use anteroom_config::overrides::{Log, OperatorCommand, RoomOverridesView};
use anteroom_node::{CommandOutcome, RoomCommandError, RoomHandle};
use anteroom_room::visitor_code::{NoVisitorCode, VisitorCode};
use axum::Json;
use axum::body::to_bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

use crate::api_error::{ApiError, status_of_command};
use crate::api_state::{Inner, room_of, state_of};
use crate::clocks::Clocks;
use crate::command::{BODY_BYTES_MAX, NoBody, actor, json, read};
use crate::deadline::{COMMAND_TIMEOUT, CommandFailure, in_time, log_rejected};
use crate::found_visitors::FoundVisitors;
use crate::tokens::Role;

/// Command on a room, as in paths.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CommandName {
    Set,
    Pause,
    Resume,
    QueueAll,
    Open,
    Message,
    Reset,
    AssumeEmpty,
}

impl CommandName {
    pub(crate) const ALL: [Self; 8] = [
        Self::Set,
        Self::Pause,
        Self::Resume,
        Self::QueueAll,
        Self::Open,
        Self::Message,
        Self::Reset,
        Self::AssumeEmpty,
    ];

    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Set => "/rooms/{name}/set",
            Self::Pause => "/rooms/{name}/pause",
            Self::Resume => "/rooms/{name}/resume",
            Self::QueueAll => "/rooms/{name}/queue-all",
            Self::Open => "/rooms/{name}/open",
            Self::Message => "/rooms/{name}/message",
            Self::Reset => "/rooms/{name}/reset",
            Self::AssumeEmpty => "/rooms/{name}/assume-empty",
        }
    }

    /// Returns the role that the command needs. A room that is assumed empty may admit more than
    /// its limit.
    const fn role(self) -> Role {
        match self {
            Self::AssumeEmpty => Role::Admin,
            _ => Role::Operator,
        }
    }

    fn parse(self, body: &[u8]) -> Result<ScopedCommand, ApiError> {
        let everywhere = |command| ScopedCommand {
            command,
            this_node: false,
        };
        Ok(match self {
            Self::Set => everywhere(OperatorCommand::Set(read(body)?)),
            Self::Pause => {
                read::<MessageBody>(body)?.scoped(|message| OperatorCommand::Pause { message })
            }
            Self::Message => read::<MessageBody>(body)?.scoped(OperatorCommand::Message),
            Self::Reset => everywhere(OperatorCommand::Reset(read::<ResetBody>(body)?.key)),
            Self::Resume => read::<NodeBody>(body)?.scoped(OperatorCommand::Resume),
            Self::QueueAll => read::<NodeBody>(body)?.scoped(OperatorCommand::QueueAll),
            Self::Open => read::<NodeBody>(body)?.scoped(OperatorCommand::Open),
            Self::AssumeEmpty => everywhere(without_body(body, OperatorCommand::AssumeEmpty)?),
        })
    }
}

/// Command with its scope.
struct ScopedCommand {
    command: OperatorCommand,
    /// Whether the command skips the store and applies at this node.
    this_node: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct MessageBody {
    message: Option<String>,
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

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct NodeBody {
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

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResetBody {
    key: Option<String>,
}

fn without_body(body: &[u8], command: OperatorCommand) -> Result<OperatorCommand, ApiError> {
    read::<NoBody>(body).map(|_| command)
}

/// Executes a command on a room.
pub(crate) async fn execute(
    kind: CommandName,
    State(inner): State<Arc<Inner>>,
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let who = actor(&inner, &request, kind.role()).await?;
    let room = room_of(&inner.node, name)?;
    let body = to_bytes(request.into_body(), BODY_BYTES_MAX).await;
    let scoped = kind.parse(&body.map_err(|_| ApiError::Body)?)?;
    let ScopedCommand { command, this_node } = scoped;
    let (for_task, handle) = (command.clone(), Arc::clone(&room));
    let outcome = in_time(async move {
        if this_node {
            handle.execute_here(&for_task, &who).await
        } else {
            handle.execute(&for_task, &who).await
        }
    });
    let outcome = match outcome.await {
        Ok(outcome) => outcome,
        Err(CommandFailure::Failed(RoomCommandError::Refused(problems))) => {
            let problems = problems.0.iter().map(ToString::to_string).collect();
            return Err(ApiError::NotAllowed { problems });
        }
        Err(CommandFailure::Failed(error @ RoomCommandError::NotHere)) => {
            let problems = vec![error.to_string()];
            return Err(ApiError::NotAllowed { problems });
        }
        Err(error) => {
            let about = format!("room {}", room.config().name);
            log_rejected(&about, &command.to_text(), &error);
            return Err(ApiError::StoreUnavailable);
        }
    };
    if let OperatorCommand::AssumeEmpty = command {
        return assume_empty(&inner, &room).await;
    }
    let mut shown = room.shown();
    shown.note = note(outcome, this_node, shown.paused.is_some());
    Ok((status_of_command(outcome), Json(json(&shown))))
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

/// Returns the values in force in a room, and their sources.
pub(crate) async fn settings(
    State(inner): State<Arc<Inner>>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<RoomOverridesView>, ApiError> {
    let room = room_of(&inner.node, name)?;
    room.refresh_overrides().await;
    Ok(Json(room.shown()))
}

/// Returns the audit log. It has names and addresses of people, so it takes a token.
pub(crate) async fn log(
    State(inner): State<Arc<Inner>>,
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Json<Log>, ApiError> {
    actor(&inner, &request, Role::Admin).await?;
    let room = room_of(&inner.node, name)?;
    match timeout(COMMAND_TIMEOUT, room.override_log()).await {
        Ok(Ok(log)) => Ok(Json(log)),
        _ => Err(ApiError::StoreUnavailable),
    }
}

/// Returns what this node knows of a visitor. It is about a person, so it takes a token.
pub(crate) async fn find(
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
        .map_err(|error: NoVisitorCode| ApiError::NotAllowed {
            problems: vec![error.to_string()],
        })?;
    let name = room.config().name.to_string();
    Ok(Json(FoundVisitors::of(&name, code, room.find(code))))
}

async fn assume_empty(
    inner: &Inner,
    room: &Arc<RoomHandle>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let handle = Arc::clone(room);
    if let Err(error) = in_time(async move { handle.assume_empty().await }).await {
        let about = format!("room {}", room.config().name);
        log_rejected(&about, &OperatorCommand::AssumeEmpty.to_text(), &error);
        return Err(ApiError::StoreUnavailable);
    }
    tracing::warn!(
        room = %room.config().name,
        "operator assumes the room empty: it no longer waits for earlier sessions to end"
    );
    let state = state_of(room, Clocks::read(inner.node.clock())).await;
    Ok((StatusCode::OK, Json(json(&state))))
}
