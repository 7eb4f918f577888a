//! How does an operator change a room? One path for each thing that can be said, with a token.
//!
//! What is allowed is judged by the code that reads the config file, and by the node; here is only
//! who says it, what was meant, and how the answer is written.

use std::sync::Arc;

use anteroom_config::overrides::{Log, OperatorCommand, Shown};
use anteroom_node::{CommandOutcome, RoomCommandError, RoomHandle};
use axum::Json;
use axum::body::to_bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

use crate::clocks::Clocks;
use crate::command::{BODY_BYTES_MAX, NoBody, actor, json, read};
use crate::doing::{CommandFailure, PATIENCE, in_time, log_rejected};
use crate::inner::{Inner, room_of, state_of};
use crate::refusal::{Refusal, status_of_command};

/// What can be said, as in paths and commands.
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

    fn command(self, body: &[u8]) -> Result<Command, Refusal> {
        let everywhere = |order| Command {
            order,
            this_node: false,
        };
        Ok(match self {
            Self::Set => everywhere(OperatorCommand::Set(read(body)?)),
            Self::Pause => {
                read::<MessageBody>(body)?.command(|message| OperatorCommand::Pause { message })
            }
            Self::Message => read::<MessageBody>(body)?.command(OperatorCommand::Message),
            Self::Reset => everywhere(OperatorCommand::Reset(read::<ResetBody>(body)?.key)),
            Self::Resume => read::<NodeBody>(body)?.command(OperatorCommand::Resume),
            Self::QueueAll => read::<NodeBody>(body)?.command(OperatorCommand::QueueAll),
            Self::Open => read::<NodeBody>(body)?.command(OperatorCommand::Open),
            Self::AssumeEmpty => everywhere(nothing(body, OperatorCommand::AssumeEmpty)?),
        })
    }
}

/// What is said, and to whom.
struct Command {
    order: OperatorCommand,
    /// Whether this node obeys before the store is asked.
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
    fn command(self, order: impl FnOnce(Option<String>) -> OperatorCommand) -> Command {
        Command {
            order: order(self.message),
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
    fn command(self, order: OperatorCommand) -> Command {
        Command {
            order,
            this_node: self.this_node,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResetBody {
    key: Option<String>,
}

fn nothing(body: &[u8], order: OperatorCommand) -> Result<OperatorCommand, Refusal> {
    read::<NoBody>(body).map(|_| order)
}

/// Does what is said.
pub(crate) async fn obey(
    saying: CommandName,
    State(inner): State<Arc<Inner>>,
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<(StatusCode, Json<Value>), Refusal> {
    let who = actor(&inner, &request)?;
    let room = room_of(&inner.node, name)?;
    let body = to_bytes(request.into_body(), BODY_BYTES_MAX).await;
    let command = saying.command(&body.map_err(|_| Refusal::Body)?)?;
    let Command { order, this_node } = command;
    let (said, by) = (order.clone(), Arc::clone(&room));
    let obeyed = in_time(async move {
        if this_node {
            by.obey_here(&said, &who).await
        } else {
            by.obey(&said, &who).await
        }
    });
    let obeyed = match obeyed.await {
        Ok(obeyed) => obeyed,
        Err(CommandFailure::Failed(RoomCommandError::Refused(problems))) => {
            let problems = problems.0.iter().map(ToString::to_string).collect();
            return Err(Refusal::NotAllowed { problems });
        }
        Err(CommandFailure::Failed(error @ RoomCommandError::NotHere)) => {
            let problems = vec![error.to_string()];
            return Err(Refusal::NotAllowed { problems });
        }
        Err(error) => {
            let about = format!("room {}", room.config().name);
            log_rejected(&about, &order.command(), &error);
            return Err(Refusal::StoreAway);
        }
    };
    if let OperatorCommand::AssumeEmpty = order {
        return assume_empty(&inner, &room).await;
    }
    let mut shown = room.shown();
    shown.note = note(obeyed, this_node, shown.paused.is_some());
    Ok((status_of_command(obeyed), Json(json(&shown))))
}

/// What an operator must know of a command that is not written down.
fn note(obeyed: CommandOutcome, this_node: bool, is_paused: bool) -> Option<String> {
    let why = if this_node {
        "the store was not asked first"
    } else {
        "the store does not answer"
    };
    Some(match obeyed {
        CommandOutcome::Written => return None,
        CommandOutcome::Held { is_kept } => {
            let kept = if is_kept {
                "A restart of this node keeps it."
            } else {
                "It is not in the data folder: a restart of this node ends it."
            };
            format!(
                "This holds at this node only: {why}. All nodes follow when the store answers. \
                 {kept}"
            )
        }
        CommandOutcome::Ended => {
            let rest = if is_paused {
                " The room stays paused: the store says so, and one node cannot end that."
            } else {
                ""
            };
            format!(
                "What this node held by itself has ended: {why}. Stops at other nodes stay.{rest}"
            )
        }
    })
}

/// What holds in a room, and where it comes from.
pub(crate) async fn settings(
    State(inner): State<Arc<Inner>>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<Shown>, Refusal> {
    let room = room_of(&inner.node, name)?;
    room.hear_overrides().await;
    Ok(Json(room.shown()))
}

/// Who changed what. Names and addresses of people stand in it, so it takes a token.
pub(crate) async fn log(
    State(inner): State<Arc<Inner>>,
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Json<Log>, Refusal> {
    actor(&inner, &request)?;
    let room = room_of(&inner.node, name)?;
    match timeout(PATIENCE, room.log_of_overrides()).await {
        Ok(Ok(log)) => Ok(Json(log)),
        _ => Err(Refusal::StoreAway),
    }
}

async fn assume_empty(
    inner: &Inner,
    room: &Arc<RoomHandle>,
) -> Result<(StatusCode, Json<Value>), Refusal> {
    let by = Arc::clone(room);
    if let Err(error) = in_time(async move { by.assume_empty().await }).await {
        let about = format!("room {}", room.config().name);
        log_rejected(&about, &OperatorCommand::AssumeEmpty.command(), &error);
        return Err(Refusal::StoreAway);
    }
    tracing::warn!(
        room = %room.config().name,
        "an operator says that nobody is inside: the room admits without waiting for what may have \
         been lent before"
    );
    let state = state_of(room, Clocks::read(inner.node.clock())).await;
    Ok((StatusCode::OK, Json(json(&state))))
}
