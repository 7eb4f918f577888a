//! Server-sent events that make a page near the front poll at the right moment: their path,
//! responses and events.
//!
//! A stream carries no positions and no tickets. Its only message is "poll now", and the page then
//! polls as usual. A stream that is lost, late or rejected costs nothing but speed, and a room
//! treats visitors with and without a stream alike.

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use http::{Response, StatusCode};

use super::WaitingView;

/// Path of the endpoint, on every host that has a room.
pub(crate) const PATH: &str = "/.well-known/anteroom/events";

/// Number of visitors near the front. They poll every few seconds anyway; for those behind them a
/// fraction of a second does not matter.
const NEAR: u32 = 64;

/// First event of a stream. A client that loses the stream waits this long before it reconnects.
pub(crate) const HELLO: Bytes = Bytes::from_static(b"retry: 30000\n\n");
/// Event that makes the page poll.
pub(crate) const POLL: Bytes = Bytes::from_static(b"event: ask\ndata: 1\n\n");
/// Comment line without content that keeps the connection alive.
pub(crate) const KEEP_ALIVE: Bytes = Bytes::from_static(b":\n\n");
/// Last event of a stream.
pub(crate) const END: Bytes = Bytes::from_static(b"event: end\ndata: 1\n\n");

/// Whether this visitor should open a stream: near the front of a queue that moves.
#[must_use]
pub(crate) fn is_near(view: &WaitingView<'_>) -> bool {
    view.is_moving() && view.position.people_ahead.is_some_and(|ahead| ahead < NEAR)
}

/// Builds the response with an event stream.
#[must_use]
pub(crate) fn stream<B>(body: B) -> Response<B> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    let content_type = HeaderValue::from_static("text/event-stream");
    headers.insert(CONTENT_TYPE, content_type);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Proxies that buffer responses would delay the events.
    const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    response
}

/// Builds the response to a visitor without a ticket, or for a room that is removed or suspended.
/// With this status browsers do not reconnect.
#[must_use]
pub(crate) fn no_stream() -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let no_store = HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, no_store);
    response
}

/// Builds the response when there are too many streams.
#[must_use]
pub(crate) fn too_many() -> Response<Bytes> {
    let mut response = no_stream();
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let seconds = HeaderValue::from_static("30");
    response.headers_mut().insert(RETRY_AFTER, seconds);
    response
}

#[cfg(test)]
mod tests {
    use crate::page::samples;
    use anteroom_room::queue_position::QueueReason;

    use super::super::position_endpoint;
    use super::*;

    #[test]
    fn only_visitors_near_the_front_of_a_moving_queue_get_streams() {
        for reason in samples::REASONS {
            let mut view = samples::view(reason);
            let moves = matches!(reason, QueueReason::Full | QueueReason::NotYourTurn);
            for (ahead, is_close) in [(Some(0), true), (Some(63), true), (Some(64), false)] {
                view.position.people_ahead = ahead;
                assert_eq!(is_near(&view), moves && is_close, "{reason:?} {ahead:?}");
            }
            view.position.people_ahead = None;
            assert!(!is_near(&view));
        }
    }

    #[test]
    fn events_are_complete_and_responses_are_not_cached() {
        for event in [HELLO, POLL, KEEP_ALIVE, END] {
            assert!(event.ends_with(b"\n\n"), "{event:?}");
        }
        for (response, status) in [(no_stream(), 204), (too_many(), 503), (stream(HELLO), 200)] {
            assert_eq!(response.status(), status);
            assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
        }
        // The page's script derives one path from the other.
        assert_eq!(
            position_endpoint::PATH.replace("/position", "/events"),
            PATH
        );
    }
}
