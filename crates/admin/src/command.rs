//! Who sends a command of an operator, and what stands in it?

use anteroom_config::overrides::Actor;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, HeaderName};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::inner::Inner;
use crate::refusal::Refusal;
use crate::serve::Peer;

/// Bytes of a body: every key there is and the longest message fit in many times.
pub(crate) const BODY_BYTES_MAX: usize = 16 * 1024;

/// Who they say they are.
const OPERATOR: HeaderName = HeaderName::from_static("anteroom-operator");
/// Longest name of a user that is written down.
const USER_CHARS_MAX: usize = 64;

/// A body that says nothing.
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
