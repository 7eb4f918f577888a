//! Requests with short bodies: which ones the fast path sends on, and what it leaves to hyper.
//!
//! Names of headers keep their case only on the fast path.

use crate::proxy::support::{Origin, Setup, Wire, all};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
const FAST: &str = "X-Case: 1";
const USUAL: &str = "x-case: 1";

fn post(length: usize, more: &str) -> String {
    format!("POST /form HTTP/1.1\r\nHost: a\r\nX-Case: 1\r\nContent-Length: {length}\r\n{more}\r\n")
}

/// Returns the head and the body that the origin gets, and responds.
async fn received(wire: &mut Wire, bytes: usize) -> (String, String) {
    let head = wire.read_until("\r\n\r\n").await;
    let body = wire.try_read(bytes).await.expect("the body is whole");
    wire.send(OK).await;
    (head, body)
}

/// Sends a GET, and checks whether the connection is still on the fast path.
async fn check_next(client: &mut Wire, (origin, wire): (&Origin, &mut Wire), expected: &str) {
    client
        .send("GET / HTTP/1.1\r\nHost: a\r\nX-Case: 1\r\n\r\n")
        .await;
    let head = if expected == FAST {
        received(wire, 0).await.0
    } else {
        received(&mut origin.accept().await, 0).await.0
    };
    assert!(head.contains(expected), "{head}");
    client.read_until("hi").await;
}

#[tokio::test]
async fn a_body_with_its_head_or_soon_after_is_sent_on_and_the_connection_stays_fast() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    let mut wire = None;
    for body in ["", "a", &"b".repeat(16 * 1_024)] {
        for is_split in [false, true] {
            let head = post(body.len(), "");
            if is_split {
                client.send(&head).await;
                tokio::task::yield_now().await;
                let (first, second) = body.split_at(body.len() / 2);
                client.send(first).await;
                tokio::task::yield_now().await;
                client.send(second).await;
            } else {
                client.send(&format!("{head}{body}")).await;
            }
            let wire = match &mut wire {
                Some(wire) => wire,
                none => none.insert(origin.accept().await),
            };
            let (head, received) = received(wire, body.len()).await;
            assert_eq!(received, body);
            assert!(head.contains(FAST), "{head}");
            assert_eq!(
                head.to_lowercase().matches("content-length").count(),
                1,
                "{head}"
            );
            client.read_until("hi").await;
            check_next(&mut client, (&origin, wire), FAST).await;
        }
    }
    origin.assert_nobody_else().await;
}

#[tokio::test]
async fn requests_behind_a_body_are_served_in_their_order() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    let inner = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    let next = "GET /next HTTP/1.1\r\nHost: a\r\n\r\n";
    client
        .send(&format!("{}{inner}{next}", post(inner.len(), "")))
        .await;
    let mut wire = origin.accept().await;
    let (_, body) = received(&mut wire, inner.len()).await;
    assert_eq!(body, inner);
    let (head, _) = received(&mut wire, 0).await;
    assert!(head.starts_with("GET /next "), "{head}");
    client.read_until("hi").await;
    client.read_until("hi").await;
}

#[tokio::test]
async fn a_late_or_long_body_is_left_to_hyper() {
    for length in [5, 16 * 1_024 + 1] {
        let (mut client, _gateway, origin) = all(Setup::default()).await;
        client.send(&post(length, "")).await;
        client.send("hel").await;
        let mut wire = origin.accept().await;
        let head = wire.read_until("\r\n\r\n").await;
        assert!(head.contains(USUAL), "{head}");
        let rest = "l".repeat(length - 3);
        client.send(&rest).await;
        let body = wire.try_read(length).await.unwrap();
        assert_eq!(body, format!("hel{rest}"));
        wire.send(OK).await;
        client.read_until("hi").await;
    }
}
