//! Handlers of what operators set while a room runs, and of what they read about it.
//!
//! The code that reads the config file and the node decide what is allowed. This module
//! authenticates the operator, parses the command and writes the response.

use std::sync::Arc;

use anteroom_config::overrides::{Log, OperatorCommand, RoomOverridesView, Until};
use anteroom_config::{LiveValues, Problem, time_text};
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
use crate::api_v1::parameters::parameters;
use crate::clocks::Clocks;
use crate::command::{BODY_BYTES_MAX, NoBody, actor, parse, read};
use crate::deadline::{COMMAND_TIMEOUT, CommandFailure, in_time, log_rejected};
use crate::found_visitors::{self, FoundState, FoundVisitor, FoundVisitors};
use crate::tokens::Role;

/// Name of a room in a path.
type Name = Result<Path<String>, PathRejection>;
/// Response to a command.
type Executed = Result<(StatusCode, Json<RoomOverridesView>), ApiError>;

/// Command with its end and its scope.
struct ScopedCommand {
    command: OperatorCommand,
    /// End as the operator stated it.
    until: Option<String>,
    /// Whether the command skips the store and applies at this node.
    this_node: bool,
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct MessageBody {
    /// Text for visitors: one line of at most 500 characters; `null` or an empty text removes it.
    message: Option<String>,
    /// End: RFC 3339, `event_end` or `none`. Without it, a message ends with the active event, and
    /// a pause does not end.
    until: Option<String>,
    /// Whether the responding node obeys before it contacts the store.
    #[serde(default)]
    this_node: bool,
}

impl MessageBody {
    fn scoped(self, command: impl FnOnce(Option<String>) -> OperatorCommand) -> ScopedCommand {
        ScopedCommand {
            command: command(self.message),
            until: self.until,
            this_node: self.this_node,
        }
    }
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct NodeBody {
    /// Whether the responding node obeys before it contacts the store.
    #[serde(default)]
    this_node: bool,
}

impl NodeBody {
    fn scoped(self, command: OperatorCommand) -> ScopedCommand {
        ScopedCommand {
            command,
            until: None,
            this_node: self.this_node,
        }
    }
}

/// Body of queue-all.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct QueueAllBody {
    /// End: RFC 3339, `event_end` or `none`, which is the default.
    until: Option<String>,
    /// Whether the responding node obeys before it contacts the store.
    #[serde(default)]
    this_node: bool,
}

/// Values of overrides.
#[derive(Default, Deserialize, ToSchema)]
#[serde(expecting = "an object")]
pub(crate) struct SetBody {
    /// End: RFC 3339, `event_end` or `none`. Without it, values that are set during an event end
    /// with it.
    #[serde(default)]
    until: Option<String>,
    /// Keys of `[[room]]` with their values.
    #[serde(flatten)]
    #[schema(value_type = BTreeMap<String, Value>)]
    values: LiveValues,
}

impl ScopedCommand {
    /// Returns the command with its end. If that is a mistake, the error has all mistakes.
    fn with_end(self, room: &RoomHandle) -> Result<OperatorCommand, ApiError> {
        let Some(text) = self.until else {
            return Ok(self.command);
        };
        if let Some(until) = Until::parse(&text) {
            return Ok(OperatorCommand::Until(Box::new(self.command), until));
        }
        let message = format!("until = {text:?}; allowed: {}", Until::ALLOWED);
        let others = room.mistakes_in(&self.command);
        let others = others
            .iter()
            .map(|problem| problem_of(&self.command, problem));
        let mut problems = vec![ProblemBody::at("/until".to_owned(), message)];
        problems.extend(others);
        Err(ApiError::NotAllowed { problems })
    }
}

/// Returns a problem with its place in the body of a command.
fn problem_of(command: &OperatorCommand, problem: &Problem) -> ProblemBody {
    match command {
        OperatorCommand::Reset(Some(_)) => ProblemBody::at("/key".to_owned(), problem.to_string()),
        _ => ProblemBody::from(problem),
    }
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct ResetBody {
    /// Key of `[[room]]`, `message` or `pause`; `null`: all of them.
    key: Option<String>,
}

/// Body of an undo.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct UndoBody {
    /// Version of the change, as in the audit log.
    pub(super) version: u64,
}

/// Body of a revocation.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct RevokeBody {
    /// Whole id of the visitor, where several have the code.
    visitor: Option<String>,
}

const fn everywhere(command: OperatorCommand) -> ScopedCommand {
    ScopedCommand {
        command,
        until: None,
        this_node: false,
    }
}

/// Sets overrides: values that win over the file and over events, until their end or a reset.
#[utoipa::path(
    post,
    path = "/rooms/{room}/set",
    tag = "overrides",
    params(("room" = String, Path, description = "Name of the room")),
    request_body = SetBody,
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
    execute(&inner, name, request, |body: SetBody| ScopedCommand {
        command: OperatorCommand::Set(body.values),
        until: body.until,
        this_node: false,
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
    request_body = QueueAllBody,
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
    execute(&inner, name, request, |body: QueueAllBody| ScopedCommand {
        command: OperatorCommand::QueueAll,
        until: body.until,
        this_node: body.this_node,
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

/// Returns each key of a change to its value before it, if none of them has changed since.
///
/// Nobody is sent away. A change of `assume-empty` cannot be undone.
#[utoipa::path(
    post,
    path = "/rooms/{room}/undo",
    tag = "overrides",
    params(("room" = String, Path, description = "Name of the room")),
    request_body = UndoBody,
    responses(
        (status = 200, body = RoomOverridesView),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["operator"])),
)]
pub(crate) async fn undo_change(
    State(inner): State<Arc<Inner>>,
    name: Name,
    request: Request,
) -> Executed {
    let who = actor(&inner, &request, Role::Operator).await?;
    let room = room_of(&inner.node, name)?;
    let body = to_bytes(request.into_body(), BODY_BYTES_MAX).await;
    let UndoBody { version } = parse(&body.map_err(|_| ApiError::Body)?)?;
    let Ok(Ok(log)) = timeout(COMMAND_TIMEOUT, room.override_log()).await else {
        return Err(ApiError::StoreUnavailable);
    };
    let entry = log.entry(version).map_err(|text| ApiError::NotAllowed {
        problems: vec![ProblemBody::at("/version".to_owned(), text)],
    })?;
    let command = OperatorCommand::Undo(Box::new(entry.clone()));
    let (for_task, handle) = (command.clone(), Arc::clone(&room));
    let undone = in_time(async move { handle.execute(&for_task, &who).await }).await;
    undone.map_err(|error| match error {
        CommandFailure::Failed(RoomCommandError::Refused(problems)) => {
            let problems = problems
                .0
                .into_iter()
                .map(|problem| log.with_later_change(problem, entry));
            ApiError::NotAllowed {
                problems: problems
                    .map(|problem| ProblemBody::from(&problem))
                    .collect(),
            }
        }
        error => rejected(&room, &command, error),
    })?;
    Ok((StatusCode::OK, Json(room.shown())))
}

/// Ends the session of the active visitor with a code.
///
/// A node knows visitors whose seats it gave or extended itself: ask all nodes.
#[utoipa::path(
    post,
    path = "/rooms/{room}/visitors/{code}/revoke",
    tag = "overrides",
    params(
        ("room" = String, Path, description = "Name of the room"),
        ("code" = String, Path, description = "Code as on the visitor's page: 3F9A-12C4"),
    ),
    request_body = RevokeBody,
    responses(
        (status = 200, body = FoundVisitors),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
    ),
    security(("token" = ["operator"])),
)]
pub(crate) async fn revoke_visitor(
    State(inner): State<Arc<Inner>>,
    path: Result<Path<(String, String)>, PathRejection>,
    request: Request,
) -> Result<Json<FoundVisitors>, ApiError> {
    let who = actor(&inner, &request, Role::Operator).await?;
    let (room, code) = visitor_of(&inner, path)?;
    let body = to_bytes(request.into_body(), BODY_BYTES_MAX).await;
    let wanted = read::<RevokeBody>(&body.map_err(|_| ApiError::Body)?)?.visitor;
    let known = FoundVisitors::of(room.config().name.as_str(), code, room.find(code));
    let is_wanted = |visitor: &&FoundVisitor| {
        let is_active = matches!(visitor.state, FoundState::Active { .. });
        is_active
            && wanted
                .as_ref()
                .is_none_or(|wanted| *wanted == visitor.visitor)
    };
    let mut active = known.visitors.iter().filter(is_wanted);
    let (Some(visitor), None) = (active.next(), active.next()) else {
        let count = known.visitors.iter().filter(is_wanted).count();
        return Err(ApiError::not_allowed(if count == 0 {
            "this node knows no active visitor with this code: ask the other nodes".to_owned()
        } else {
            format!("{count} active visitors have this code: name one with `visitor`")
        }));
    };
    let ids = room.find(code).into_iter().map(|(id, _)| id);
    let mut ids = ids.filter(|id| found_visitors::hex(*id) == visitor.visitor);
    let id = ids.next().ok_or(ApiError::NotFound)?;
    room.revoke_visitor(id).await;
    tracing::warn!(
        room = %room.config().name,
        visitor = visitor.visitor,
        token = who.token,
        user = who.user,
        from = who.address,
        "an operator ended a session"
    );
    let known = FoundVisitors::of(room.config().name.as_str(), code, room.find(code));
    Ok(Json(known))
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
    let this_node = scoped.this_node;
    let command = scoped.with_end(&room)?;
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
            problems: {
                let problems = problems.0.iter();
                problems
                    .map(|problem| problem_of(command, problem))
                    .collect()
            },
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
    params(
        ("room" = String, Path, description = "Name of the room"),
        ("at" = Option<String>, Query, description = "Time (RFC 3339): what will be in force then"),
    ),
    responses(
        (status = 200, body = RoomOverridesView),
        (status = "4XX", body = ErrorBody, description = "The request is not allowed"),
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
    let [at] = parameters(&request, ["at"])?;
    let at = at.map(|text| {
        let at = time_text::parse(&text);
        at.ok_or_else(|| {
            let allowed = "allowed is a time such as 2030-01-31T10:00:00+01:00";
            let message = format!("at: found {text:?}; {allowed}");
            let problems = vec![ProblemBody::at("/at".to_owned(), message)];
            ApiError::NotAllowed { problems }
        })
    });
    let at = at.transpose()?;
    let room = room_of(&inner.node, name)?;
    room.refresh_overrides().await;
    Ok(Json(
        at.map_or_else(|| room.shown(), |at| room.shown_at(at)),
    ))
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
    let (room, code) = visitor_of(&inner, path)?;
    let name = room.config().name.to_string();
    Ok(Json(FoundVisitors::of(&name, code, room.find(code))))
}

/// Returns the room and the code of a visitor that a path names.
fn visitor_of(
    inner: &Inner,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<(Arc<RoomHandle>, VisitorCode), ApiError> {
    let (name, code) = match path {
        Ok(Path((name, code))) => (Ok(Path(name)), code),
        Err(error) => (Err(error), String::new()),
    };
    let room = room_of(&inner.node, name)?;
    let code = code.parse();
    let code = code.map_err(|error: NoVisitorCode| ApiError::not_allowed(error.to_string()))?;
    Ok((room, code))
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
