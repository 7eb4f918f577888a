//! Event streams of waiting visitors: they announce the turn at once, take no seat, and end
//! cleanly.

use std::time::Instant;

use crate::night::{room_json, token_file};
use crate::support::client::Client;
use crate::support::eventually;
use crate::support::raw::{Raw, status_of};
use crate::support::site::Site;

const POSITION: &str = "/.well-known/anteroom/position?room=main";
const EVENTS: &str = "/.well-known/anteroom/events?room=main";

/// Opens an event stream of this visitor.
async fn listen(site: &Site, visitor: &Client) -> Raw {
    let mut raw = Raw::connect(site.gateway.address).await;
    let pairs = visitor.cookies.iter();
    let cookies: Vec<String> = pairs
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let cookies = cookies.join("; ");
    raw.send(format!(
        "GET {EVENTS} HTTP/1.1\r\nhost: shop\r\ncookie: {cookies}\r\n\r\n"
    ))
    .await;
    raw
}

/// Returns a waiting visitor who has sent its ticket back.
async fn waiting(site: &Site) -> Client {
    let mut visitor = site.visitor();
    assert!(visitor.navigate("/").await.is_queued());
    let body = visitor.get(POSITION).await.json();
    assert_eq!(body["push"], true, "near the front: {body}");
    visitor
}

/// Polls until there is no reason to wait.
async fn until_admitted(visitor: &mut Client) {
    let visitor = tokio::sync::Mutex::new(visitor);
    eventually("a poll admits", || async {
        let body = visitor.lock().await.get(POSITION).await.json();
        body["cfWaitingRoom"]["inWaitingRoom"] == false
    })
    .await;
}

#[tokio::test]
async fn a_listener_is_told_to_poll_and_enters_by_a_poll() {
    let site = Site::with_room(1, "").await;
    let mut inside = site.insider().await;
    let mut visitor = waiting(&site).await;
    let mut stream = listen(&site, &visitor).await;
    let head = stream.until("retry: 30000").await;
    assert_eq!(status_of(&head), 200);
    assert!(
        head.contains("content-type: text/event-stream\r\n"),
        "{head}"
    );
    assert!(head.contains("cache-control: no-store\r\n"), "{head}");
    assert!(!head.contains("event: ask"), "there is no seat");

    #[expect(clippy::disallowed_methods, reason = "how long it took is printed")]
    let freed_at = Instant::now();
    inside.get("/logout").await;
    stream.until("event: ask").await;
    println!("announced after {:?}", freed_at.elapsed());
    let state = site.state("main").await;
    assert_eq!(state["activeUsers"], 0, "listening took the seat: {state}");
    until_admitted(&mut visitor).await;
}

#[tokio::test]
async fn a_listener_gets_no_event_during_a_pause_and_its_turn_after() {
    let site = Site::with_room(1, "").await;
    let mut inside = site.insider().await;
    let mut visitor = waiting(&site).await;
    let mut stream = listen(&site, &visitor).await;
    stream.until("retry:").await;
    let token = token_file(&site.file.path().with_file_name("anteroom-data"));
    room_json(&site.gateway, &token, &["pause", "--message", "A minute"]).await;
    let body = visitor.get(POSITION).await.json();
    assert_eq!(body["cfWaitingRoom"]["reason"], "paused");
    assert_eq!(body["push"], false, "nothing moves: {body}");
    inside.get("/logout").await;
    eventually("the seat is free", || async {
        site.state("main").await["activeUsers"] == 0
    })
    .await;
    // That nothing will come is tested in virtual time; here, that nothing has come.
    let received = stream.received_so_far();
    assert!(!received.contains("event:"), "{received}");
    room_json(&site.gateway, &token, &["resume"]).await;
    stream.until("event: ask").await;
    until_admitted(&mut visitor).await;
}

#[tokio::test]
async fn only_waiting_visitors_get_a_stream_and_only_one_each() {
    let site = Site::with_room(1, "").await;
    let inside = site.insider().await;
    for somebody in [&site.visitor(), &inside] {
        let mut nothing = listen(&site, somebody).await;
        assert_eq!(status_of(&nothing.until("\r\n\r\n").await), 204);
    }
    let visitor = waiting(&site).await;
    let mut first = listen(&site, &visitor).await;
    first.until("retry:").await;
    let mut second = listen(&site, &visitor).await;
    second.until("retry:").await;
    let first = first.until("0\r\n\r\n").await;
    assert!(
        !first.contains("event:"),
        "replaced, without an event: {first}"
    );
    let metrics = site.operators("/metrics").await.text();
    for (verdict, count) in [("stream", 2), ("reject", 2)] {
        let counted = format!("verdict=\"{verdict}\"}} {count}");
        assert!(metrics.contains(&counted), "{counted}: {metrics}");
    }
}

#[tokio::test]
async fn streams_end_cleanly_when_the_gateway_does() {
    let mut site = Site::with_room(1, "").await;
    let _inside = site.insider().await;
    let visitor = waiting(&site).await;
    let mut stream = listen(&site, &visitor).await;
    stream.until("retry:").await;
    site.gateway.signal("TERM");
    let all = stream.rest().await;
    assert!(all.contains("event: end\ndata: 1\n\n"), "{all}");
    assert!(all.ends_with("0\r\n\r\n"), "cut off in the middle: {all}");
    assert_eq!(site.gateway.ended().await, Some(0));
    let log = site.gateway.log().join("\n");
    assert!(!log.contains("still open at the end"), "{log}");
}
