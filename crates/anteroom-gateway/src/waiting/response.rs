//! Which status, headers and body does a request without a slot get?
//!
//! Never a redirect, never anything that a cache may keep. `Set-Cookie` is added by the caller.

use std::fmt::Write as _;
use std::sync::LazyLock;

use anteroom_page::{CustomPage, Links};
use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    HeaderMap, HeaderValue, REFERRER_POLICY, REFRESH, RETRY_AFTER, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, Response, StatusCode};

use super::{RequestKind, WaitingView, language, place_endpoint};

/// The `Content-Security-Policy` of our page: its own style and script by digest, questions and its
/// form to its own site, nothing else. Framing is left open: a guarded site may be embedded by its
/// owner.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let mut policy = "default-src 'none'; base-uri 'none'; form-action 'self'; \
                      connect-src 'self'; img-src data:"
        .to_owned();
    let sources = [
        ("style-src", &*anteroom_page::STYLE),
        ("script-src", &*anteroom_page::SCRIPT),
    ];
    for (directive, source) in sources {
        let digest = digest::digest(&digest::SHA256, source.as_bytes());
        let digest = STANDARD.encode(digest.as_ref());
        write!(policy, "; {directive} 'sha256-{digest}'").expect("writing to a String cannot fail");
    }
    HeaderValue::try_from(policy).expect("base64 and directives are visible ASCII")
});

/// Longest address that stands in a page for the way back. A longer one would take it over its size;
/// then the browser is asked where it came from.
const BACK_BYTES_MAX: usize = 256;

/// `Content-Type` of every JSON body here.
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// `Retry-After` where nobody queues, in seconds. There is no place to keep, so this only slows
/// programs down: shorter and a room that turns everybody away is asked as often as an open one.
const RETRY_AFTER_REJECT_SECS: u64 = 300;

/// How a waiting visitor is to be answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Answer {
    /// What the sender can make use of.
    pub kind: RequestKind,
    /// Whether the request was a HEAD: same head, no body.
    pub is_head: bool,
    /// The room's `queueing_status_code`; a refusal is 429 whatever stands here.
    pub queueing_status: StatusCode,
}

/// What a page looks like.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// The operator's own page; `None` = ours.
    pub template: Option<&'a CustomPage>,
    /// Path and query that were asked for.
    pub target: &'a str,
}

/// Builds the answer to a request without a slot.
#[must_use]
pub fn respond(view: &WaitingView<'_>, answer: Answer, look: Look<'_>) -> Response<Bytes> {
    let is_page = matches!(answer.kind, RequestKind::Page | RequestKind::PageAfterPost);
    let is_after_post = answer.kind == RequestKind::PageAfterPost;
    let (body, content_type) = if is_page {
        let html = HeaderValue::from_static("text/html; charset=utf-8");
        (Bytes::from(page(view, look, is_after_post)), html)
    } else {
        (to_json(&view.body()), JSON)
    };
    let length = body.len();
    let mut response = Response::new(if answer.is_head { Bytes::new() } else { body });
    *response.status_mut() = match answer.kind {
        RequestKind::Refused => StatusCode::TOO_MANY_REQUESTS,
        _ => answer.queueing_status,
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, content_type);
    if answer.is_head {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let vary = HeaderValue::from_static("Accept, Accept-Language, Sec-Fetch-Dest, Cookie");
    headers.insert(VARY, vary);
    headers.insert(RETRY_AFTER, HeaderValue::from(retry_after(view)));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");
    headers.insert(ROBOTS, HeaderValue::from_static("noindex"));
    if is_page {
        mark_page(headers, view, look, is_after_post);
    }
    response
}

fn page(view: &WaitingView<'_>, look: Look<'_>, is_after_post: bool) -> String {
    let place = place_endpoint::url(view.room, view.language);
    let links = Links {
        place: &place,
        language: language::PATH,
        back: Some(look.target)
            .filter(|target| target.len() <= BACK_BYTES_MAX)
            .unwrap_or_default(),
    };
    match look.template {
        Some(template) => template.html(view, links, is_after_post),
        None => anteroom_page::html(view, links, is_after_post),
    }
}

/// What a page of the operator's may load and run is the operator's business, and it has nothing that
/// asks again by itself, as in the product that such templates come from: the header does it.
fn mark_page(headers: &mut HeaderMap, view: &WaitingView<'_>, look: Look<'_>, is_after_post: bool) {
    let tag = HeaderValue::from_static(view.language.tag());
    headers.insert(CONTENT_LANGUAGE, tag);
    if look.template.is_none() {
        headers.insert(CONTENT_SECURITY_POLICY, POLICY.clone());
    } else if let Some(seconds) = CustomPage::reload_secs(view, is_after_post) {
        headers.insert(REFRESH, HeaderValue::from(seconds));
    }
}

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

#[cfg(test)]
mod tests {
    use anteroom_core::decision::QueueReason;
    use anteroom_core::time::Span;
    use http::header::LOCATION;
    use serde_json::Value;

    use super::super::samples;
    use super::*;

    const KINDS: [RequestKind; 4] = [
        RequestKind::Page,
        RequestKind::PageAfterPost,
        RequestKind::Json,
        RequestKind::Refused,
    ];

    const LOOK: Look<'static> = Look {
        template: None,
        target: "/lamps?colour=red",
    };

    /// With our own page.
    fn respond(view: &WaitingView<'_>, answer: Answer) -> Response<Bytes> {
        super::respond(view, answer, LOOK)
    }

    fn answer(kind: RequestKind) -> Answer {
        Answer {
            kind,
            is_head: false,
            queueing_status: StatusCode::ACCEPTED,
        }
    }

    #[test]
    fn every_answer_stays_out_of_caches_and_says_when_to_ask_again() {
        for reason in samples::REASONS {
            for kind in KINDS {
                let response = respond(&samples::view(reason), answer(kind));
                let headers = response.headers();
                assert_eq!(headers[CACHE_CONTROL], "no-store");
                assert_eq!(
                    headers[VARY],
                    "Accept, Accept-Language, Sec-Fetch-Dest, Cookie"
                );
                let seconds = if reason == QueueReason::Rejecting {
                    "300"
                } else {
                    "13"
                };
                assert_eq!(headers[RETRY_AFTER], seconds);
                assert_eq!(headers[X_CONTENT_TYPE_OPTIONS], "nosniff");
                assert_eq!(headers["x-robots-tag"], "noindex");
                assert!(
                    headers[CONTENT_TYPE]
                        .to_str()
                        .unwrap()
                        .ends_with("charset=utf-8")
                );
                assert!(!response.body().is_empty());
            }
        }
    }

    #[test]
    fn no_answer_is_a_redirect() {
        for reason in samples::REASONS {
            for kind in KINDS {
                let response = respond(&samples::view(reason), answer(kind));
                assert!(!response.status().is_redirection());
                assert!(!response.headers().contains_key(LOCATION));
                assert!(!response.headers().contains_key(REFRESH));
            }
        }
    }

    #[test]
    fn pages_and_json_have_the_status_of_the_room_and_refusals_429() {
        let view = samples::view(QueueReason::Full);
        for code in [200, 202, 429, 503] {
            let queueing_status = StatusCode::from_u16(code).unwrap();
            for kind in KINDS {
                let response = respond(
                    &view,
                    Answer {
                        queueing_status,
                        ..answer(kind)
                    },
                );
                let expected = if kind == RequestKind::Refused {
                    429
                } else {
                    code
                };
                assert_eq!(response.status(), expected);
            }
        }
    }

    #[test]
    fn only_pages_carry_a_policy_and_it_allows_nothing_inline_unseen() {
        for kind in KINDS {
            let response = respond(&samples::view(QueueReason::Full), answer(kind));
            let is_page = matches!(kind, RequestKind::Page | RequestKind::PageAfterPost);
            let policy = response.headers().get(CONTENT_SECURITY_POLICY);
            assert_eq!(policy.is_some(), is_page);
            if let Some(policy) = policy {
                let policy = policy.to_str().unwrap();
                assert!(policy.starts_with("default-src 'none'"), "{policy}");
                assert!(!policy.contains("unsafe"), "{policy}");
            }
        }
    }

    #[test]
    fn the_policy_names_exactly_what_stands_in_the_page() {
        let response = respond(&samples::view(QueueReason::Full), answer(RequestKind::Page));
        let policy = response.headers()[CONTENT_SECURITY_POLICY]
            .to_str()
            .unwrap();
        let page = std::str::from_utf8(response.body()).unwrap();
        for (tag, directive) in [("style", "style-src"), ("script", "script-src")] {
            let (_, rest) = page.split_once(&format!("<{tag}>")).unwrap();
            let source = rest.split_once(&format!("</{tag}>")).unwrap().0;
            let digest = digest::digest(&digest::SHA256, source.as_bytes());
            let expected = format!("{directive} 'sha256-{}'", STANDARD.encode(digest.as_ref()));
            assert!(policy.contains(&expected), "{policy} lacks {expected}");
        }
    }

    #[test]
    fn a_page_of_the_operator_has_no_policy_of_ours_and_is_loaded_again_by_a_header() {
        let template = CustomPage::new("<p>{{heading}} {{placeUrl}} {{backUrl}}").unwrap();
        let look = Look {
            template: Some(&template),
            ..LOOK
        };
        let view = samples::view(QueueReason::Full);
        let page = super::respond(&view, answer(RequestKind::Page), look);
        let expected = "<p>You are in line /.well-known/anteroom/place?room=shop&amp;lang=en /lamps?colour=red";
        assert_eq!(page.body(), expected);
        assert_eq!(page.headers()[REFRESH], "30");
        assert!(!page.headers().contains_key(CONTENT_SECURITY_POLICY));
        let after_post = super::respond(&view, answer(RequestKind::PageAfterPost), look);
        assert_eq!(after_post.headers()[REFRESH], "60");
        let rejecting = samples::view(QueueReason::Rejecting);
        let page = super::respond(&rejecting, answer(RequestKind::Page), look);
        assert!(!page.headers().contains_key(REFRESH));
        let json = super::respond(&view, answer(RequestKind::Json), look);
        assert_eq!(
            json.headers()[CONTENT_TYPE],
            "application/json; charset=utf-8"
        );
    }

    #[test]
    fn a_page_stays_small_however_long_the_address_is() {
        let view = samples::view(QueueReason::Full);
        let target = format!("/{}", "a".repeat(60_000));
        let look = Look {
            target: &target,
            ..LOOK
        };
        let page = super::respond(&view, answer(RequestKind::Page), look);
        assert!(page.body().len() <= 15_000, "{}", page.body().len());
        assert_eq!(page.headers()[CONTENT_LANGUAGE], "en");
    }

    #[test]
    fn head_has_the_length_of_the_page_and_no_body() {
        let view = samples::view(QueueReason::Full);
        let full = respond(&view, answer(RequestKind::Page));
        let head = respond(
            &view,
            Answer {
                is_head: true,
                ..answer(RequestKind::Page)
            },
        );
        assert!(head.body().is_empty());
        let length = full.body().len().to_string();
        assert_eq!(head.headers()[CONTENT_LENGTH], length.as_str());
        assert_eq!(head.headers()[CONTENT_TYPE], full.headers()[CONTENT_TYPE]);
    }

    #[test]
    fn retry_after_is_never_zero() {
        let mut view = samples::view(QueueReason::Full);
        view.place.ask_after = Some(Span(0));
        assert_eq!(retry_after(&view), 1);
    }

    /// Every field of the reference, then ours.
    const KEYS: [&str; 29] = [
        "inWaitingRoom",
        "waitTimeKnown",
        "waitTime",
        "waitTime25Percentile",
        "waitTime50Percentile",
        "waitTime75Percentile",
        "waitTimeFormatted",
        "queueIsFull",
        "queueAll",
        "lastUpdated",
        "refreshIntervalSeconds",
        "queueingMethod",
        "isFIFOQueue",
        "isRandomQueue",
        "isPassthroughQueue",
        "isRejectQueue",
        "isEventActive",
        "isEventPrequeueing",
        "timeUntilEventStart",
        "timeUntilEventStartFormatted",
        "timeUntilEventEnd",
        "timeUntilEventEndFormatted",
        "shuffleAtEventStart",
        "turnstile",
        "infiniteQueue",
        "position",
        "peopleAhead",
        "reason",
        "message",
    ];

    #[test]
    fn json_has_every_key_of_the_reference_and_ours() {
        for reason in samples::REASONS {
            for kind in [RequestKind::Json, RequestKind::Refused] {
                let response = respond(&samples::view(reason), answer(kind));
                let body: Value = serde_json::from_slice(response.body()).unwrap();
                assert_eq!(body.as_object().unwrap().len(), 1);
                let room = body["cfWaitingRoom"].as_object().unwrap();
                for key in KEYS {
                    assert!(room.contains_key(key), "{key} is missing");
                }
                assert_eq!(room.len(), KEYS.len());
                assert_eq!(room["reason"], reason.name());
                let lets_in = matches!(reason, QueueReason::Full | QueueReason::NotYourTurn);
                assert_eq!(
                    room["waitTimeKnown"], lets_in,
                    "an estimate in a standstill"
                );
            }
        }
    }
}
