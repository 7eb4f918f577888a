//! A site's traffic passes, and the gateway waits for it at the end.

use http::Method;
use tokio::net::TcpStream;

use crate::support::config::{SERVER, room};
use crate::support::eventually;
use crate::support::raw::Raw;
use crate::support::site::Site;

/// Waits until no client can connect.
async fn until_closed(site: &Site) {
    let address = site.gateway.address;
    eventually("the listener is closed", || async {
        TcpStream::connect(address).await.is_err()
    })
    .await;
}

#[tokio::test]
async fn bodies_stream_both_ways_at_once() {
    let site = Site::with_room(1, "").await;
    let cookie = site.ticket_line().await;
    let mut raw = Raw::connect(site.gateway.address).await;
    let head =
        "POST /echo HTTP/1.1\r\nhost: a\r\nconnection: close\r\ntransfer-encoding: chunked\r\n";
    raw.send(format!("{head}{cookie}\r\n")).await;
    // Each piece comes back before the next one is sent.
    for piece in ["first", "second", "third"] {
        raw.send(format!("{:x}\r\n{piece}\r\n", piece.len())).await;
        raw.until(piece).await;
    }
    raw.send("0\r\n\r\n").await;
    assert!(raw.rest().await.ends_with("0\r\n\r\n"));

    let mut visitor = site.visitor();
    let (name, value) = cookie.trim_end()["cookie: ".len()..]
        .split_once('=')
        .unwrap();
    visitor.cookies.insert(name.to_owned(), value.to_owned());
    let large = "0123456789abcdef".repeat(512 * 1024);
    let response = visitor.send(Method::PUT, "/echo", &[], &large).await;
    assert_eq!(site.origin.last().method, Method::PUT);
    assert!(
        response.body == large,
        "{} bytes came back",
        response.body.len()
    );
}

#[tokio::test]
async fn events_arrive_as_they_are_sent() {
    let site = Site::with_room(1, "").await;
    let cookie = site.ticket_line().await;
    let mut raw = Raw::connect(site.gateway.address).await;
    let head = "GET /sse HTTP/1.1\r\nhost: a\r\naccept: text/event-stream\r\n";
    raw.send(format!("{head}{cookie}\r\n")).await;
    raw.until("content-type: text/event-stream").await;
    for event in ["data: one\n\n", "data: two\n\n"] {
        site.origin.emit(event);
        raw.until(event).await;
    }
}

const SWITCH: &str = "GET /ws HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
                      sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

#[tokio::test]
async fn a_websocket_opens_for_active_visitors_only() {
    let site = Site::with_room(1, "").await;
    let cookie = site.ticket_line().await;
    let mut inside = Raw::connect(site.gateway.address).await;
    inside.send(format!("{SWITCH}{cookie}\r\n")).await;
    let head = inside.until("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert!(head.contains("upgrade: websocket"), "{head}");
    for text in ["\u{1}ping", "pong\u{2}"] {
        inside.send(text).await;
        inside.until(text).await;
    }
    let head = site.origin.last();
    assert_eq!(head.header("sec-websocket-version").unwrap(), "13");
    assert!(head.header("cookie").is_none() && head.header("anteroom-visitor").is_some());

    let seen = site.origin.count();
    let mut waiting = Raw::connect(site.gateway.address).await;
    waiting.send(format!("{SWITCH}\r\n")).await;
    let response = waiting.until("cfWaitingRoom").await;
    assert!(response.starts_with("HTTP/1.1 429 "), "{response}");
    assert_eq!(site.origin.count(), seen);
    inside.send("still there").await;
    inside.until("still there").await;
}

#[tokio::test]
async fn an_open_request_finishes_before_the_process_ends() {
    let mut site = Site::with_room(10, "").await;
    let cookie = site.ticket_line().await;
    let mut slow = Raw::connect(site.gateway.address).await;
    let head = format!("GET /report?held HTTP/1.1\r\nhost: a\r\n{cookie}\r\n");
    slow.send(head).await;
    // An idle keep-alive connection.
    let mut idle = Raw::connect(site.gateway.address).await;
    idle.send(format!("GET / HTTP/1.1\r\nhost: a\r\n{cookie}\r\n"))
        .await;
    idle.until("the origin, at /").await;
    eventually("the origin works on it", || async {
        site.origin
            .heads()
            .iter()
            .any(|head| head.target == "/report?held")
    })
    .await;
    site.gateway.signal("TERM");
    until_closed(&site).await;
    idle.rest().await;
    site.origin.release();
    let response = slow.rest().await;
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    assert!(response.ends_with("the origin, at /report"), "{response}");
    assert_eq!(site.gateway.ended().await, Some(0));
}

#[tokio::test]
async fn endless_responses_are_cut_off_after_draining() {
    let mut site = Site::start(|origin| {
        let drain = "[server.timeouts]\ndrain = \"1s\"\n";
        SERVER.to_owned() + drain + &room("main", origin, 10, "")
    })
    .await;
    let cookie = site.ticket_line().await;
    let mut events = Raw::connect(site.gateway.address).await;
    events
        .send(format!("GET /sse HTTP/1.1\r\nhost: a\r\n{cookie}\r\n"))
        .await;
    events.until("\r\n\r\n").await;
    let mut tunnel = Raw::connect(site.gateway.address).await;
    tunnel.send(format!("{SWITCH}{cookie}\r\n")).await;
    tunnel.until("HTTP/1.1 101 ").await;
    site.gateway.signal("TERM");
    until_closed(&site).await;
    // Until then both continue.
    site.origin.emit("data: last\n\n");
    events.until("data: last").await;
    assert_eq!(site.gateway.ended().await, Some(0));
    events.rest().await;
    tunnel.rest().await;
}
