//! Where a request ends: nobody may be led to a different opinion than the origin's.

use crate::support::{Setup, all, header};

/// Sends bytes that must be refused, and expects the status and the end of the connection.
async fn refused(request: &str, expected: &str) {
    let (mut client, _gateway, _origin) = all(Setup::default()).await;
    client.send(request).await;
    let answer = client.rest().await;
    assert!(
        answer.starts_with(&format!("HTTP/1.1 {expected}")),
        "{request:?}: {answer}"
    );
    let statuses = answer.matches("HTTP/1.1 ").count();
    assert_eq!(statuses, 1, "{request:?}: {answer}");
}

#[tokio::test]
async fn a_request_without_one_host_is_refused() {
    refused("GET / HTTP/1.1\r\n\r\n", "400").await;
    refused("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400").await;
    refused("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "400").await;
    refused("GET / HTTP/1.1\r\nHost:\r\n\r\n", "400").await;
}

#[tokio::test]
async fn other_forms_of_targets_are_refused() {
    refused("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", "501").await;
    refused("GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n", "400").await;
    refused("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", "501").await;
}

#[tokio::test]
async fn codings_and_lengths_that_two_readers_could_read_differently_are_refused() {
    let with = |headers: &str| {
        format!(
            "POST / HTTP/1.1\r\nHost: a\r\n{headers}\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n"
        )
    };
    refused(&with("Transfer-Encoding: gzip, chunked"), "501").await;
    refused(
        &with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
        "501",
    )
    .await;
    for headers in [
        "Transfer-Encoding: gzip",
        "Transfer-Encoding: chunked, identity",
        "Content-Length: 1\r\nContent-Length: 2",
        "Content-Length: +1",
        "Content-Length : 1",
        "Content-Length: 1,2",
        "Transfer-Encoding\t: chunked",
    ] {
        let (mut client, _gateway, _origin) = all(Setup::default()).await;
        client.send(&with(headers)).await;
        let answer = client.rest().await;
        // Some of these end the connection without a word; none may be answered with success.
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 400"),
            "{headers}: {answer}"
        );
    }
}

#[tokio::test]
async fn length_and_chunks_together_are_never_forwarded_together() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client
        .send(
            "POST /first HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\
             Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET /second HTTP/1.1\r\nHost: a\r\n\r\n",
        )
        .await;
    let mut wire = origin.accept().await;
    let head = wire.head().await;
    assert!(head.starts_with("post /first "), "{head}");
    assert_eq!(header(&head, "transfer-encoding"), Some("chunked"));
    assert_eq!(header(&head, "content-length"), None);
    wire.read_until("0\r\n\r\n").await;
    wire.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        .await;
    // RFC 9112, section 6.1: the connection ends, so what follows is nobody's request.
    let answer = client.rest().await;
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
}

#[tokio::test]
async fn an_origin_that_codes_its_answer_in_ways_we_cannot_tell_of_is_broken() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut wire = origin.accept().await;
    wire.head().await;
    wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n")
        .await;
    let head = client.head().await;
    assert!(head.starts_with("http/1.1 502 "), "{head}");
    assert_eq!(header(&head, "x-outcome"), Some("broken"));
}

#[tokio::test]
async fn a_length_beside_chunks_in_an_answer_is_dropped() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut wire = origin.accept().await;
    wire.head().await;
    wire.send(
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n\
         3\r\nabc\r\n0\r\n\r\n",
    )
    .await;
    let head = client.head().await;
    assert_eq!(header(&head, "content-length"), None);
    assert_eq!(
        client.read_until("0\r\n\r\n").await,
        "3\r\nabc\r\n0\r\n\r\n"
    );
}

#[tokio::test]
async fn the_host_of_an_absolute_target_goes_to_the_origin() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client
        .send("GET http://b.example/x HTTP/1.1\r\nHost: a\r\n\r\n")
        .await;
    let head = origin.accept().await.head().await;
    assert!(head.starts_with("get /x http/1.1\r\n"), "{head}");
    assert_eq!(header(&head, "host"), Some("b.example"));
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let (mut client, _gateway, _origin) = all(Setup::default()).await;
    let long = "x".repeat(20_000);
    let request = format!("GET / HTTP/1.1\r\nHost: a\r\nX-Long: {long}\r\n\r\n");
    client.try_send(request.as_bytes()).await;
    let answer = client.rest().await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    let many = "X-A: 1\r\n".repeat(101);
    refused(&format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n"), "431").await;
}
