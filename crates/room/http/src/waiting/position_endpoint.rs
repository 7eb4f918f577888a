//! How does a waiting page ask where it stands? The address, its query, and the two answers.
//!
//! Pure pieces: asking the room, tickets and the choice of the room's routes are the caller's. The
//! answer to one who waits is `cfWaitingRoom`, as everywhere, plus what only our page needs: its
//! words, and the time to the next question in milliseconds.

use crate::page::{WaitingView, Words};
use anteroom_config::language::Language;
use anteroom_store::wire::place::WaitingBody;
use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{Response, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::json::{JSON, retry_after, to_json};
use anteroom_proxy::status::Refusal;

/// Path of the endpoint, on every host that has a room.
pub const PATH: &str = "/.well-known/anteroom/place";

/// Longest room name in bytes; a config file admits none that is longer.
const ROOM_BYTES_MAX: usize = 64;

/// What a room name may hold unescaped.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');

/// The address that the page of `room` asks, to be answered in its language.
pub(super) fn url(room: &str, language: Language) -> String {
    let room = utf8_percent_encode(room, ESCAPED);
    format!("{PATH}?room={room}&lang={}", language.tag())
}

/// The language that a query asks for; `None` if it names none of ours.
#[must_use]
pub fn language_of(query: &str) -> Option<Language> {
    let mut pairs = query.split('&');
    Language::of_tag(pairs.find_map(|pair| pair.strip_prefix("lang="))?)
}

/// The room's name in a query (without `?`), or `None` if there is not exactly one `room=` with a
/// name that a room can have: 1 to 64 of `A-Z a-z 0-9 - _`, percent-encoded or not.
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

/// What the endpoint says to one who waits.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct StillWaiting {
    #[serde(flatten)]
    place: WaitingBody,
    /// The page's sentences, so that its script has no wording of its own for them.
    words: Words,
    /// `refreshIntervalSeconds` before it was rounded up to seconds: whoever asks more than a
    /// second late near the front counts as gone.
    ask_after_ms: Option<u64>,
    /// Whether to listen for the right moment, too.
    push: bool,
}

/// The answer to a page whose visitor still waits: 200 whatever the room's queueing status is, as
/// the question itself was answered.
#[must_use]
pub fn still_waiting(view: &WaitingView<'_>, push: bool) -> Response<Bytes> {
    let body = to_json(&StillWaiting {
        place: view.body(),
        words: Words::of(view),
        ask_after_ms: view.place.ask_after.map(|span| span.0),
        push,
    });
    let mut answer = answer(StatusCode::OK, body);
    let seconds = HeaderValue::from(retry_after(view));
    answer.headers_mut().insert(RETRY_AFTER, seconds);
    answer
}

/// The answer to a page whose visitor has no reason to wait any more: it is inside, or the room is
/// suspended or gone. The page then loads its own address.
#[must_use]
pub fn not_waiting() -> Response<Bytes> {
    let body = Bytes::from_static(br#"{"cfWaitingRoom":{"inWaitingRoom":false}}"#);
    answer(StatusCode::OK, body)
}

/// The answer to a question without a valid `room=`.
#[must_use]
pub(crate) fn bad_question() -> Response<Bytes> {
    let body = concat!(
        r#"{"error":{"code":"bad_request","#,
        r#""message":"exactly one room= with a room's name is needed"}}"#,
    );
    answer(
        Refusal::BadRequest.status(),
        Bytes::from_static(body.as_bytes()),
    )
}

fn answer(status: StatusCode, body: Bytes) -> Response<Bytes> {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(VARY, HeaderValue::from_static("Cookie"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

#[cfg(test)]
mod tests {
    use crate::page::samples;
    use anteroom_room::decision::QueueReason;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(query: &str, expected: Option<&str>) {
        assert_eq!(room_of(query).as_deref(), expected, "{query}");
    }

    #[test]
    fn the_page_is_sent_the_operators_message_and_the_reason() {
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
        fn any_query_is_read_without_a_panic_and_yields_only_names(query in "\\PC{0,80}") {
            if let Some(name) = room_of(&query) {
                prop_assert_eq!(room_of(&format!("room={name}")), Some(name));
            }
        }

        #[test]
        fn the_address_on_the_page_names_the_room_of_the_page(name in "[A-Za-z0-9_-]{1,64}") {
            let url = url(&name, Language::German);
            let (path, query) = url.split_once('?').unwrap();
            prop_assert_eq!(path, PATH);
            prop_assert_eq!(room_of(query), Some(name));
            prop_assert_eq!(language_of(query), Some(Language::German));
        }
    }

    #[test]
    fn one_who_waits_is_told_the_words_of_its_page() {
        for reason in samples::REASONS {
            let view = samples::view(reason);
            let answer = still_waiting(&view, true);
            assert_eq!(answer.status(), 200);
            assert_eq!(answer.headers()[CACHE_CONTROL], "no-store");
            let body: Value = serde_json::from_slice(answer.body()).unwrap();
            assert_eq!(body["cfWaitingRoom"]["inWaitingRoom"], json!(true));
            assert_eq!(body["cfWaitingRoom"]["reason"], json!(reason.name()));
            let words = serde_json::to_value(Words::of(&view)).unwrap();
            assert_eq!(body["words"], words);
            assert_eq!(body["push"], json!(true));
            let asks = reason != QueueReason::Rejecting;
            assert_eq!(
                body["askAfterMs"],
                if asks { json!(12_300) } else { Value::Null }
            );
        }
    }

    #[test]
    fn one_who_is_in_is_told_so_and_nothing_else() {
        let body: Value = serde_json::from_slice(not_waiting().body()).unwrap();
        assert_eq!(body, json!({"cfWaitingRoom": {"inWaitingRoom": false}}));
        assert_eq!(not_waiting().headers()[CACHE_CONTROL], "no-store");
    }

    #[test]
    fn a_bad_question_is_not_taken_for_being_in() {
        let body: Value = serde_json::from_slice(bad_question().body()).unwrap();
        assert_eq!(bad_question().status(), 400);
        assert!(
            body.get("cfWaitingRoom").is_none()
                && body["error"]["code"] == Refusal::BadRequest.code()
        );
    }
}
