//! How is somebody near the front told that it should ask now? Server-sent events: the address, the
//! answers, the events.
//!
//! A stream carries no places and no tickets: it only says "ask", and the page then asks as it
//! always does. So a stream that is lost, late or refused costs nothing but speed, and the room
//! counts those who listen exactly as those who do not.

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use http::{Response, StatusCode};

use super::WaitingView;

/// Path of the endpoint, on every host that has a room.
pub(crate) const PATH: &str = "/.well-known/anteroom/events";

/// How many stand near the front. They ask every few seconds anyway; behind them a turn is too far
/// off for a fraction of a second to count.
const NEAR: u32 = 64;

/// Begins a stream; whoever loses it waits this long before trying again.
pub(crate) const HELLO: Bytes = Bytes::from_static(b"retry: 30000\n\n");
/// Ask now.
pub(crate) const ASK: Bytes = Bytes::from_static(b"event: ask\ndata: 1\n\n");
/// Nothing; tells both sides, and what stands between them, that the other one is there.
pub(crate) const STILL_HERE: Bytes = Bytes::from_static(b":\n\n");
/// No more will come.
pub(crate) const END: Bytes = Bytes::from_static(b"event: end\ndata: 1\n\n");

/// Whether this visitor should listen: near the front of a line that moves.
#[must_use]
pub(crate) fn is_near(view: &WaitingView<'_>) -> bool {
    view.is_moving() && view.place.people_ahead.is_some_and(|ahead| ahead < NEAR)
}

/// The head of a stream.
#[must_use]
pub(crate) fn stream<B>(body: B) -> Response<B> {
    let mut answer = Response::new(body);
    let headers = answer.headers_mut();
    let kind = HeaderValue::from_static("text/event-stream");
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Proxies that collect answers would keep the events until there are many.
    const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    answer
}

/// The answer to somebody who has nothing to listen for: no place, or a room that is gone or off.
/// By this status browsers do not come back.
#[must_use]
pub(crate) fn nothing_to_say() -> Response<Bytes> {
    let mut answer = Response::new(Bytes::new());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    let no_store = HeaderValue::from_static("no-store");
    answer.headers_mut().insert(CACHE_CONTROL, no_store);
    answer
}

/// The answer when as many listen as may.
#[must_use]
pub(crate) fn too_many() -> Response<Bytes> {
    let mut answer = nothing_to_say();
    *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let seconds = HeaderValue::from_static("30");
    answer.headers_mut().insert(RETRY_AFTER, seconds);
    answer
}

#[cfg(test)]
mod tests {
    use crate::page::samples;
    use anteroom_room::decision::QueueReason;

    use super::super::position_endpoint;
    use super::*;

    #[test]
    fn only_those_near_the_front_of_a_line_that_moves_listen() {
        for reason in samples::REASONS {
            let mut view = samples::view(reason);
            let moves = matches!(reason, QueueReason::Full | QueueReason::NotYourTurn);
            for (ahead, is_close) in [(Some(0), true), (Some(63), true), (Some(64), false)] {
                view.place.people_ahead = ahead;
                assert_eq!(is_near(&view), moves && is_close, "{reason:?} {ahead:?}");
            }
            view.place.people_ahead = None;
            assert!(!is_near(&view));
        }
    }

    #[test]
    fn events_are_whole_and_no_answer_is_kept_by_caches() {
        for event in [HELLO, ASK, STILL_HERE, END] {
            assert!(event.ends_with(b"\n\n"), "{event:?}");
        }
        for (answer, status) in [
            (nothing_to_say(), 204),
            (too_many(), 503),
            (stream(HELLO), 200),
        ] {
            assert_eq!(answer.status(), status);
            assert_eq!(answer.headers()[CACHE_CONTROL], "no-store");
        }
        // What the page's script makes of the address that it asks.
        assert_eq!(position_endpoint::PATH.replace("/place", "/events"), PATH);
    }
}
