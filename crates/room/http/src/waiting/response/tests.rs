//! Responses to waiting visitors: headers, status codes, size, and untrusted paths.

use crate::page::samples;
use anteroom_room::queue_position::QueueReason;
use anteroom_room::time::DurationMs;
use http::header::LOCATION;
use serde_json::Value;

use super::*;

const KINDS: [RequestKind; 6] = [
    RequestKind::Page,
    RequestKind::PageAfterPost,
    RequestKind::Json,
    RequestKind::ScriptPage,
    RequestKind::Data,
    RequestKind::Asset,
];

const LOOK: Look<'static> = Look {
    template: None,
    target: "/lamps?colour=red",
    entry: "",
    brand: None,
};

/// Responds with our own page.
fn respond(view: &WaitingView<'_>, answer: Answer) -> Response<Bytes> {
    super::respond(view, answer, LOOK)
}

fn answer(kind: RequestKind) -> Answer {
    Answer {
        kind,
        is_head: false,
        has_gzip: false,
        queueing_status: StatusCode::ACCEPTED,
        non_navigation_status: StatusCode::TOO_MANY_REQUESTS,
    }
}

#[test]
fn every_response_forbids_caching_and_has_retry_after() {
    for reason in samples::REASONS {
        for kind in KINDS {
            let response = respond(&samples::view(reason), answer(kind));
            let headers = response.headers();
            assert_eq!(headers[CACHE_CONTROL], "no-store");
            assert_eq!(headers[VARY], VARIES);
            let seconds = if reason == QueueReason::Rejecting {
                "30"
            } else {
                "13"
            };
            assert_eq!(headers[RETRY_AFTER], seconds);
            assert_eq!(headers[X_CONTENT_TYPE_OPTIONS], "nosniff");
            assert_eq!(headers["x-robots-tag"], "noindex");
            let is_empty = kind == RequestKind::Asset;
            assert_eq!(response.body().is_empty(), is_empty, "{kind:?}");
            let content_type = headers.get(CONTENT_TYPE);
            assert_eq!(content_type.is_none(), is_empty, "{kind:?}");
            if let Some(content_type) = content_type {
                assert!(content_type.to_str().unwrap().ends_with("charset=utf-8"));
            }
        }
    }
}

#[test]
fn no_response_is_a_redirect() {
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
fn navigations_and_other_requests_get_their_status_codes() {
    let view = samples::view(QueueReason::Full);
    for (queueing, other) in [(200, 429), (202, 503), (429, 503), (503, 429)] {
        for kind in KINDS {
            let answer = Answer {
                queueing_status: StatusCode::from_u16(queueing).unwrap(),
                non_navigation_status: StatusCode::from_u16(other).unwrap(),
                ..answer(kind)
            };
            let expected = match kind {
                RequestKind::Page | RequestKind::PageAfterPost | RequestKind::Json => queueing,
                RequestKind::ScriptPage | RequestKind::Data | RequestKind::Asset => other,
            };
            assert_eq!(respond(&view, answer).status(), expected, "{kind:?}");
        }
    }
}

#[test]
fn only_pages_have_a_policy_and_it_forbids_unknown_inline_code() {
    for kind in KINDS {
        let response = respond(&samples::view(QueueReason::Full), answer(kind));
        let is_page = kind.is_page();
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
fn the_policy_has_the_digests_of_the_page() {
    let response = respond(&samples::view(QueueReason::Full), answer(RequestKind::Page));
    let policy = response.headers()[CONTENT_SECURITY_POLICY]
        .to_str()
        .unwrap();
    let page = std::str::from_utf8(response.body()).unwrap();
    for (tag, directive) in [("style", "style-src"), ("script", "script-src")] {
        let (_, rest) = page.split_once(&format!("<{tag}")).unwrap();
        let (_, rest) = rest.split_once('>').unwrap();
        let source = rest.split_once(&format!("</{tag}>")).unwrap().0;
        let digest = digest::digest(&digest::SHA256, source.as_bytes());
        let expected = format!("{directive} 'sha256-{}'", STANDARD.encode(digest.as_ref()));
        assert!(policy.contains(&expected), "{policy} lacks {expected}");
    }
}

#[test]
fn an_operators_page_has_no_policy_and_reloads_by_a_header() {
    let template = CustomPage::new("<p>{{heading}} {{positionUrl}} {{backUrl}}").unwrap();
    let look = Look {
        template: Some(&template),
        ..LOOK
    };
    let view = samples::view(QueueReason::Full);
    let page = super::respond(&view, answer(RequestKind::Page), look);
    let expected =
        "<p>You’re in line /.well-known/anteroom/position?room=shop&amp;lang=en /lamps?colour=red";
    assert_eq!(page.body(), expected);
    assert_eq!(page.headers()[REFRESH], "30");
    assert!(!page.headers().contains_key(CONTENT_SECURITY_POLICY));
    let after_post = super::respond(&view, answer(RequestKind::PageAfterPost), look);
    assert_eq!(after_post.headers()[REFRESH], "60");
    let rejecting = samples::view(QueueReason::Rejecting);
    let page = super::respond(&rejecting, answer(RequestKind::Page), look);
    assert_eq!(page.headers()[REFRESH], "30");
    let json = super::respond(&view, answer(RequestKind::Json), look);
    assert_eq!(
        json.headers()[CONTENT_TYPE],
        "application/json; charset=utf-8"
    );
}

#[test]
fn a_custom_page_with_the_script_has_no_refresh_header() {
    let template = CustomPage::new("<p>{{heading}}\n{{{anteroomScript}}}").unwrap();
    let look = Look {
        template: Some(&template),
        ..LOOK
    };
    let view = samples::view(QueueReason::Full);
    for kind in [RequestKind::Page, RequestKind::PageAfterPost] {
        let page = super::respond(&view, answer(kind), look);
        assert!(
            !page.headers().contains_key(REFRESH),
            "it would interrupt the script"
        );
        let html = String::from_utf8(page.body().to_vec()).unwrap();
        assert_eq!(html.matches("http-equiv=\"refresh\"").count(), 1, "{html}");
    }
}

/// Ways in which operators' templates use an address.
const USES: [&str; 5] = [
    "<a href=\"{{backUrl}}\">",
    "<a href='{{backUrl}}'>",
    "<script>var back = '{{{backUrl}}}';</script>",
    "<script>var back = \"{{{backUrl}}}\";</script>",
    "<script>var back = '{{backUrl}}';</script>",
];

#[test]
fn an_untrusted_path_puts_no_script_or_site_into_a_page() {
    for location in USES {
        let template = CustomPage::new(location).unwrap();
        let check = |target: &str, expected: &str| {
            let look = Look {
                template: Some(&template),
                target,
                ..LOOK
            };
            let view = samples::view(QueueReason::Full);
            let page = super::respond(&view, answer(RequestKind::Page), look);
            let page = std::str::from_utf8(page.body()).unwrap();
            let (before, after) = location.split_once('{').unwrap();
            let after = after.trim_start_matches(|c: char| c != '}');
            let after = after.trim_start_matches('}');
            assert_eq!(page, format!("{before}{expected}{after}"), "{target}");
        };
        check("/lamps?colour=red", "/lamps?colour=red");
        check("/';alert(1);'", "/%27;alert(1);%27");
        check("/\";alert(1);\"", "/%22;alert(1);%22");
        check("/</script><script>", "/%3C/script%3E%3Cscript%3E");
        check("/?</script>'", "/?%3C/script%3E%27");
        check("//evil.example/", "/");
        check("/\\evil.example/", "/");
        check("*", "/");
        check(&format!("/{}", "'".repeat(100)), "");
    }
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
    assert!(page.body().len() <= 20_000, "{}", page.body().len());
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
    view.position.refresh_after = Some(DurationMs(0));
    assert_eq!(retry_after(&view), 1);
}

/// Fields of the reference, then ours.
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
        for kind in [RequestKind::Json, RequestKind::Data] {
            let response = respond(&samples::view(reason), answer(kind));
            let body: Value = serde_json::from_slice(response.body()).unwrap();
            assert_eq!(body.as_object().unwrap().len(), 1);
            let room = body["cfWaitingRoom"].as_object().unwrap();
            for key in KEYS {
                assert!(room.contains_key(key), "{key} is missing");
            }
            assert_eq!(room.len(), KEYS.len());
            assert_eq!(room["reason"], reason.name());
            let is_moving = matches!(reason, QueueReason::Full | QueueReason::NotYourTurn);
            assert_eq!(
                room["waitTimeKnown"], is_moving,
                "an estimate in a standstill"
            );
        }
    }
}
