//! JSON bodies and `Retry-After` of the waiting response and the position endpoint.

use bytes::Bytes;
use http::HeaderValue;

use crate::page::WaitingView;

/// `Content-Type` of JSON bodies.
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// Returns the seconds until the next useful request, at least 1.
pub(super) fn retry_after(view: &WaitingView<'_>) -> u64 {
    view.refresh_after().secs_ceil().max(1)
}

/// Serialises one of our own structs, whose keys are strings and whose fields cannot fail.
pub(super) fn to_json(value: &impl serde::Serialize) -> Bytes {
    let text = serde_json::to_vec(value).expect("structs with string keys always serialise");
    Bytes::from(text)
}
