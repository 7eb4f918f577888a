//! Endpoint that waiting pages poll for their position: its path, its query, and its responses.
//!
//! The caller finds the room, handles tickets and gets the verdict. The response to a waiting
//! visitor is `cfWaitingRoom`, plus what only our page needs: its words, and the time until the
//! next poll in milliseconds.

use crate::page::{WaitingView, Words};
use anteroom_config::language::Language;
use anteroom_store::wire::waiting_status::WaitingBody;
use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{Response, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::json::{JSON, retry_after, to_json};
use anteroom_proxy::status::RequestError;

/// Path of the endpoint, on every host that has a room.
pub const PATH: &str = "/.well-known/anteroom/position";

/// Longest room name in bytes; a config file admits none that is longer.
const ROOM_BYTES_MAX: usize = 64;

/// Characters that are escaped in a room name.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');

/// Returns the address that a page of `room` polls, with the page's language.
pub(super) fn url(room: &str, language: Language) -> String {
    let room = utf8_percent_encode(room, ESCAPED);
    format!("{PATH}?room={room}&lang={}", language.tag())
}

/// Returns the language in a query; `None` if it names none of ours.
#[must_use]
pub fn language_of(query: &str) -> Option<Language> {
    let mut pairs = query.split('&');
    Language::of_tag(pairs.find_map(|pair| pair.strip_prefix("lang="))?)
}

/// Returns the room's name in a query (without `?`). `None` unless there is exactly one `room=`
/// with a valid name: 1 to 64 of `A-Z a-z 0-9 - _`, percent-encoded or not.
#[must_use]
pub fn room_of(query: &str) -> Option<String> {
    let mut values = query
        .split('&')
        .filter_map(|pair| pair.strip_prefix("room="));
    let value = values.next()?;
    if values.next().is_some() || value.len() > 3 * ROOM_BYTES_MAX {
        return None;
    }
    let name = percent_decode_str(value).decode_utf8().ok()?;
    let is_name = (1..=ROOM_BYTES_MAX).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    is_name.then(|| name.into_owned())
}

/// Body of the response to a waiting visitor.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct StillWaiting {
    #[serde(flatten)]
    body: WaitingBody,
    /// Sentences of the page, so that its script has none of its own.
    words: Words,
    /// `refreshIntervalSeconds` before rounding: near the front, a visitor who polls more than a
    /// second late counts as gone.
    ask_after_ms: Option<u64>,
    /// Whether the page should open an event stream as well.
    push: bool,
}

/// Builds the response to a poll of a waiting visitor: 200, whatever the room's queueing status is,
/// because the poll itself succeeded.
#[must_use]
pub fn still_waiting(view: &WaitingView<'_>, push: bool) -> Response<Bytes> {
    let body = to_json(&StillWaiting {
        body: view.body(),
        words: Words::of(view),
        ask_after_ms: view.position.refresh_after.map(|span| span.0),
        push,
    });
    let mut response = response(StatusCode::OK, body);
    let seconds = HeaderValue::from(retry_after(view));
    response.headers_mut().insert(RETRY_AFTER, seconds);
    response
}

/// Builds the response to a poll of a visitor who need not wait: it is active, or the room is
/// suspended or removed. The page then loads its own address.
#[must_use]
pub fn not_waiting() -> Response<Bytes> {
    let body = Bytes::from_static(br#"{"cfWaitingRoom":{"inWaitingRoom":false}}"#);
    response(StatusCode::OK, body)
}

/// Builds the response to a request without a valid `room=`.
#[must_use]
pub(crate) fn bad_request() -> Response<Bytes> {
    let body = concat!(
        r#"{"error":{"code":"bad_request","#,
        r#""message":"exactly one room= with a room's name is needed"}}"#,
    );
    response(
        RequestError::BadRequest.status(),
        Bytes::from_static(body.as_bytes()),
    )
}

fn response(status: StatusCode, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(VARY, HeaderValue::from_static("Cookie"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use crate::page::samples;
    use anteroom_room::queue_position::QueueReason;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(query: &str, expected: Option<&str>) {
        assert_eq!(room_of(query).as_deref(), expected, "{query}");
    }

    #[test]
    fn the_response_has_the_operators_message_and_the_reason() {
        let mut view = samples::view(QueueReason::QueueAll);
        view.is_paused = true;
        view.message = Some("Back at 10:40");
        let body: Value = serde_json::from_slice(still_waiting(&view, false).body()).unwrap();
        assert_eq!(body["words"]["message"], "Back at 10:40");
        assert_eq!(body["cfWaitingRoom"]["message"], "Back at 10:40");
        assert_eq!(body["cfWaitingRoom"]["reason"], "paused");
    }

    #[test]
    fn a_query_names_one_room_or_none() {
        check("room=shop", Some("shop"));
        check("a=b&room=Shop_1-x&c", Some("Shop_1-x"));
        check("room=%73hop", Some("shop"));
        check(&format!("room={}", "a".repeat(64)), Some(&"a".repeat(64)));
        check("", None);
        check("room", None);
        check("room=", None);
        check("rooms=shop", None);
        check("room=a&room=b", None);
        check("room=a%2Fb", None);
        check("room=a+b", None);
        check("room=%", None);
        check("room=%ff%fe", None);
        check("room=%00", None);
        check(&format!("room={}", "a".repeat(65)), None);
        check(&format!("room={}", "%61".repeat(65)), None);
    }

    proptest! {
        #[test]
        fn any_query_parses_without_a_panic_to_a_valid_name(query in "\\PC{0,80}") {
            if let Some(name) = room_of(&query) {
                prop_assert_eq!(room_of(&format!("room={name}")), Some(name));
            }
        }

        #[test]
        fn the_address_of_a_page_names_its_room(name in "[A-Za-z0-9_-]{1,64}") {
            let url = url(&name, Language::German);
            let (path, query) = url.split_once('?').unwrap();
            prop_assert_eq!(path, PATH);
            prop_assert_eq!(room_of(query), Some(name));
            prop_assert_eq!(language_of(query), Some(Language::German));
        }
    }

    #[test]
    fn the_response_has_the_words_of_the_page() {
        for reason in samples::REASONS {
            let view = samples::view(reason);
            let response = still_waiting(&view, true);
            assert_eq!(response.status(), 200);
            assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
            let body: Value = serde_json::from_slice(response.body()).unwrap();
            assert_eq!(body["cfWaitingRoom"]["inWaitingRoom"], json!(true));
            assert_eq!(body["cfWaitingRoom"]["reason"], json!(reason.name()));
            let words = serde_json::to_value(Words::of(&view)).unwrap();
            assert_eq!(body["words"], words);
            assert_eq!(body["push"], json!(true));
            let polls = reason != QueueReason::Rejecting;
            assert_eq!(
                body["askAfterMs"],
                if polls { json!(12_300) } else { Value::Null }
            );
        }
    }

    #[test]
    fn an_active_visitor_gets_only_the_end_of_the_wait() {
        let body: Value = serde_json::from_slice(not_waiting().body()).unwrap();
        assert_eq!(body, json!({"cfWaitingRoom": {"inWaitingRoom": false}}));
        assert_eq!(not_waiting().headers()[CACHE_CONTROL], "no-store");
    }

    #[test]
    fn a_bad_request_does_not_end_the_wait() {
        let body: Value = serde_json::from_slice(bad_request().body()).unwrap();
        assert_eq!(bad_request().status(), 400);
        assert!(
            body.get("cfWaitingRoom").is_none()
                && body["error"]["code"] == RequestError::BadRequest.code()
        );
    }
}
