//! Responses to requests without a slot.

use http::Method;
use serde_json::Value;

use crate::support::client::TestResponse;
use crate::support::site::{Site, until_inside};

const HTML: (&str, &str) = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
const DOCUMENT: (&str, &str) = ("sec-fetch-dest", "document");
const SCRIPT: (&str, &str) = ("sec-fetch-dest", "empty");
const ANY: (&str, &str) = ("accept", "*/*");

/// Text of the page after a form.
const NOTHING_SENT: &str = "<b>Your form was not sent</b>";

/// Keys that clients of hosted waiting rooms know, and our three.
const KEYS: [&str; 28] = [
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
];

/// Checks properties of all waiting responses.
#[track_caller]
fn check_waiting(response: &TestResponse, what: &str) {
    assert!(response.is_queued(), "{what}: {}", response.text());
    assert!(!response.status.is_redirection(), "{what}");
    for name in ["location", "refresh"] {
        assert!(!response.headers.contains_key(name), "{what}: {name}");
    }
    assert_eq!(response.headers["cache-control"], "no-store", "{what}");
    let vary = response.headers["vary"].to_str().unwrap();
    for name in ["Accept", "Sec-Fetch-Dest", "Cookie"] {
        assert!(vary.contains(name), "{what}: {vary}");
    }
    let seconds: u64 = response.headers["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!(seconds >= 1, "{what}");
    let cookies: Vec<_> = response.headers.get_all("set-cookie").iter().collect();
    assert_eq!(cookies.len(), 1, "{what}");
}

#[track_caller]
fn check_json(body: &Value, what: &str) {
    let room = body["cfWaitingRoom"].as_object();
    let room = room.unwrap_or_else(|| panic!("{what}: {body}"));
    for key in KEYS {
        assert!(room.contains_key(key), "{what}: {key} is missing");
    }
    assert_eq!(room["inWaitingRoom"], true, "{what}");
    assert_eq!(room["reason"], "full", "{what}");
    assert_eq!(room["position"], 1, "{what}");
    assert_eq!(room["peopleAhead"], 0, "{what}");
    assert_eq!(room["queueingMethod"], "fifo", "{what}");
    assert!(
        room["refreshIntervalSeconds"].as_u64().unwrap() >= 1,
        "{what}"
    );
}

async fn full_site(more: &str) -> Site {
    let site = Site::with_room(1, more).await;
    site.insider().await;
    site
}

#[tokio::test]
async fn a_navigation_gets_the_page() {
    let site = full_site("queueing_status_code = 202").await;
    let navigations: [&[_]; 3] = [&[DOCUMENT, HTML], &[DOCUMENT], &[HTML]];
    for headers in navigations {
        for method in [Method::GET, Method::HEAD] {
            let what = format!("{method} {headers:?}");
            let is_head = method == Method::HEAD;
            let response = site.visitor().send(method, "/buy", headers, "").await;
            check_waiting(&response, &what);
            assert_eq!(response.status, 202, "{what}");
            assert_eq!(response.headers["content-type"], "text/html; charset=utf-8");
            assert_eq!(
                response.text().contains("<!doctype html>"),
                !is_head,
                "{what}"
            );
            assert!(!response.text().contains(NOTHING_SENT), "{what}");
        }
    }
    assert_eq!(site.origin.count(), 1);
}

#[tokio::test]
async fn after_a_form_the_page_notes_that_it_was_not_sent() {
    let site = full_site("").await;
    let headers = [
        DOCUMENT,
        HTML,
        ("content-type", "application/x-www-form-urlencoded"),
    ];
    let mut visitor = site.visitor();
    let response = visitor
        .send(Method::POST, "/buy", &headers, "card=4111")
        .await;
    check_waiting(&response, "a form");
    assert_eq!(response.status, 200);
    let page = response.text();
    assert!(page.contains(NOTHING_SENT), "{page}");
    assert!(!page.contains("4111"));
    assert_eq!(site.origin.count(), 1);
}

#[tokio::test]
async fn a_program_gets_every_field_and_a_status_of_failure() {
    let site = full_site("").await;
    let readers: [&[_]; 5] = [
        &[],
        &[ANY],
        &[SCRIPT, ANY],
        &[SCRIPT, ("accept", "application/json, text/plain, */*")],
        &[("accept", "text/event-stream")],
    ];
    for headers in readers {
        let what = format!("{headers:?}");
        let response = site
            .visitor()
            .send(Method::GET, "/stock", headers, "")
            .await;
        check_waiting(&response, &what);
        assert_eq!(response.status, 429, "{what}");
        assert_eq!(
            response.headers["content-type"],
            "application/json; charset=utf-8"
        );
        check_json(&response.json(), &what);
    }
    let head = site.visitor().send(Method::HEAD, "/stock", &[], "").await;
    check_waiting(&head, "HEAD");
    assert_eq!(head.status, 429);
    assert!(head.body.is_empty());
    assert_eq!(site.origin.count(), 1);
}

#[tokio::test]
async fn a_subresource_gets_the_rooms_status_and_no_body() {
    let site = full_site("non_navigation_status_code = 503").await;
    let parts: [&[_]; 3] = [
        &[("sec-fetch-dest", "image"), ("accept", "image/avif,*/*")],
        &[("sec-fetch-dest", "script"), ANY],
        &[("accept", "image/webp,image/*,*/*;q=0.8")],
    ];
    for headers in parts {
        let what = format!("{headers:?}");
        let response = site
            .visitor()
            .send(Method::GET, "/lamp.png", headers, "")
            .await;
        check_waiting(&response, &what);
        assert_eq!(response.status, 503, "{what}");
        assert!(!response.headers.contains_key("content-type"), "{what}");
        assert!(response.body.is_empty(), "{what}");
    }
    assert_eq!(site.origin.count(), 1);
}

#[tokio::test]
async fn a_program_that_writes_or_upgrades_is_rejected() {
    let site = full_site("queueing_status_code = 200").await;
    let socket: &[_] = &[
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let grpc: &[_] = &[("content-type", "application/grpc"), ("te", "trailers")];
    let requests: [(Method, &[_], &str); 7] = [
        (Method::POST, &[SCRIPT, ANY], "{}"),
        (Method::POST, &[SCRIPT, HTML], "{}"),
        (Method::PUT, &[], "x"),
        (Method::DELETE, &[DOCUMENT], ""),
        (
            Method::OPTIONS,
            &[("origin", "https://elsewhere.example")],
            "",
        ),
        (Method::GET, socket, ""),
        (Method::POST, grpc, "\0\0\0\0\0"),
    ];
    for (method, headers, body) in requests {
        let what = format!("{method} {headers:?}");
        let response = site.visitor().send(method, "/cart", headers, body).await;
        check_waiting(&response, &what);
        assert_eq!(response.status, 429, "{what}");
        check_json(&response.json(), &what);
    }
    assert_eq!(site.origin.count(), 1);
}

#[tokio::test]
async fn a_queued_request_is_never_sent_later() {
    let site = Site::with_room(1, "").await;
    let mut inside = site.insider().await;
    let mut waiting = site.visitor();
    let sent = waiting.send(Method::POST, "/cart", &[SCRIPT], "eggs").await;
    assert_eq!(sent.status, 429);
    waiting
        .send(Method::POST, "/form", &[DOCUMENT, HTML], "milk")
        .await;

    inside.navigate("/logout").await;
    until_inside(&mut waiting, "/welcome").await;
    let seen: Vec<_> = site
        .origin
        .heads()
        .into_iter()
        .map(|head| head.target)
        .collect();
    assert_eq!(seen, ["/", "/logout", "/welcome"]);
}

#[tokio::test]
async fn exactly_json_gets_json_with_the_page_status_where_configured() {
    let site = full_site("json_response_enabled = true\nqueueing_status_code = 202").await;
    let exactly = ("accept", "application/json");
    let header_sets: [&[_]; 3] = [&[DOCUMENT, exactly], &[SCRIPT, exactly], &[exactly]];
    for headers in header_sets {
        let what = format!("{headers:?}");
        let response = site.visitor().send(Method::GET, "/", headers, "").await;
        check_waiting(&response, &what);
        assert_eq!(response.status, 202, "{what}");
        check_json(&response.json(), &what);
    }
}

#[tokio::test]
async fn a_page_is_compressed_for_clients_that_read_gzip() {
    let site = full_site("").await;
    let plain = [DOCUMENT, HTML];
    let page = site.visitor().send(Method::GET, "/", &plain, "").await;
    assert!(!page.headers.contains_key("content-encoding"));
    let gzip = [DOCUMENT, HTML, ("accept-encoding", "gzip, deflate, br")];
    let packed = site.visitor().send(Method::GET, "/", &gzip, "").await;
    assert!(packed.is_queued());
    assert_eq!(packed.headers["content-encoding"], "gzip");
    assert!(packed.body.len() * 2 < page.body.len());
    let small = [ANY, ("accept-encoding", "gzip")];
    let json = site.visitor().send(Method::GET, "/", &small, "").await;
    assert!(!json.headers.contains_key("content-encoding"), "too small");
}

#[tokio::test]
async fn a_form_that_met_the_queue_leads_to_its_page_or_to_the_room() {
    let site = full_site("").await;
    let host = site.gateway.address;
    for (referer, entry) in [
        (format!("http://{host}/cart?a=1"), "/cart?a=1"),
        (format!("http://{host}/buy"), "/"),
        ("https://other.example/cart".to_owned(), "/"),
    ] {
        let headers = [DOCUMENT, HTML, ("referer", referer.as_str())];
        let mut visitor = site.visitor();
        let page = visitor
            .send(Method::POST, "/buy", &headers, "a=b")
            .await
            .text();
        let go = format!("class=\"btn\" href=\"{entry}\"");
        assert!(page.contains(&go), "{referer}: {page}");
        assert!(page.contains(&format!(";url={entry}\"")), "{referer}");
    }
}

#[tokio::test]
async fn a_visitor_leaves_the_queue_by_a_form_of_the_page_only() {
    let site = full_site("").await;
    let mut visitor = site.visitor();
    let page = visitor.navigate("/lamps").await.text();
    let path = "/.well-known/anteroom/leave?room=main&lang=en&back=%2Flamps";
    assert!(page.contains(&path.replace('&', "&amp;")), "{page}");
    let foreign = [("sec-fetch-site", "cross-site")];
    let response = visitor.send(Method::POST, path, &foreign, "").await;
    assert_eq!(response.status, 400);
    let link = visitor.get(path).await;
    assert_eq!(link.status, 303, "a link ends no wait");
    assert!(!link.headers.contains_key("set-cookie"));
    let own = [("sec-fetch-site", "same-origin")];
    let response = visitor.send(Method::POST, path, &own, "").await;
    assert_eq!(response.status, 200);
    let cookie = response.headers["set-cookie"].to_str().unwrap();
    assert!(cookie.contains("Max-Age=0"), "{cookie}");
    assert!(response.text().contains("You left the line"));
}
