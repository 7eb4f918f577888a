//! End and size of messages. `tests/it/raw_http` lists invalid requests.

use crate::proxy::support::{Setup, all, header};

/// Sends invalid bytes, and expects the status and the end of the connection.
async fn check_rejected(request: &str, expected: &str) {
    let (mut client, _gateway, _origin) = all(Setup::default()).await;
    client.send(request).await;
    let response = client.rest().await;
    assert!(
        response.starts_with(&format!("HTTP/1.1 {expected}")),
        "{request:?}: {response}"
    );
    let statuses = response.matches("HTTP/1.1 ").count();
    assert_eq!(statuses, 1, "{request:?}: {response}");
}

#[tokio::test]
async fn an_unknown_transfer_coding_of_an_origin_breaks_the_response() {
    let (mut client, gateway, origin) = all(Setup::default()).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut wire = origin.accept().await;
    wire.head().await;
    wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n")
        .await;
    let head = client.head().await;
    assert!(head.starts_with("http/1.1 502 "), "{head}");
    assert_eq!(header(&head, "x-outcome"), Some("broken"));
    assert_eq!(gateway.outcomes(), [("broken", 1)]);
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
async fn a_head_that_is_too_large_is_rejected() {
    let (mut client, _gateway, _origin) = all(Setup::default()).await;
    let long = "x".repeat(20_000);
    let request = format!("GET / HTTP/1.1\r\nHost: a\r\nX-Long: {long}\r\n\r\n");
    client.try_send(request.as_bytes()).await;
    let response = client.rest().await;
    assert!(response.starts_with("HTTP/1.1 431"), "{response}");
    let many = "X-A: 1\r\n".repeat(101);
    check_rejected(&format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n"), "431").await;
}

#[tokio::test]
async fn a_repeated_length_of_an_origin_is_forwarded_once() {
    let repeated = [
        "Content-Length: 2, 2\r\n",
        "Content-Length: 2\r\nContent-Length: 2\r\n",
        "Content-Length: 2,2\r\nContent-Length: 02\r\n",
    ];
    for lines in repeated {
        for (method, body) in [("GET", "hi"), ("HEAD", "")] {
            let (mut client, _gateway, origin) = all(Setup::default()).await;
            client
                .send(&format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n"))
                .await;
            let mut wire = origin.accept().await;
            wire.head().await;
            wire.send(&format!("HTTP/1.1 200 OK\r\n{lines}\r\n{body}"))
                .await;
            let head = client.head().await;
            assert_eq!(head.matches("content-length").count(), 1, "{lines}: {head}");
            assert_eq!(header(&head, "content-length"), Some("2"), "{lines}");
        }
    }
}

#[tokio::test]
async fn two_lengths_of_an_origin_are_an_error() {
    let answers = [
        ("GET", "200 OK", "2, 3"),
        ("HEAD", "200 OK", "2, 3"),
        ("HEAD", "200 OK", "2\r\nContent-Length: 3"),
        ("HEAD", "200 OK", "2,"),
        ("HEAD", "200 OK", "-2"),
        ("GET", "304 Not Modified", "2, 3"),
    ];
    for (method, status, length) in answers {
        let (mut client, gateway, origin) = all(Setup::default()).await;
        client
            .send(&format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n"))
            .await;
        let mut wire = origin.accept().await;
        wire.head().await;
        wire.send(&format!(
            "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n"
        ))
        .await;
        let head = client.head().await;
        assert!(
            head.starts_with("http/1.1 502 "),
            "{method} {length}: {head}"
        );
        assert_eq!(gateway.outcomes(), [("broken", 1)], "{method} {length}");
    }
}

#[tokio::test]
async fn what_precedes_a_malformed_chunk_reaches_the_client() {
    for fast_path in [true, false] {
        let setup = Setup {
            fast_path,
            ..Setup::default()
        };
        let (mut client, _gateway, origin) = all(setup).await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let mut wire = origin.accept().await;
        wire.head().await;
        wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabX0\r\n\r\n")
            .await;
        let response = client.rest().await;
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
        assert!(response.ends_with("2\r\nab\r\n"), "{response}");
    }
}

#[tokio::test]
async fn bytes_that_are_not_http_get_an_error_at_once() {
    for fast_path in [true, false] {
        let setup = Setup {
            fast_path,
            ..Setup::default()
        };
        let (mut client, _gateway, _origin) = all(setup).await;
        client.send("\x16\x03\x01\x02\x00\x01\x00").await;
        let response = client.rest().await;
        assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
    }
}
