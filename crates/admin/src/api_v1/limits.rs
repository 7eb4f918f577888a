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
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use utoipa::ToSchema;

use crate::api_error::{ApiError, ErrorBody, ProblemBody};
use crate::api_state::Inner;
use crate::bodies::{AssumedEmpty, ClientStanding};
use crate::command::{BODY_BYTES_MAX, NoBody, actor, read};
use crate::deadline::{COMMAND_TIMEOUT, CommandFailure, in_time, log_rejected};
use crate::tokens::Role;

/// Name of a limit in a path.
type Name = Result<Path<String>, PathRejection>;

/// Key of a client in a body.
const KEY: &str = "key";
/// Key of a client: one text, or one for each part of the limit's key.
#[derive(Deserialize, ToSchema)]
#[serde(untagged, expecting = "a text or a list of texts")]
pub(crate) enum Texts {
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

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct ClientBody {
    /// Client of the limit.
    key: Texts,
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(expecting = "an object")]
pub(crate) struct SetBody {
    /// Client of the limit.
    #[serde(default)]
    key: Texts,
    /// `limit`, such as `500/min`, and `burst`, `initial_burst` or `queue`.
    #[serde(flatten)]
    #[schema(value_type = BTreeMap<String, Value>)]
    values: LiveValues,
}

/// Gives one client settings of its own, which win over the file until an unset.
#[utoipa::path(
    post,
    path = "/limits/{limit}/set",
    tag = "limits",
    params(("limit" = String, Path, description = "Name of the limit")),
    request_body = SetBody,
    responses(
        (status = 200, body = ShownLimits),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["operator"])),
)]
pub(crate) async fn set_client(
    State(inner): State<Arc<Inner>>,
    name: Name,
    request: Request,
) -> Result<Json<ShownLimits>, ApiError> {
    execute(&inner, name, request, "set", |limit, body| {
        let typed = typed(body);
        LimitCommand::Set { limit, typed }
    })
    .await
}

/// Removes the override of one client.
#[utoipa::path(
    post,
    path = "/limits/{limit}/unset",
    tag = "limits",
    params(("limit" = String, Path, description = "Name of the limit")),
    request_body = ClientBody,
    responses(
        (status = 200, body = ShownLimits),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["operator"])),
)]
pub(crate) async fn unset_client(
    State(inner): State<Arc<Inner>>,
    name: Name,
    request: Request,
) -> Result<Json<ShownLimits>, ApiError> {
    execute(&inner, name, request, "unset", |limit, body: ClientBody| {
        let client = Client(body.key.into());
        LimitCommand::Unset { limit, client }
    })
    .await
}

/// Returns the usage of one client, without counting a request.
#[utoipa::path(
    post,
    path = "/limits/{limit}/show",
    tag = "limits",
    params(("limit" = String, Path, description = "Name of the limit")),
    request_body = ClientBody,
    responses(
        (status = 200, body = ClientStanding),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["viewer"])),
)]
pub(crate) async fn show_client(
    State(inner): State<Arc<Inner>>,
    name: Name,
    request: Request,
) -> Result<Json<ClientStanding>, ApiError> {
    actor(&inner, &request, Role::Viewer).await?;
    let limit = limit_of(&inner, name)?;
    let body = to_bytes(request.into_body(), BODY_BYTES_MAX).await;
    let texts: Vec<String> = read::<ClientBody>(&body.map_err(|_| ApiError::Body)?)?
        .key
        .into();
    standing(&inner, &limit, &texts).await
}

/// Executes a command on one client. The log has the `verb` without the client's key.
async fn execute<B: Default + DeserializeOwned>(
    inner: &Inner,
    name: Name,
    request: Request,
    verb: &str,
    command: impl FnOnce(LimitName, B) -> LimitCommand,
) -> Result<Json<ShownLimits>, ApiError> {
    let who = actor(inner, &request, Role::Operator).await?;
    let limit = limit_of(inner, name)?;
    let body = to_bytes(request.into_body(), BODY_BYTES_MAX).await;
    let command = command(limit.clone(), read(&body.map_err(|_| ApiError::Body)?)?);
    let limits = Arc::clone(&inner.limits);
    match in_time(async move { limits.execute(&command, &who).await }).await {
        Ok(()) => Ok(Json(inner.limits.shown(Some(limit.as_str())).await)),
        Err(CommandFailure::Failed(LimitCommandError::Rejected(reason))) => Err(api_error(reason)),
        Err(error) => {
            log_rejected(&format!("limit {limit}"), verb, &error);
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
) -> Result<Json<ClientStanding>, ApiError> {
    let standing = inner.limits.standing(limit.as_str(), texts).await;
    let standing = standing.map_err(api_error)?;
    let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    Ok(Json(ClientStanding {
        requests: standing.rate.requests(),
        window_seconds: standing.rate.window().secs_ceil(),
        remaining: standing.remaining,
        free_after_ms: standing.free_after.map(millis),
        full_after_ms: millis(standing.full_after),
    }))
}

/// Assumes that nothing was spent: clients of all limits with `store = "leases"` start at zero.
#[utoipa::path(
    post,
    path = "/limit-leases/assume-empty",
    tag = "limits",
    responses(
        (status = 200, body = AssumedEmpty),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["admin"])),
)]
pub(crate) async fn assume_limits_empty(
    State(inner): State<Arc<Inner>>,
    request: Request,
) -> Result<Json<AssumedEmpty>, ApiError> {
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
            log_rejected("limits with leases", "assume-empty", &error);
            Err(ApiError::StoreUnavailable)
        }
    }
}

/// Returns the clients with settings of their own, in all limits.
#[utoipa::path(
    get,
    path = "/limits",
    tag = "limits",
    responses(
        (status = 200, body = ShownLimits),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["viewer"])),
)]
pub(crate) async fn list_limits(
    State(inner): State<Arc<Inner>>,
    request: Request,
) -> Result<Json<ShownLimits>, ApiError> {
    actor(&inner, &request, Role::Viewer).await?;
    Ok(Json(inner.limits.shown(None).await))
}

/// Returns the clients with settings of their own in one limit.
#[utoipa::path(
    get,
    path = "/limits/{limit}",
    tag = "limits",
    params(("limit" = String, Path, description = "Name of the limit")),
    responses(
        (status = 200, body = ShownLimits),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["viewer"])),
)]
pub(crate) async fn show_limit(
    State(inner): State<Arc<Inner>>,
    name: Name,
    request: Request,
) -> Result<Json<ShownLimits>, ApiError> {
    actor(&inner, &request, Role::Viewer).await?;
    let limit = limit_of(&inner, name)?;
    Ok(Json(inner.limits.shown(Some(limit.as_str())).await))
}

/// Returns who changed what in the limits.
#[utoipa::path(
    get,
    path = "/audit/limits",
    tag = "audit",
    responses(
        (status = 200, body = Log),
        (status = "4XX", body = ErrorBody, description = "Nothing has changed"),
        (status = 503, body = ErrorBody, description = "The store is unavailable"),
    ),
    security(("token" = ["admin"])),
)]
pub(crate) async fn show_limits_log(
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
fn limit_of(inner: &Inner, name: Name) -> Result<LimitName, ApiError> {
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
            problems: problems.0.iter().map(ProblemBody::from).collect(),
        },
        RejectedCommand::NoLimit { limits } => ApiError::UnknownLimit { limits },
        RejectedCommand::StoreUnavailable => ApiError::StoreUnavailable,
        other => ApiError::not_allowed(other.to_string()),
    }
}
