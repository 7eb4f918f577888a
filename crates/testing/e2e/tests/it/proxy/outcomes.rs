//! Responses when the origin, or the client, fails.

use std::time::Duration;

use anteroom_room::time::DurationMs;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::proxy::support::{Gateway, Origin, Setup, Wire, all, gateway, header};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

async fn head_of(gateway: &Gateway, request: &str) -> String {
    let mut client = Wire::connect(gateway.address).await;
    client.send(request).await;
    client.head().await
}

#[tokio::test]
async fn a_request_that_no_layer_gave_an_origin_is_404() {
    let (mut client, _gateway, _origin) = all(Setup::default()).await;
    let request = "GET /no-origin HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\n\r\n";
    client.send(request).await;
    let head = client.head().await;
    assert!(head.starts_with("http/1.1 404 "), "{head}");
    assert_eq!(header(&head, "x-outcome"), Some("none"));
    assert_eq!(header(&head, "content-type"), Some("application/json"));
    client.read_until("\"code\":\"not_found\"").await;
}

#[tokio::test]
async fn an_origin_without_a_listener_is_502() {
    let origin = Origin::new().await;
    let gateway = gateway(Setup::default(), origin.address).await;
    drop(origin);
    let head = head_of(&gateway, GET).await;
    assert!(head.starts_with("http/1.1 502 "), "{head}");
    assert_eq!(header(&head, "x-outcome"), Some("connect-failed"));
}

#[tokio::test]
async fn an_origin_that_accepts_no_connection_is_502_in_time() {
    // A listener that accepts nothing: once its queue is full, connecting hangs.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let origin = socket.listen(1).unwrap();
    let address = origin.local_addr().unwrap();
    let mut queued = Vec::new();
    while let Ok(connected) = timeout(Duration::from_millis(100), TcpStream::connect(address)).await
    {
        queued.push(connected.unwrap());
    }
    let mut setup = Setup::default();
    setup.timeouts.origin_connect = DurationMs(50);
    let gateway = gateway(setup, address).await;
    let head = head_of(&gateway, GET).await;
    assert!(head.starts_with("http/1.1 502 "), "{head}");
    assert_eq!(header(&head, "x-outcome"), Some("connect-failed"));
}

#[tokio::test]
async fn an_origin_that_hangs_up_or_talks_nonsense_is_502() {
    for sent in [
        "",
        "SSH-2.0-OpenSSH\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
    ] {
        let (mut client, _gateway, origin) = all(Setup::default()).await;
        client.send(GET).await;
        let mut wire = origin.accept().await;
        wire.head().await;
        wire.send(sent).await;
        drop(wire);
        let head = client.head().await;
        assert!(head.starts_with("http/1.1 502 "), "{sent:?}: {head}");
        assert_eq!(header(&head, "x-outcome"), Some("broken"), "{sent:?}");
    }
}

#[tokio::test]
async fn an_origin_that_does_not_respond_is_504() {
    let mut setup = Setup::default();
    setup.timeouts.origin_response = DurationMs(50);
    let (mut client, _gateway, origin) = all(setup).await;
    client.send(GET).await;
    let mut wire = origin.accept().await;
    wire.head().await;
    let head = client.head().await;
    assert!(head.starts_with("http/1.1 504 "), "{head}");
    assert_eq!(header(&head, "x-outcome"), Some("timed-out"));
}

#[tokio::test]
async fn an_origin_that_crashes_during_a_response_aborts_it() {
    let (mut client, _gateway, origin) = all(Setup::default()).await;
    client.send(GET).await;
    let mut wire = origin.accept().await;
    wire.head().await;
    wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        .await;
    drop(wire);
    let response = client.rest().await;
    assert!(response.contains("3\r\nabc\r\n"), "{response}");
    assert!(
        !response.contains("0\r\n\r\n"),
        "a cut answer must not look whole: {response}"
    );
}

#[tokio::test]
async fn an_origin_that_stalls_in_a_response_is_given_up() {
    let mut setup = Setup::default();
    setup.timeouts.body_idle = DurationMs(50);
    let (mut client, _gateway, origin) = all(setup).await;
    client.send(GET).await;
    let mut wire = origin.accept().await;
    wire.head().await;
    wire.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
        .await;
    let response = client.rest().await;
    assert!(response.ends_with("abc"), "{response}");
    // The connection to the origin is not kept either.
    assert_eq!(wire.rest().await, "");
}

#[tokio::test]
async fn an_upload_that_stops_is_408_and_not_the_origins_fault() {
    let mut setup = Setup::default();
    setup.timeouts.body_idle = DurationMs(50);
    let (mut client, gateway, origin) = all(setup).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc")
        .await;
    let mut wire = origin.accept().await;
    wire.read_until("abc").await;
    let head = client.head().await;
    assert!(head.starts_with("http/1.1 408 "), "{head}");
    assert_eq!(header(&head, "x-outcome"), Some("none"));
    let stats = gateway.group.stats().origins.remove(0);
    assert_eq!((gateway.outcomes(), stats.last_error), (vec![], None));
}

#[tokio::test]
async fn an_upload_may_take_longer_than_the_origin_may_think() {
    let mut setup = Setup::default();
    setup.timeouts.origin_response = DurationMs(30);
    let (mut client, gateway, origin) = all(setup).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc")
        .await;
    let mut wire = origin.accept().await;
    wire.read_until("abc").await;
    // Each of these takes a whole timeout of the origin, in which the client above sends nothing.
    for _ in 0..3 {
        assert!(head_of(&gateway, GET).await.starts_with("http/1.1 504 "));
    }
    client.send("def").await;
    wire.read_until("def").await;
    wire.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        .await;
    let head = client.head().await;
    assert!(head.starts_with("http/1.1 200 "), "{head}");
}

#[tokio::test]
async fn a_body_over_the_limit_is_413_with_a_length_and_without() {
    let mut setup = Setup::default();
    setup.sizes.request_body_bytes = 10;
    let (mut client, gateway, origin) = all(setup).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n")
        .await;
    assert!(client.head().await.starts_with("http/1.1 413 "));

    let mut client = Wire::connect(gateway.address).await;
    client
        .send(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
             8\r\n12345678\r\n8\r\n12345678\r\n0\r\n\r\n",
        )
        .await;
    let mut wire = origin.accept().await;
    wire.head().await;
    let head = client.head().await;
    assert!(head.starts_with("http/1.1 413 "), "{head}");
    assert_eq!(header(&head, "x-outcome"), Some("none"));
    let forwarded = wire.rest().await;
    assert!(
        !forwarded.contains("0\r\n\r\n"),
        "a cut body must not look whole: {forwarded}"
    );

    let mut client = Wire::connect(gateway.address).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n1234567890")
        .await;
    let mut wire = origin.accept().await;
    wire.read_until("1234567890").await;
}

#[tokio::test]
async fn a_client_that_never_finishes_its_head_is_cut() {
    let mut setup = Setup::default();
    setup.timeouts.request_head = DurationMs(50);
    let (mut client, gateway, _origin) = all(setup).await;
    client.send("GET / HTTP/1.1\r\nHost:").await;
    client.rest().await;
    gateway.counts.wait(|counts| &counts.closed, 1).await;
}

#[tokio::test]
async fn a_head_that_is_larger_than_the_limits_is_502() {
    let setup = Setup {
        headers: 20,
        ..Setup::default()
    };
    let many = "X: y\r\n".repeat(21);
    let large = format!("X: {}\r\n", "y".repeat(20_000));
    let status = format!("HTTP/1.1 200 {}\r\n", "y".repeat(20_000));
    let heads = [
        format!("HTTP/1.1 200 OK\r\n{many}\r\n"),
        format!("HTTP/1.1 200 OK\r\n{large}\r\n"),
        status,
    ];
    for head in heads {
        let (mut client, _gateway, origin) = all(setup.clone()).await;
        client.send(GET).await;
        let mut wire = origin.accept().await;
        wire.head().await;
        wire.try_send(head.as_bytes()).await;
        let response = client.head().await;
        assert!(response.starts_with("http/1.1 502 "), "{response}");
        assert_eq!(header(&response, "x-outcome"), Some("broken"));
    }
}
