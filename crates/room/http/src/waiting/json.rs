//! What the waiting response and the place endpoint share: JSON bodies, and when to ask again.

use bytes::Bytes;
use http::HeaderValue;

use crate::page::WaitingView;

/// `Content-Type` of every JSON body here.
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// `Retry-After` where nobody queues, in seconds. There is no place to keep, so this only slows
/// programs down: shorter and a room that turns everybody away is asked as often as an open one.
const RETRY_AFTER_REJECT_SECS: u64 = 300;

/// Seconds until asking again is of use; at least 1.
pub(super) fn retry_after(view: &WaitingView<'_>) -> u64 {
    match view.place.ask_after {
        Some(span) => span.secs_ceil().max(1),
        None => RETRY_AFTER_REJECT_SECS,
    }
}

/// For our own structs only: their keys are strings and none of their fields can fail.
pub(super) fn to_json(value: &impl serde::Serialize) -> Bytes {
    let text = serde_json::to_vec(value).expect("structs with string keys always serialise");
    Bytes::from(text)
}
