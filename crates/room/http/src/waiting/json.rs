//! JSON bodies and `Retry-After` of the waiting response and the position endpoint.

use bytes::Bytes;
use http::HeaderValue;

use crate::page::WaitingView;

/// `Content-Type` of JSON bodies.
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// `Retry-After` of a room that rejects, in seconds. No position depends on it. Shorter, and a room
/// that rejects all visitors gets as many requests as an open one.
const RETRY_AFTER_REJECT_SECS: u64 = 300;

/// Returns the seconds until the next useful request, at least 1.
pub(super) fn retry_after(view: &WaitingView<'_>) -> u64 {
    match view.position.refresh_after {
        Some(span) => span.secs_ceil().max(1),
        None => RETRY_AFTER_REJECT_SECS,
    }
}

/// Serialises one of our own structs, whose keys are strings and whose fields cannot fail.
pub(super) fn to_json(value: &impl serde::Serialize) -> Bytes {
    let text = serde_json::to_vec(value).expect("structs with string keys always serialise");
    Bytes::from(text)
}
