//! Authentication and body of an operator's command.

use anteroom_config::overrides::Actor;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, HeaderName};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api_error::ApiError;
use crate::api_state::Inner;
use crate::serve::Peer;

/// Maximum bytes of a body. Every key and the longest message fit many times over.
pub(crate) const BODY_BYTES_MAX: usize = 16 * 1024;

/// Header with the operator's name, as the client states it.
const OPERATOR: HeaderName = HeaderName::from_static("anteroom-operator");
/// Maximum characters of a user's name in the audit log.
const USER_CHARS_MAX: usize = 64;

/// Body without fields.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoBody {}

/// Parses a body; an empty one is the default.
pub(crate) fn read<T: DeserializeOwned + Default>(body: &[u8]) -> Result<T, ApiError> {
    if body.trim_ascii().is_empty() {
        return Ok(T::default());
    }
    serde_json::from_slice(body).map_err(|error| ApiError::Malformed {
        error: error.to_string(),
    })
}

/// Serializes one of our own structs: their keys are strings, and none of their fields can fail.
pub(crate) fn json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("structs with string keys always serialize")
}

/// Returns the operator behind a request, if the request has a valid token.
pub(crate) fn actor(inner: &Inner, request: &Request) -> Result<Actor, ApiError> {
    let peer = request.extensions().get::<Peer>();
    let address = peer.map_or_else(|| "unknown".to_owned(), |Peer(address)| address.to_string());
    let shown = bearer(request.headers());
    let Some(token) = shown.and_then(|shown| inner.tokens.name_of(shown)) else {
        tracing::warn!(
            from = address,
            path = %request.uri().path(),
            has_token = shown.is_some(),
            "request without a valid token rejected"
        );
        return Err(ApiError::NoToken);
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
