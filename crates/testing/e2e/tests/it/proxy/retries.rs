//! Requests that are sent again, and those that never are.

use crate::proxy::support::{Gateway, Origin, Setup, Wire, all, gateway_to};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

/// Returns a client, and an origin's connection that was used once: on the fast path, or by hyper.
async fn used(fast_path: bool) -> (Wire, Gateway, Origin, Wire) {
    let setup = Setup {
        fast_path,
        ..Setup::default()
    };
    let (mut client, gateway, origin) = all(setup).await;
    client.send("GET /first HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut wire = origin.accept().await;
    wire.head().await;
    wire.send(OK).await;
    client.read_until("hi").await;
    (client, gateway, origin, wire)
}

fn stale(gateway: &Gateway) -> u64 {
    gateway.group.stats().retries.stale
}

#[tokio::test]
async fn an_idempotent_request_on_a_closing_connection_is_retried_once() {
    for method in ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"] {
        let is_plain = matches!(method, "GET" | "HEAD");
        let (mut client, gateway, origin, mut wire) = used(is_plain).await;
        let request = format!("{method} /second?q=1 HTTP/1.1\r\nHost: b\r\nX-Own: 1\r\n\r\n");
        client.send(&request).await;
        let first = wire.head().await;
        drop(wire);
        let mut wire = origin.accept().await;
        assert_eq!(wire.head().await, first, "the very same again");
        wire.send("HTTP/1.1 204 No Content\r\n\r\n").await;
        let head = client.head().await;
        assert!(head.starts_with("http/1.1 204 "), "{method}: {head}");
        assert_eq!(stale(&gateway), 1);
        origin.assert_nobody_else().await;
    }
}

#[tokio::test]
async fn it_is_not_sent_a_third_time() {
    let (mut client, gateway, origin, mut wire) = used(true).await;
    client.send("GET /second HTTP/1.1\r\nHost: a\r\n\r\n").await;
    wire.head().await;
    drop(wire);
    let mut wire = origin.accept().await;
    wire.head().await;
    drop(wire);
    let head = client.head().await;
    assert!(head.starts_with("http/1.1 502 "), "{head}");
    assert_eq!(stale(&gateway), 1);
    origin.assert_nobody_else().await;
}

#[tokio::test]
async fn a_request_that_is_not_idempotent_is_not_sent_twice() {
    for (request, is_plain) in [
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
            false,
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
            true,
        ),
        ("POST / HTTP/1.1\r\nHost: a\r\n\r\n", false),
        ("PATCH / HTTP/1.1\r\nHost: a\r\n\r\n", false),
        (
            "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi",
            false,
        ),
        (
            "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi",
            true,
        ),
        ("BREW / HTTP/1.1\r\nHost: a\r\n\r\n", false),
    ] {
        let (mut client, gateway, origin, mut wire) = used(is_plain).await;
        client.send(request).await;
        wire.head().await;
        if request.ends_with("hi") {
            wire.read_until("hi").await;
        }
        drop(wire);
        let head = client.head().await;
        assert!(head.starts_with("http/1.1 502 "), "{request}: {head}");
        assert_eq!(stale(&gateway), 0, "{request}");
        origin.assert_nobody_else().await;
    }
}

#[tokio::test]
async fn no_request_is_retried_once_a_response_has_begun() {
    let (mut client, gateway, origin, mut wire) = used(true).await;
    client.send("GET /second HTTP/1.1\r\nHost: a\r\n\r\n").await;
    wire.head().await;
    wire.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhal")
        .await;
    drop(wire);
    let response = client.rest().await;
    assert!(response.ends_with("hal"), "{response}");
    assert_eq!(stale(&gateway), 0);
    origin.assert_nobody_else().await;
}

#[tokio::test]
async fn a_first_request_on_a_new_connection_is_not_sent_again() {
    let (mut client, gateway, origin) = all(Setup::default()).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut wire = origin.accept().await;
    wire.head().await;
    drop(wire);
    assert!(client.head().await.starts_with("http/1.1 502 "));
    assert_eq!(stale(&gateway), 0);
    origin.assert_nobody_else().await;
}

#[tokio::test]
async fn an_invalid_response_on_a_used_connection_is_not_retried() {
    let (mut client, gateway, origin, mut wire) = used(true).await;
    client.send("GET /second HTTP/1.1\r\nHost: a\r\n\r\n").await;
    wire.head().await;
    wire.send("SSH-2.0-OpenSSH\r\n\r\n").await;
    assert!(client.head().await.starts_with("http/1.1 502 "));
    assert_eq!(stale(&gateway), 0);
    origin.assert_nobody_else().await;
}

#[tokio::test]
async fn a_request_without_a_connection_moves_to_another_origin_with_body() {
    let (gone, there) = (Origin::new().await, Origin::new().await);
    let gateway = gateway_to(Setup::default(), &[gone.address, there.address]).await;
    drop(gone);
    let mut wire = None;
    // At random between two origins with as many requests, until the failing one is excluded.
    let is_up = || gateway.group.stats().origins[0].condition.name() == "up";
    for number in (0..1_000).take_while(|_| is_up()).chain(1_000..1_020) {
        let mut client = Wire::connect(gateway.address).await;
        let text = format!("{number:04}");
        let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n";
        client.send(&format!("{head}{text}")).await;
        let mut at = match wire.take() {
            Some(wire) => wire,
            None => there.accept().await,
        };
        at.head().await;
        at.read_until(&text).await;
        at.send(OK).await;
        client.read_until("hi").await;
        wire = Some(at);
    }
    let stats = gateway.group.stats();
    let conditions: Vec<_> = stats
        .origins
        .iter()
        .map(|one| one.condition.name())
        .collect();
    assert_eq!(conditions, ["out", "up"], "{stats:?}");
    assert_eq!(stats.retries.elsewhere, 5, "then it is excluded");
    let failed = stats.origins[0]
        .outcomes
        .iter()
        .find(|(word, _)| *word == "connect_failed");
    assert_eq!(failed, Some(&("connect_failed", 5)));
    assert!(stats.origins[0].last_error.is_some());
    assert_eq!(stats.origins[0].in_flight, 0);
}

#[tokio::test]
async fn where_no_origin_takes_a_connection_it_is_502() {
    let origins = [Origin::new().await, Origin::new().await];
    let gateway = gateway_to(Setup::default(), &origins.each_ref().map(|one| one.address)).await;
    drop(origins);
    for _ in 0..10 {
        let mut client = Wire::connect(gateway.address).await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert!(client.head().await.starts_with("http/1.1 502 "));
    }
    let stats = gateway.group.stats();
    let up = stats
        .origins
        .iter()
        .filter(|one| one.condition.name() == "up");
    assert_eq!(up.count(), 1, "requests alone never exclude the last one");
}

#[tokio::test]
async fn a_request_counts_as_in_flight_until_its_response_has_been_read() {
    let (mut client, gateway, origin) = all(Setup::default()).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut wire = origin.accept().await;
    wire.head().await;
    let in_flight = || gateway.group.stats().origins[0].in_flight;
    assert_eq!(in_flight(), 1);
    wire.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nh")
        .await;
    client.head().await;
    assert_eq!(in_flight(), 1);
    wire.send("i").await;
    client.read_until("hi").await;
    assert_eq!(in_flight(), 0);
}
