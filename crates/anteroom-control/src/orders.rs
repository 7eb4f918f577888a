//! How does an operator change a room? One path for each thing that can be said, with a token.
//!
//! What is allowed is judged by the code that reads the config file, and by the node; here is only
//! who says it, what was meant, and how the answer is written.

use std::sync::Arc;

use anteroom_config::orders::{Actor, Log, Order, Shown};
use anteroom_node::{ObeyError, RoomHandle};
use axum::Json;
use axum::body::to_bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, HeaderName};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use crate::clocks::Clocks;
use crate::control::{Inner, PATIENCE, room_of, state_of};
use crate::refusal::Refusal;
use crate::serve::Peer;

/// Bytes of a body: every key there is and the longest message fit in many times.
pub(crate) const BODY_BYTES_MAX: usize = 16 * 1024;

/// Who they say they are.
const OPERATOR: HeaderName = HeaderName::from_static("anteroom-operator");
/// Longest name of a user that is written down.
const USER_CHARS_MAX: usize = 64;

/// What can be said, as in paths and commands.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Saying {
    Set,
    Pause,
    Resume,
    QueueAll,
    Open,
    Message,
    Reset,
    AssumeEmpty,
}

impl Saying {
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

    fn order(self, body: &[u8]) -> Result<Order, Refusal> {
        Ok(match self {
            Self::Set => Order::Set(read(body)?),
            Self::Pause => Order::Pause {
                message: read::<MessageBody>(body)?.message,
            },
            Self::Message => Order::Message(read::<MessageBody>(body)?.message),
            Self::Reset => Order::Reset(read::<ResetBody>(body)?.key),
            Self::Resume => nothing(body, Order::Resume)?,
            Self::QueueAll => nothing(body, Order::QueueAll)?,
            Self::Open => nothing(body, Order::Open)?,
            Self::AssumeEmpty => nothing(body, Order::AssumeEmpty)?,
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageBody {
    message: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResetBody {
    key: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoBody {}

/// A body; none at all says nothing.
pub(crate) fn read<T: DeserializeOwned + Default>(body: &[u8]) -> Result<T, Refusal> {
    if body.trim_ascii().is_empty() {
        return Ok(T::default());
    }
    serde_json::from_slice(body).map_err(|error| Refusal::NotUnderstood {
        why: error.to_string(),
    })
}

fn nothing(body: &[u8], order: Order) -> Result<Order, Refusal> {
    read::<NoBody>(body).map(|_| order)
}

/// Does what is said.
pub(crate) async fn obey(
    saying: Saying,
    State(inner): State<Arc<Inner>>,
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Json<Value>, Refusal> {
    let who = actor(&inner, &request)?;
    let room = room_of(&inner.node, name)?;
    let body = to_bytes(request.into_body(), BODY_BYTES_MAX).await;
    let order = saying.order(&body.map_err(|_| Refusal::Body)?)?;
    let (obeyed, by) = (order.clone(), Arc::clone(&room));
    // A task of its own: what was written down is to hold here too, whether anybody waits for it or not.
    let saying = tokio::spawn(async move { by.obey(&obeyed, &who).await });
    match timeout(PATIENCE, saying).await {
        Ok(Ok(Ok(()))) => {}
        Ok(Ok(Err(ObeyError::Refused(problems)))) => {
            let problems = problems.0.iter().map(ToString::to_string).collect();
            return Err(Refusal::NotAllowed { problems });
        }
        other => {
            tracing::warn!(room = %room.config().name, ?other, "an operator was not obeyed");
            return Err(Refusal::StoreAway);
        }
    }
    if let Order::AssumeEmpty = order {
        return assume_empty(&inner, &room).await;
    }
    Ok(Json(json(&room.shown())))
}

/// What holds in a room, and where it comes from.
pub(crate) async fn settings(
    State(inner): State<Arc<Inner>>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<Shown>, Refusal> {
    let room = room_of(&inner.node, name)?;
    room.hear_orders().await;
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
    match timeout(PATIENCE, room.log_of_orders()).await {
        Ok(Ok(log)) => Ok(Json(log)),
        _ => Err(Refusal::StoreAway),
    }
}

async fn assume_empty(inner: &Inner, room: &RoomHandle) -> Result<Json<Value>, Refusal> {
    let done = timeout(PATIENCE, room.assume_empty()).await;
    if !matches!(done, Ok(Ok(()))) {
        tracing::warn!(room = %room.config().name, ?done, "cannot assume that the room is empty");
        return Err(Refusal::StoreAway);
    }
    tracing::warn!(
        room = %room.config().name,
        "an operator says that nobody is inside: the room admits without waiting for what may have \
         been lent before"
    );
    Ok(Json(json(
        &state_of(room, Clocks::read(inner.node.clock())).await,
    )))
}

/// For our own structs only: their keys are strings and none of their fields can fail.
pub(crate) fn json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("structs with string keys always serialise")
}

/// Who asks, if it is somebody who may.
pub(crate) fn actor(inner: &Inner, request: &Request) -> Result<Actor, Refusal> {
    let peer = request.extensions().get::<Peer>();
    let address = peer.map_or_else(|| "unknown".to_owned(), |Peer(address)| address.to_string());
    let shown = bearer(request.headers());
    let Some(token) = shown.and_then(|shown| inner.tokens.name_of(shown)) else {
        tracing::warn!(
            from = address,
            path = %request.uri().path(),
            has_token = shown.is_some(),
            "somebody without a valid token wanted to change something or to read who did"
        );
        return Err(Refusal::NoToken);
    };
    let user = request.headers().get(&OPERATOR);
    let user = user.and_then(|user| user.to_str().ok());
    let user = user.map(|user| user.chars().take(USER_CHARS_MAX).collect());
    Ok(Actor {
        token,
        user,
        address,
    })
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
