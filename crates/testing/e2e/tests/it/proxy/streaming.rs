//! Bodies are forwarded piece by piece, and only as fast as they are read.

use anteroom_room::time::DurationMs;

use crate::proxy::support::{Setup, all, header};

#[tokio::test]
async fn an_event_arrives_before_the_answer_ends() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client
        .send("GET /events HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n")
        .await;
    let mut wire = origin.accept().await;
    wire.head().await;
    wire.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n")
        .await;
    wire.send("Transfer-Encoding: chunked\r\n\r\n").await;
    let head = client.head().await;
    assert_eq!(header(&head, "content-type"), Some("text/event-stream"));
    for event in ["data: 1\n\n", "data: 2\n\n", "data: 3\n\n"] {
        wire.send(&format!("{:x}\r\n{event}\r\n", event.len()))
            .await;
        client.read_until(event).await;
    }
    wire.send("0\r\n\r\n").await;
    client.read_until("0\r\n\r\n").await;
}

#[tokio::test]
async fn an_upload_arrives_before_it_ends() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await;
    let mut wire = origin.accept().await;
    wire.head().await;
    for piece in ["one", "two", "three"] {
        client
            .send(&format!("{:x}\r\n{piece}\r\n", piece.len()))
            .await;
        wire.read_until(piece).await;
    }
    client.send("0\r\n\r\n").await;
    wire.read_until("0\r\n\r\n").await;
    // The origin may respond to an upload before its end.
    wire.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        .await;
    assert!(client.head().await.starts_with("http/1.1 200 "));
}

#[tokio::test]
async fn a_body_is_not_collected_in_memory() {
    let mut setup = Setup::default();
    // Ends the test if the gateway buffers data that no client reads.
    setup.timeouts.body_idle = DurationMs(200);
    let (mut client, _gateway, origin) = all(setup).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut wire = origin.accept().await;
    wire.head().await;
    wire.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        .await;
    client.head().await;
    // The client reads no further; the gateway must stop reading, and then abort.
    let piece = vec![7; 1_000_000];
    let mut sent = 0;
    while wire.try_send(&piece).await {
        sent += piece.len();
    }
    // About the buffers of four sockets, and not the gigabyte.
    assert!(sent < 100_000_000, "{sent} bytes went somewhere");
}

#[tokio::test]
async fn trailers_pass_both_ways_without_our_own() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client
        .send(
            "POST / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: te\r\n\
             Trailer: X-Sum, Anteroom-Seat-Ends\r\nTransfer-Encoding: chunked\r\n\r\n\
             2\r\nhi\r\n0\r\nX-Sum: 1\r\nAnteroom-Seat-Ends: 9\r\n\r\n",
        )
        .await;
    let mut wire = origin.accept().await;
    let head = wire.head().await;
    assert_eq!(header(&head, "te"), Some("trailers"));
    assert_eq!(header(&head, "connection"), Some("te"));
    assert!(
        header(&head, "trailer").is_some_and(|names| names.contains("x-sum")),
        "{head}"
    );
    let body = wire.read_until("\r\n\r\n").await.to_lowercase();
    assert!(body.contains("0\r\nx-sum: 1\r\n"), "{body}");
    assert!(!body.contains("anteroom"), "{body}");
    wire.send(
        "HTTP/1.1 200 OK\r\nTrailer: X-Done\r\nTransfer-Encoding: chunked\r\n\r\n\
         2\r\nok\r\n0\r\nX-Done: 1\r\n\r\n",
    )
    .await;
    client.head().await;
    let body = client.read_until("\r\n\r\n").await.to_lowercase();
    assert!(body.contains("0\r\nx-done: 1\r\n"), "{body}");
}

#[tokio::test]
async fn an_upload_that_the_origin_does_not_read_is_given_up() {
    let mut setup = Setup::default();
    setup.timeouts.origin_response = DurationMs(2_000);
    let (mut client, _gateway, origin) = all(setup).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n")
        .await;
    // The origin reads the head and nothing else.
    let mut wire = origin.accept().await;
    wire.head().await;
    let sent = client.send_until_blocked().await;
    // About the buffers of four sockets, and not the gigabyte.
    assert!(sent < 100_000_000, "{sent} bytes went somewhere");
    let head = client.head().await;
    assert!(head.starts_with("http/1.1 504 "), "{head}");
    // Both connections end.
    wire.rest().await;
    client.rest().await;
}

#[tokio::test]
async fn trailers_that_would_change_a_message_do_not_pass() {
    // The gateway rejects those that would frame or route a request before they get here.
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client
        .send(
            "POST / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: te\r\n\
             Trailer: X-Sum, Range, X-Forwarded-For, Set-Cookie\r\n\
             Transfer-Encoding: chunked\r\n\r\n\
             2\r\nhi\r\n0\r\nX-Sum: 1\r\nRange: bytes=0-1\r\nX-Forwarded-For: 192.0.2.1\r\n\
             Set-Cookie: a=b\r\n\r\n",
        )
        .await;
    let mut wire = origin.accept().await;
    wire.head().await;
    let body = wire.read_until("\r\n\r\n").await.to_lowercase();
    assert_eq!(body, "2\r\nhi\r\n0\r\nx-sum: 1\r\n\r\n");
    wire.send(
        "HTTP/1.1 200 OK\r\nTrailer: X-Done, Set-Cookie\r\nTransfer-Encoding: chunked\r\n\r\n\
         0\r\nX-Done: 1\r\nSet-Cookie: a=b\r\n\r\n",
    )
    .await;
    client.head().await;
    let body = client.read_until("\r\n\r\n").await.to_lowercase();
    assert_eq!(body, "0\r\nx-done: 1\r\n\r\n");
}

#[tokio::test]
async fn connections_to_the_origin_are_used_again() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut wire = origin.accept().await;
    wire.head().await;
    wire.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        .await;
    client.read_until("hi").await;
    client.send("GET /2 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(wire.head().await.starts_with("get /2 "));
}
