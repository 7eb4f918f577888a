//! Handlers of commands on the clients of a limit. The bodies have the keys of the file's
//! `overrides`, and all requests need a token.
//!
//! Reading needs a token because the name of a client may be an API key. For the same reason a
//! client is named in a body and never in a path. The code that reads the file decides what is
//! allowed.

use std::sync::Arc;
use std::time::Duration;

use crate::overrides::LimitCommandError;
use crate::overrides::client_overrides::{LimitCommand, RejectedCommand, ShownLimits};
use anteroom_config::overrides::Log;
use anteroom_config::{Client, LimitName, LiveValues};
use axum::Json;
use axum::body::to_bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

use crate::api_error::ApiError;
use crate::api_state::Inner;
use crate::bodies::{AssumedEmpty, ClientStanding};
use crate::command::{BODY_BYTES_MAX, NoBody, actor, json, read};
use crate::deadline::{COMMAND_TIMEOUT, CommandFailure, in_time, log_rejected};
use crate::tokens::Role;

/// Key of a client in a body.
const KEY: &str = "key";
/// Command on all limits with leases.
const ASSUME_EMPTY: &str = "assume-empty";

/// Command on one client, as in paths.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CommandName {
    Set,
    Unset,
    Show,
}

impl CommandName {
    pub(crate) const ALL: [Self; 3] = [Self::Set, Self::Unset, Self::Show];

    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Set => "/limits/{name}/set",
            Self::Unset => "/limits/{name}/unset",
            Self::Show => "/limits/{name}/show",
        }
    }

    /// Returns the command for logs, without the client's key.
    const fn role(self) -> Role {
        match self {
            Self::Set | Self::Unset => Role::Operator,
            Self::Show => Role::Viewer,
        }
    }

    const fn log_name(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Unset => "unset",
            Self::Show => "show",
        }
    }
}

/// Key of a client: one text, or one for each part of the limit's key.
#[derive(Deserialize)]
#[serde(untagged)]
enum Texts {
    One(String),
    Several(Vec<String>),
}

impl Default for Texts {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

impl From<Texts> for Vec<String> {
    fn from(texts: Texts) -> Self {
        match texts {
            Texts::One(text) => vec![text],
            Texts::Several(texts) => texts,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientBody {
    key: Texts,
}

#[derive(Default, Deserialize)]
struct SetBody {
    #[serde(default)]
    key: Texts,
    #[serde(flatten)]
    values: LiveValues,
}

/// Executes a command on one client.
pub(crate) async fn execute(
    kind: CommandName,
    State(inner): State<Arc<Inner>>,
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let who = actor(&inner, &request, kind.role()).await?;
    let limit = limit_of(&inner, name)?;
    let body = to_bytes(request.into_body(), BODY_BYTES_MAX).await;
    let body = body.map_err(|_| ApiError::Body)?;
    let command = match kind {
        CommandName::Set => LimitCommand::Set {
            limit: limit.clone(),
            typed: typed(read(&body)?),
        },
        CommandName::Unset => LimitCommand::Unset {
            limit: limit.clone(),
            client: Client(read::<ClientBody>(&body)?.key.into()),
        },
        CommandName::Show => {
            let texts: Vec<String> = read::<ClientBody>(&body)?.key.into();
            return standing(&inner, &limit, &texts).await;
        }
    };
    let limits = Arc::clone(&inner.limits);
    match in_time(async move { limits.execute(&command, &who).await }).await {
        Ok(()) => Ok(Json(json(&inner.limits.shown(Some(limit.as_str())).await))),
        Err(CommandFailure::Failed(LimitCommandError::Rejected(reason))) => Err(api_error(reason)),
        Err(error) => {
            log_rejected(&format!("limit {limit}"), kind.log_name(), &error);
            Err(ApiError::StoreUnavailable)
        }
    }
}

fn typed(body: SetBody) -> LiveValues {
    let mut typed = body.values;
    let texts: Vec<String> = body.key.into();
    if !texts.is_empty() {
        typed.insert(KEY.to_owned(), texts.into());
    }
    typed
}

async fn standing(
    inner: &Inner,
    limit: &LimitName,
    texts: &[String],
) -> Result<Json<Value>, ApiError> {
    let standing = inner.limits.standing(limit.as_str(), texts).await;
    let standing = standing.map_err(api_error)?;
    let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    Ok(Json(json(&ClientStanding {
        requests: standing.rate.requests(),
        window_seconds: standing.rate.window().secs_ceil(),
        remaining: standing.remaining,
        free_after_ms: standing.free_after.map(millis),
        full_after_ms: millis(standing.full_after),
    })))
}

/// Executes `assume-empty`: resets the usage of all clients of limits with leases.
pub(crate) async fn assume_empty(
    State(inner): State<Arc<Inner>>,
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Json<AssumedEmpty>, ApiError> {
    if !name.is_ok_and(|Path(name)| name == ASSUME_EMPTY) {
        return Err(ApiError::Method);
    }
    let who = actor(&inner, &request, Role::Admin).await?;
    let body = to_bytes(request.into_body(), BODY_BYTES_MAX).await;
    read::<NoBody>(&body.map_err(|_| ApiError::Body)?)?;
    let limits = Arc::clone(&inner.limits);
    match in_time(async move { limits.assume_empty(&who).await }).await {
        Ok(limits) => {
            tracing::warn!(
                limits = limits.join(" "),
                "operator assumes leased limits unspent: all clients of these limits start at zero"
            );
            Ok(Json(AssumedEmpty { limits }))
        }
        Err(CommandFailure::Failed(LimitCommandError::Rejected(reason))) => Err(api_error(reason)),
        Err(error) => {
            log_rejected("limits with leases", ASSUME_EMPTY, &error);
            Err(ApiError::StoreUnavailable)
        }
    }
}

/// Returns the values in force in all limits.
pub(crate) async fn all(
    State(inner): State<Arc<Inner>>,
    request: Request,
) -> Result<Json<ShownLimits>, ApiError> {
    actor(&inner, &request, Role::Viewer).await?;
    Ok(Json(inner.limits.shown(None).await))
}

/// Returns the values in force in one limit.
pub(crate) async fn one(
    State(inner): State<Arc<Inner>>,
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Json<ShownLimits>, ApiError> {
    actor(&inner, &request, Role::Viewer).await?;
    let limit = limit_of(&inner, name)?;
    Ok(Json(inner.limits.shown(Some(limit.as_str())).await))
}

/// Returns the audit log.
pub(crate) async fn log(
    State(inner): State<Arc<Inner>>,
    request: Request,
) -> Result<Json<Log>, ApiError> {
    actor(&inner, &request, Role::Admin).await?;
    match timeout(COMMAND_TIMEOUT, inner.limits.log()).await {
        Ok(Ok(log)) => Ok(Json(log)),
        _ => Err(ApiError::StoreUnavailable),
    }
}

/// Returns the limit that a path names: one in the file, or one with overrides.
fn limit_of(
    inner: &Inner,
    name: Result<Path<String>, PathRejection>,
) -> Result<LimitName, ApiError> {
    // A path that is not UTF-8 once its escapes are gone names no limit either.
    let name = name.ok().and_then(|Path(name)| LimitName::new(&name));
    let known = name.filter(|name| inner.limits.knows(name.as_str()));
    known.ok_or_else(|| ApiError::UnknownLimit {
        limits: inner.limits.names(),
    })
}

fn api_error(reason: RejectedCommand) -> ApiError {
    match reason {
        RejectedCommand::NotAllowed(problems) => ApiError::NotAllowed {
            problems: problems.0.iter().map(ToString::to_string).collect(),
        },
        RejectedCommand::NoLimit { limits } => ApiError::UnknownLimit { limits },
        RejectedCommand::StoreUnavailable => ApiError::StoreUnavailable,
        other => ApiError::NotAllowed {
            problems: vec![other.to_string()],
        },
    }
}
