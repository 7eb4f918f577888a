//! Endpoint that waiting pages poll for their position: its path, its query, and its responses.
//!
//! The caller finds the room, handles tickets and gets the verdict. The response to a waiting
//! visitor is `cfWaitingRoom`, plus what pages need: words, and the time until the next poll in
//! milliseconds. Our own page adds `k=` to its query and gets less: only what it shows, and of that
//! only what is new to it.

use crate::page::{TURN_SCRIPT, Texts, TurnView, TurnWords, WaitingView, Words, words};
use anteroom_config::language::Language;
use anteroom_room::queue_position::WaitRange;
use anteroom_room::room::request_flow::Intent;
use anteroom_store::wire::waiting_status::WaitingBody;
use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{Response, StatusCode};
use percent_encoding::percent_decode_str;

use super::json::{JSON, retry_after, to_json};
use anteroom_proxy::status::RequestError;

/// Path of the endpoint, on every host that has a room.
pub const PATH: &str = "/.well-known/anteroom/position";

/// Path that extends a turn, on every host that has a room.
pub const TURN_PATH: &str = "/.well-known/anteroom/turn";

/// Longest room name in bytes; a config file admits none that is longer.
const ROOM_BYTES_MAX: usize = 64;

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
    ask_after_ms: u64,
    /// `words.wait` before rounding, for programs that show a range of their own.
    wait_ms: Option<WaitMs>,
    /// Whether the page should open an event stream as well.
    push: bool,
}

/// Estimate of the wait in milliseconds.
#[derive(serde::Serialize)]
struct WaitMs {
    low: u64,
    middle: u64,
    high: u64,
}

impl From<WaitRange> for WaitMs {
    fn from(wait: WaitRange) -> Self {
        Self {
            low: wait.low.0,
            middle: wait.middle.0,
            high: wait.high.0,
        }
    }
}

/// Returns the key of the texts that a page of ours has; `None` unless it is one. It is empty if
/// the page has none yet.
#[must_use]
pub(crate) fn key_of(query: &str) -> Option<&str> {
    let mut pairs = query.split('&');
    pairs.find_map(|pair| pair.strip_prefix("k="))
}

/// Returns the intent of a poll: with `wait=1` it waits for the turn.
#[must_use]
pub(crate) fn intent_of(query: &str) -> Intent {
    if query.split('&').any(|pair| pair == "wait=1") {
        Intent::LongPoll
    } else {
        Intent::Poll
    }
}

/// Body of the response to our own page. Short names: hundreds of thousands of pages poll.
#[derive(serde::Serialize)]
struct Compact<'a> {
    /// Key of the texts.
    k: &'a str,
    /// Milliseconds until the next poll.
    ask: u64,
    #[serde(skip_serializing_if = "is_false")]
    push: bool,
    /// Position, 1 = next.
    #[serde(skip_serializing_if = "Option::is_none")]
    p: Option<u64>,
    /// Time of the response and of the arrival; only with the texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<u64>,
    /// Texts for what only the script shows; only in the first response.
    #[serde(skip_serializing_if = "Option::is_none")]
    t: Option<ScriptTexts>,
    w: Slots<'a>,
}

/// Texts for what only the script shows.
#[derive(serde::Serialize)]
struct ScriptTexts {
    soon: &'static str,
    tagoff: &'static str,
    off: &'static str,
    cut: &'static str,
    offtext: &'static str,
    cuttext: &'static str,
    retry: &'static str,
    last: &'static str,
    joined: &'static str,
    part: &'static str,
    updated: &'static str,
    checked: &'static str,
    check: &'static str,
    message: &'static str,
}

impl ScriptTexts {
    const fn of(language: Language) -> Self {
        let texts = Texts::of(language);
        Self {
            soon: texts.any_moment,
            tagoff: texts.tag_offline,
            off: texts.heading_offline,
            cut: texts.heading_cut,
            offtext: texts.offline,
            cuttext: texts.cut,
            retry: texts.again,
            last: texts.label_last,
            joined: texts.joined,
            part: texts.part,
            updated: texts.updated,
            checked: texts.checked,
            check: texts.check,
            message: texts.label_message,
        }
    }
}

/// Texts of the page by the ids of their elements.
#[derive(serde::Serialize)]
struct Slots<'a> {
    #[serde(flatten)]
    fixed: Option<Fixed<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    v1: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    v2: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    moved: Option<&'a str>,
}

/// Texts that stay the same from poll to poll.
#[derive(serde::Serialize)]
struct Fixed<'a> {
    title: String,
    tag: &'a str,
    kind: &'a str,
    heading: &'a str,
    why: Option<&'a str>,
    message: Option<&'a str>,
    at: Option<&'a str>,
    label: Option<&'a str>,
    l1: Option<&'a str>,
    l2: Option<&'a str>,
    note: Option<&'a str>,
    rise: Option<&'a str>,
    bold: Option<&'a str>,
    keep: Option<&'a str>,
    steps: &'a [String],
    big: bool,
    full: bool,
    loss: bool,
    until: Option<u64>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde wants a function of a reference"
)]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Returns a key of texts: equal for equal ones, also on another node. FNV-1a, 32 bits: a page that
/// kept old texts for new ones of the same key would be wrong until the next change, once in four
/// billion changes.
fn key_of_texts(texts: &[u8]) -> String {
    let hash = texts.iter().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    });
    format!("{hash:08x}")
}

fn compact(view: &WaitingView<'_>, push: bool, known: &str) -> Bytes {
    let words = Words::of(view);
    let fact = |at: usize| words.facts.get(at);
    let fixed = Fixed {
        title: words.title_pattern(view),
        tag: words.tag.tag,
        kind: words.tag.kind.class(),
        heading: words.heading,
        why: words.why.as_deref(),
        message: words.message.as_deref(),
        at: words.message_at.as_deref(),
        label: words.label,
        l1: fact(0).map(|fact| fact.label),
        l2: fact(1).map(|fact| fact.label),
        note: words.note.as_deref(),
        rise: words.rise.as_deref(),
        bold: words.keep_title,
        keep: words.keep.as_deref(),
        steps: &words.steps,
        big: words.is_big,
        full: !view.has_queue(),
        loss: words.is_loss,
        until: words::opening(view).map(|opening| opening.at().0),
    };
    let key = key_of_texts(&to_json(&fixed));
    let is_new = key != known;
    let since = words.since.map(|since| since.at().0);
    to_json(&Compact {
        k: &key,
        ask: view.refresh_after().0,
        push,
        p: view.place(),
        now: is_new.then_some(view.now.0),
        since: since.filter(|_| is_new),
        t: known.is_empty().then(|| ScriptTexts::of(view.language)),
        w: Slots {
            fixed: is_new.then_some(fixed),
            number: words.number.as_deref(),
            v1: fact(0).map(|fact| &*fact.value),
            v2: fact(1).map(|fact| &*fact.value),
            moved: words.moved.as_deref(),
        },
    })
}

/// Builds the response to a poll of our own page, with as few headers as possible. `known` is the
/// key of the texts that the page has.
#[must_use]
pub fn still_waiting_page(view: &WaitingView<'_>, push: bool, known: &str) -> Response<Bytes> {
    let mut response = Response::new(compact(view, push, known));
    let headers = response.headers_mut();
    let json = HeaderValue::from_static("application/json");
    headers.insert(CONTENT_TYPE, json);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Turn {
    ends_at_ms: u64,
    now_ms: u64,
    can_extend: bool,
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct InWaitingRoom {
    in_waiting_room: bool,
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct HoldsTurn {
    cf_waiting_room: InWaitingRoom,
    turn: Turn,
    words: TurnWords,
    /// Script of a turn, which our page runs. Its policy has the digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    script: Option<&'static str>,
}

/// Builds the response to a poll of a visitor with a held turn, and to a request that extends it.
/// Programs see from `inWaitingRoom` that they may enter. Our own page gets the script as well.
#[must_use]
pub fn turn(view: &TurnView, is_own_page: bool) -> Response<Bytes> {
    let body = to_json(&HoldsTurn {
        cf_waiting_room: InWaitingRoom {
            in_waiting_room: false,
        },
        turn: Turn {
            ends_at_ms: view.turn.ends_at.0,
            now_ms: view.now.0,
            can_extend: view.turn.can_extend,
        },
        words: TurnWords::of(view),
        script: is_own_page.then(|| TURN_SCRIPT.as_str()),
    });
    response(StatusCode::OK, body)
}

/// Builds the response to a poll of a waiting visitor: 200, whatever the room's queueing status is,
/// because the poll itself succeeded.
#[must_use]
pub fn still_waiting(view: &WaitingView<'_>, push: bool) -> Response<Bytes> {
    let body = to_json(&StillWaiting {
        body: view.body(),
        words: Words::of(view),
        ask_after_ms: view.refresh_after().0,
        wait_ms: view.wait().map(WaitMs::from),
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

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Entering {
    cf_waiting_room: InWaitingRoom,
    words: EnteringWords,
}

#[derive(serde::Serialize)]
struct EnteringWords {
    tag: &'static str,
    heading: &'static str,
    now: &'static str,
    again: &'static str,
    send: &'static str,
}

/// Builds the response to a poll of our own page whose visitor enters at once.
#[must_use]
pub fn entering(language: Language) -> Response<Bytes> {
    let texts = Texts::of(language);
    let body = to_json(&Entering {
        cf_waiting_room: InWaitingRoom {
            in_waiting_room: false,
        },
        words: EnteringWords {
            tag: texts.tag_turn,
            heading: texts.heading_turn,
            now: texts.turn_now,
            again: texts.turn_again,
            send: texts.turn_send,
        },
    });
    response(StatusCode::OK, body)
}

/// Builds the response to a request that cannot be used as it is. `needed` says what it lacks.
#[must_use]
pub(crate) fn bad_request(needed: Needed) -> Response<Bytes> {
    let error = RequestError::BadRequest;
    let body = serde_json::json!({"error": {"code": error.code(), "message": needed.message()}});
    response(error.status(), Bytes::from(body.to_string()))
}

/// Part that a request for a position, a turn or an event stream lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needed {
    /// Exactly one `room=` that names a room of this host.
    Room,
    /// The method GET, or HEAD where that is allowed.
    Read,
    /// POST by a page of the same site.
    OwnForm,
}

impl Needed {
    fn message(self) -> &'static str {
        match self {
            Self::Room => "exactly one room= with a room's name is needed",
            Self::Read => "this path is read with GET",
            Self::OwnForm => "this path needs POST from a page of the same site",
        }
    }
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
    use crate::page::{Links, samples};
    use crate::waiting::language_form::query_of;
    use anteroom_room::queue_position::{HeldTurn, QueueReason};
    use anteroom_room::time::{DurationMs, Timestamp};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(query: &str, expected: Option<&str>) {
        assert_eq!(room_of(query).as_deref(), expected, "{query}");
    }

    #[test]
    fn a_poll_waits_only_if_it_says_so() {
        for query in ["room=shop&wait=1", "wait=1", "k=&wait=1&room=shop"] {
            assert_eq!(intent_of(query), Intent::LongPoll, "{query}");
        }
        for query in ["", "room=shop", "wait=0", "wait=11", "await=1", "wait"] {
            assert_eq!(intent_of(query), Intent::Poll, "{query}");
        }
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
            let query = query_of(&name, Language::German, "/lamps");
            let links = Links { query: &query, ..samples::LINKS };
            let url = links.position();
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
            // A room without a queue is asked again, because it may take visitors later.
            let polls = reason != QueueReason::Rejecting;
            assert_eq!(body["askAfterMs"], if polls { 12_300 } else { 30_000 });
        }
    }

    #[test]
    fn our_page_gets_texts_once_and_then_only_numbers() {
        let mut view = samples::view(QueueReason::NotYourTurn);
        let body = |view: &WaitingView<'_>, known: &str| -> Value {
            serde_json::from_slice(still_waiting_page(view, false, known).body()).unwrap()
        };
        let first = body(&view, "");
        assert_eq!(first["w"]["heading"], "You’re in line");
        assert_eq!(first["w"]["title"], "{n} in line \u{b7} shop");
        let key = first["k"].as_str().unwrap();
        view.position.people_ahead = Some(411);
        let second = body(&view, key);
        assert_eq!(second["p"], 412);
        assert_eq!(second["w"]["number"], "412");
        assert_eq!(second["w"]["heading"], Value::Null);
        let full = samples::view(QueueReason::Full);
        assert_eq!(
            body(&full, key)["w"]["heading"],
            Value::Null,
            "no flip-flop"
        );
        view.message = Some("Soon");
        assert_eq!(body(&view, key)["w"]["message"], "Soon");
    }

    #[test]
    fn a_poll_of_our_page_takes_less_than_300_bytes() {
        let view = samples::view(QueueReason::NotYourTurn);
        let first: Value =
            serde_json::from_slice(still_waiting_page(&view, true, "").body()).unwrap();
        let response = still_waiting_page(&view, true, first["k"].as_str().unwrap());
        let headers = response.headers().iter();
        let headers: usize = headers
            .map(|(name, value)| name.as_str().len() + value.len() + 4)
            .sum();
        assert!(response.body().len() + headers < 300);
    }

    #[test]
    fn a_held_turn_has_its_times_and_words() {
        let view = TurnView {
            turn: HeldTurn {
                ends_at: Timestamp(61_000),
                can_extend: true,
            },
            now: Timestamp(1_000),
            language: Language::English,
            session_duration: DurationMs::from_secs(900),
            is_renewed: true,
        };
        let body: Value = serde_json::from_slice(turn(&view, true).body()).unwrap();
        assert_eq!(body["cfWaitingRoom"], json!({"inWaitingRoom": false}));
        let expected = json!({"endsAtMs": 61_000, "nowMs": 1_000, "canExtend": true});
        assert_eq!(body["turn"], expected);
        assert_eq!(body["words"]["notYet"], "Not yet, hold it for 60 seconds");
        assert_eq!(body["words"]["left10"], "10 seconds left to enter.");
        let inside = "Inside you have 15 minutes. They start again with every page you open.";
        assert_eq!(body["words"]["inside"], inside);
        assert!(body["script"].is_string());
        let for_programs: Value = serde_json::from_slice(turn(&view, false).body()).unwrap();
        assert_eq!(for_programs["script"], Value::Null);
        assert_eq!(for_programs["turn"], body["turn"]);
    }

    #[test]
    fn an_active_visitor_gets_only_the_end_of_the_wait() {
        let body: Value = serde_json::from_slice(not_waiting().body()).unwrap();
        assert_eq!(body, json!({"cfWaitingRoom": {"inWaitingRoom": false}}));
        assert_eq!(not_waiting().headers()[CACHE_CONTROL], "no-store");
    }

    #[test]
    fn a_bad_request_says_what_it_lacks_and_does_not_end_the_wait() {
        for (needed, word) in [
            (Needed::Room, "room="),
            (Needed::Read, "GET"),
            (Needed::OwnForm, "POST"),
        ] {
            let response = bad_request(needed);
            let body: Value = serde_json::from_slice(response.body()).unwrap();
            assert_eq!(response.status(), 400);
            assert_eq!(body.get("cfWaitingRoom"), None);
            assert_eq!(body["error"]["code"], RequestError::BadRequest.code());
            let message = body["error"]["message"].as_str().unwrap();
            assert!(message.contains(word), "{message}");
        }
    }
}
