//! `Expect`: the origin allows or rejects a body.

use crate::proxy::support::{Setup, all, header};

const UPLOAD: &str =
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-Continue\r\n\r\n";

#[tokio::test]
async fn the_origin_says_whether_a_body_may_come() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client.send(UPLOAD).await;
    let mut wire = origin.accept().await;
    let head = wire.head().await;
    assert_eq!(header(&head, "expect"), Some("100-continue"));
    wire.send("HTTP/1.1 100 Continue\r\n\r\n").await;
    assert!(client.head().await.starts_with("http/1.1 100 "));
    client.send("hi").await;
    wire.read_until("hi").await;
    wire.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        .await;
    assert!(client.head().await.starts_with("http/1.1 200 "));
}

#[tokio::test]
async fn a_body_that_the_origin_rejects_is_never_requested() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client.send(UPLOAD).await;
    let mut wire = origin.accept().await;
    wire.head().await;
    wire.send("HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\n")
        .await;
    let head = client.head().await;
    assert!(
        head.starts_with("http/1.1 413 "),
        "no 100 before it: {head}"
    );
    wire.send("nope").await;
    let rest = client.read_until("nope").await;
    assert_eq!(rest, "nope");
    // The origin still waits for a body that will not come, so its connection ends.
    assert_eq!(wire.rest().await, "");
}

#[tokio::test]
async fn an_origin_without_100_continue_gets_the_body_anyway() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client.send(UPLOAD).await;
    let mut wire = origin.accept().await;
    wire.head().await;
    assert!(client.head().await.starts_with("http/1.1 100 "));
    client.send("hi").await;
    wire.read_until("hi").await;
    wire.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        .await;
    assert!(client.head().await.starts_with("http/1.1 200 "));
}

#[tokio::test]
async fn a_client_that_does_not_wait_is_served_all_the_same() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client.send(&format!("{UPLOAD}hi")).await;
    let mut wire = origin.accept().await;
    wire.head().await;
    wire.send("HTTP/1.1 100 Continue\r\n\r\n").await;
    wire.read_until("hi").await;
    wire.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        .await;
    client.read_until("HTTP/1.1 200 ").await;
}

#[tokio::test]
async fn an_early_response_is_passed_back_at_once() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\nbegun")
        .await;
    let mut wire = origin.accept().await;
    wire.read_until("begun").await;
    wire.send("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        .await;
    drop(wire);
    let head = client.head().await;
    assert!(head.starts_with("http/1.1 413 "), "{head}");
}

#[tokio::test]
async fn without_a_body_nothing_is_expected() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client
        .send("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n")
        .await;
    let mut wire = origin.accept().await;
    let head = wire.head().await;
    assert_eq!(header(&head, "expect"), None);
    wire.send("HTTP/1.1 204 No Content\r\n\r\n").await;
    assert!(client.head().await.starts_with("http/1.1 204 "));
}

#[tokio::test]
async fn an_unsupported_expectation_is_417() {
    for expected in [
        "a-miracle",
        "100-continue, a-miracle",
        "100-continue\r\nExpect: x",
        "",
    ] {
        let (mut client, _gateway, origin) = all(Setup::default()).await;
        let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: ";
        client.send(&format!("{head}{expected}\r\n\r\n")).await;
        let head = client.head().await;
        assert!(head.starts_with("http/1.1 417 "), "{expected}: {head}");
        assert_eq!(header(&head, "x-outcome"), Some("none"));
        origin.assert_nobody_else().await;
    }
}
