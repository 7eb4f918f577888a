//! How does an operator change what holds for one client of a limit? By the words of the file's
//! `overrides`, with a token.
//!
//! Also reading takes one: who calls may be the key of an API. For the same reason a client is
//! named in a body and never in a path. What is allowed is judged by the code that reads the file.

use std::sync::Arc;
use std::time::Duration;

use crate::overrides::LimitCommandError;
use crate::overrides::orders::{LimitCommand, RejectedCommand, ShownLimits};
use anteroom_config::overrides::Log;
use anteroom_config::{Client, LimitName, LiveValues};
use axum::Json;
use axum::body::to_bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

use crate::bodies::{AssumedEmpty, ClientStanding};
use crate::command::{BODY_BYTES_MAX, NoBody, actor, json, read};
use crate::doing::{CommandFailure, PATIENCE, in_time, log_rejected};
use crate::inner::Inner;
use crate::refusal::Refusal;

/// What a client is called in a body.
const KEY: &str = "key";
/// What can be said about all limits at once.
const ASSUME_EMPTY: &str = "assume-empty";

/// What can be said, as in paths and commands.
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

    /// Without the client's key, which no log may hold.
    const fn command(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Unset => "unset",
            Self::Show => "show",
        }
    }
}

/// One text, or one for each part of the limit's key.
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

/// Does what is said.
pub(crate) async fn obey(
    saying: CommandName,
    State(inner): State<Arc<Inner>>,
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Json<Value>, Refusal> {
    let who = actor(&inner, &request)?;
    let limit = limit_of(&inner, name)?;
    let body = to_bytes(request.into_body(), BODY_BYTES_MAX).await;
    let body = body.map_err(|_| Refusal::Body)?;
    let order = match saying {
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
    let by = Arc::clone(&inner.limits);
    match in_time(async move { by.obey(&order, &who).await }).await {
        Ok(()) => Ok(Json(json(&inner.limits.shown(Some(limit.as_str())).await))),
        Err(CommandFailure::Failed(LimitCommandError::Refused(refused))) => Err(refusal(refused)),
        Err(error) => {
            log_rejected(&format!("limit {limit}"), saying.command(), &error);
            Err(Refusal::StoreAway)
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
) -> Result<Json<Value>, Refusal> {
    let standing = inner.limits.standing(limit.as_str(), texts).await;
    let standing = standing.map_err(refusal)?;
    let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    Ok(Json(json(&ClientStanding {
        calls: standing.rate.calls(),
        window_seconds: standing.rate.window().secs_ceil(),
        remaining: standing.remaining,
        free_after_ms: standing.free_after.map(millis),
        full_after_ms: millis(standing.full_after),
    })))
}

/// Forgets what clients of limits that are lent have spent.
pub(crate) async fn assume_empty(
    State(inner): State<Arc<Inner>>,
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Json<AssumedEmpty>, Refusal> {
    if !name.is_ok_and(|Path(name)| name == ASSUME_EMPTY) {
        return Err(Refusal::Method);
    }
    let who = actor(&inner, &request)?;
    let body = to_bytes(request.into_body(), BODY_BYTES_MAX).await;
    read::<NoBody>(&body.map_err(|_| Refusal::Body)?)?;
    let by = Arc::clone(&inner.limits);
    match in_time(async move { by.assume_empty(&who).await }).await {
        Ok(limits) => {
            tracing::warn!(
                limits = limits.join(" "),
                "an operator says that nobody has spent anything of what is lent: all clients of \
                 these limits begin anew"
            );
            Ok(Json(AssumedEmpty { limits }))
        }
        Err(CommandFailure::Failed(LimitCommandError::Refused(refused))) => Err(refusal(refused)),
        Err(error) => {
            log_rejected("limits that are lent", ASSUME_EMPTY, &error);
            Err(Refusal::StoreAway)
        }
    }
}

/// What holds in all limits.
pub(crate) async fn all(
    State(inner): State<Arc<Inner>>,
    request: Request,
) -> Result<Json<ShownLimits>, Refusal> {
    actor(&inner, &request)?;
    Ok(Json(inner.limits.shown(None).await))
}

/// What holds in one.
pub(crate) async fn one(
    State(inner): State<Arc<Inner>>,
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Json<ShownLimits>, Refusal> {
    actor(&inner, &request)?;
    let limit = limit_of(&inner, name)?;
    Ok(Json(inner.limits.shown(Some(limit.as_str())).await))
}

/// Who changed what.
pub(crate) async fn log(
    State(inner): State<Arc<Inner>>,
    request: Request,
) -> Result<Json<Log>, Refusal> {
    actor(&inner, &request)?;
    match timeout(PATIENCE, inner.limits.log()).await {
        Ok(Ok(log)) => Ok(Json(log)),
        _ => Err(Refusal::StoreAway),
    }
}

/// A limit of the file's, or one that operators said something about.
fn limit_of(
    inner: &Inner,
    name: Result<Path<String>, PathRejection>,
) -> Result<LimitName, Refusal> {
    // A path that is not UTF-8 once its escapes are gone names no limit either.
    let name = name.ok().and_then(|Path(name)| LimitName::new(&name));
    let known = name.filter(|name| inner.limits.knows(name.as_str()));
    known.ok_or_else(|| Refusal::UnknownLimit {
        limits: inner.limits.names(),
    })
}

fn refusal(refused: RejectedCommand) -> Refusal {
    match refused {
        RejectedCommand::NotAllowed(problems) => Refusal::NotAllowed {
            problems: problems.0.iter().map(ToString::to_string).collect(),
        },
        RejectedCommand::NoLimit { limits } => Refusal::UnknownLimit { limits },
        RejectedCommand::StoreAway => Refusal::StoreAway,
        other => Refusal::NotAllowed {
            problems: vec![other.to_string()],
        },
    }
}
