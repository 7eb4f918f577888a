//! Authentication and body of an operator's command.

use std::sync::Arc;
use std::time::Duration;

use anteroom_config::overrides::Actor;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, HeaderName};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;
use tokio::sync::Semaphore;

use crate::api_error::{ApiError, ProblemBody};
use crate::api_state::Inner;
use crate::duplicate_keys::{duplicate_key, step};
use crate::hosts::AllowedHosts;
use crate::serve::Peer;
use crate::tokens::Role;

/// Maximum bytes of a body. Every key and the longest message fit many times over.
pub(crate) const BODY_BYTES_MAX: usize = 16 * 1024;

/// Header with the operator's name, as the client states it.
const OPERATOR: HeaderName = HeaderName::from_static("anteroom-operator");
/// Header with a token, beside one with an e-mail address.
const KEY: HeaderName = HeaderName::from_static("x-auth-key");
/// Maximum characters of a user's name in the audit log.
const USER_CHARS_MAX: usize = 64;

/// Body without fields.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct NoBody {}

/// Parses a body; an empty one is the default.
pub(crate) fn read<T: DeserializeOwned + Default>(body: &[u8]) -> Result<T, ApiError> {
    if body.trim_ascii().is_empty() {
        return Ok(T::default());
    }
    parse(body)
}

/// Parses a body.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    if let Some(pointer) = duplicate_key(body) {
        let problem = ProblemBody::at(pointer, "found twice; allowed: once".to_owned());
        return Err(ApiError::Malformed { problem });
    }
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let parsed = serde_path_to_error::deserialize(&mut deserializer);
    let value = parsed.map_err(|error| {
        let mut pointer = String::new();
        for place in error.path() {
            match place {
                Segment::Seq { index } => pointer.push_str(&format!("/{index}")),
                Segment::Map { key } | Segment::Enum { variant: key } => {
                    pointer.push_str(&step(key));
                }
                Segment::Unknown => {}
            }
        }
        let message = error.inner().to_string();
        ApiError::Malformed {
            problem: if pointer.is_empty() {
                ProblemBody::about_all(message)
            } else {
                ProblemBody::at(pointer, message)
            },
        }
    })?;
    deserializer.end().map_err(|error| ApiError::Malformed {
        problem: ProblemBody::about_all(error.to_string()),
    })?;
    Ok(value)
}

/// Delay of the response to a wrong token. It slows guesses down, and no valid token waits.
const DELAY_OF_WRONG_TOKENS: Duration = Duration::from_millis(250);
/// Most responses that are delayed at once, so that a flood of wrong tokens leaves connections for
/// valid ones.
const DELAYED_MAX: usize = 16;

/// Delays of responses to wrong tokens.
#[derive(Debug)]
pub(crate) struct WrongTokens(Semaphore);

impl Default for WrongTokens {
    fn default() -> Self {
        Self(Semaphore::new(DELAYED_MAX))
    }
}

impl WrongTokens {
    /// Waits before a response. Of too many at once, the rest gets another error at once.
    async fn delay(&self) -> ApiError {
        let Ok(_permit) = self.0.try_acquire() else {
            return ApiError::Busy;
        };
        tokio::time::sleep(DELAY_OF_WRONG_TOKENS).await;
        ApiError::NoToken
    }
}

/// Returns the operator behind a request, if the request has a valid token of this role or a higher
/// one. The request is looked at before the future is polled.
pub(crate) fn actor<'a>(
    inner: &'a Inner,
    request: &Request,
    needed: Role,
) -> impl Future<Output = Result<Actor, ApiError>> + Send + use<'a> {
    let actor = actor_at_once(inner, request, needed);
    async move {
        match actor {
            Err(Refusal::WrongToken) => Err(inner.wrong_tokens.delay().await),
            Err(Refusal::Other(error)) => Err(error),
            Ok(actor) => Ok(actor),
        }
    }
}

/// Checks that a request may read metrics and states: at a loopback address every request may, and
/// elsewhere one with a token.
pub(crate) fn check_reader<'a>(
    inner: &'a Inner,
    request: &Request,
) -> impl Future<Output = Result<(), ApiError>> + Send + use<'a> {
    let hosts = request.extensions().get::<Arc<AllowedHosts>>();
    let is_open = hosts.is_some_and(|hosts| hosts.is_loopback());
    let reader = (!is_open).then(|| actor(inner, request, Role::Viewer));
    async move {
        match reader {
            Some(reader) => reader.await.map(drop),
            None => Ok(()),
        }
    }
}

/// Reason why a request has no operator.
enum Refusal {
    WrongToken,
    Other(ApiError),
}

fn actor_at_once(inner: &Inner, request: &Request, needed: Role) -> Result<Actor, Refusal> {
    let peer = request.extensions().get::<Peer>();
    let address = peer.map_or_else(|| "unknown".to_owned(), |Peer(address)| address.to_string());
    let shown = bearer(request.headers());
    let Some(holder) = shown.and_then(|shown| inner.tokens.holder_of(shown)) else {
        tracing::warn!(
            from = address,
            path = %request.uri().path(),
            has_token = shown.is_some(),
            "request without a valid token rejected"
        );
        return Err(match shown {
            Some(_) => Refusal::WrongToken,
            None => Refusal::Other(ApiError::NoToken),
        });
    };
    if holder.role < needed {
        tracing::warn!(
            from = address,
            path = %request.uri().path(),
            token = holder.name,
            role = holder.role.word(),
            needed = needed.word(),
            "request of a token without the role rejected"
        );
        let (needed, role) = (needed.word(), holder.role.word());
        let problem = format!("needed: {needed}, role of the token: {role}");
        return Err(Refusal::Other(ApiError::Role { problem }));
    }
    let user = request.headers().get(&OPERATOR);
    let user = user.and_then(|user| user.to_str().ok());
    let user = user.map(|user| user.chars().take(USER_CHARS_MAX).collect());
    Ok(Actor {
        token: holder.name,
        user,
        address,
    })
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    // Older clients of Cloudflare's API send the token as a key.
    let Some(value) = headers.get(AUTHORIZATION) else {
        return headers.get(KEY)?.to_str().ok();
    };
    let value = value.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn wrong_tokens_wait_and_leave_connections_for_valid_ones() {
        let (wrong, start) = (WrongTokens::default(), Instant::now());
        let responses = (0..DELAYED_MAX + 3).map(|_| async {
            let error = wrong.delay().await;
            (error, start.elapsed())
        });
        let responses = join_all(responses).await;
        let (delayed, rest) = responses.split_at(DELAYED_MAX);
        assert!(delayed.iter().all(|(error, after)| {
            *error == ApiError::NoToken && *after >= DELAY_OF_WRONG_TOKENS
        }));
        assert!(
            rest.iter()
                .all(|(error, after)| { *error == ApiError::Busy && after.is_zero() })
        );
        assert_eq!(wrong.delay().await, ApiError::NoToken, "all are free again");
    }
}
