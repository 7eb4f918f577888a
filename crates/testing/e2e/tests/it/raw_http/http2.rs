//! HTTP/2 over TLS: requests at the origin, limits, and the end of a connection.

use anteroom_room::time::DurationMs;
use http::{Request, Version};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::raw_http::http2_wire::{End, Http2Wire, get, tls, tls_offering};
use crate::raw_http::support::{Gateway, Origin, Recorder, Setup, Wire, gateway};

type Client = http2::SendRequest<Full<bytes::Bytes>>;

/// Starts a gateway with TLS in front of an origin, and a client that trusts it.
async fn encrypted(mut setup: Setup) -> (Gateway, Recorder, TlsConnector) {
    let origin = Recorder::start().await;
    let (tls, connector) = tls();
    setup.tls = Some(tls);
    let gateway = gateway(setup, origin.address).await;
    (gateway, origin, connector)
}

async fn connect(gateway: &Gateway, connector: &TlsConnector) -> Client {
    let stream = TcpStream::connect(gateway.address).await.unwrap();
    let name = ServerName::try_from("a").unwrap();
    let stream = connector.connect(name, stream).await.unwrap();
    let (client, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    client
}

fn request(path: &str, body: &'static str) -> Request<Full<bytes::Bytes>> {
    let request = Request::builder().method("POST").version(Version::HTTP_2);
    let request = request.uri(format!("https://a{path}"));
    request.body(Full::from(body)).unwrap()
}

#[tokio::test]
async fn the_origin_sees_an_ordinary_request_by_https_with_one_cookie_line() {
    let (gateway, origin, connector) = encrypted(Setup::default()).await;
    let mut client = connect(&gateway, &connector).await;
    let mut response = request("/x?y", "hello");
    for crumb in ["a=1", "b=2"] {
        response
            .headers_mut()
            .append("cookie", crumb.parse().unwrap());
    }
    let answer = client.send_request(response).await.unwrap();
    assert_eq!(answer.version(), Version::HTTP_2);
    assert!(!answer.headers().contains_key("connection"));
    assert_eq!(answer.collect().await.unwrap().to_bytes(), "hi");
    let seen = origin.take().remove(0);
    assert!(seen.starts_with("POST /x?y HTTP/1.1\r\n"), "{seen}");
    assert!(seen.ends_with("\r\n\r\nhello"), "{seen}");
    for line in [
        "host: a\r\n",
        "cookie: a=1; b=2\r\n",
        "x-forwarded-proto: https\r\n",
        "content-length: 5\r\n",
    ] {
        assert!(seen.contains(line), "{line:?}: {seen}");
    }
}

#[tokio::test]
async fn requests_at_once_share_a_connection_and_draining_lets_them_finish() {
    let origin = Origin::new().await;
    let (tls, connector) = tls();
    let setup = Setup {
        tls: Some(tls),
        ..Setup::default()
    };
    let gateway = gateway(setup, origin.address).await;
    let mut client = connect(&gateway, &connector).await;
    let first = client.send_request(request("/1", ""));
    let second = client.send_request(request("/2", ""));
    let answers = tokio::spawn(async { tokio::join!(first, second) });
    let mut wires = [origin.accept().await, origin.accept().await];
    for wire in &mut wires {
        wire.head().await;
    }
    gateway.trigger.start();
    for wire in &mut wires {
        wire.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
            .await;
    }
    let (first, second) = answers.await.unwrap();
    for answer in [first, second] {
        let body = answer.unwrap().collect().await.unwrap();
        assert_eq!(body.to_bytes(), "hi");
    }
    gateway.ended.await.unwrap();
    assert!(client.send_request(request("/3", "")).await.is_err());
}

#[tokio::test]
async fn http1_clients_are_served() {
    for protocols in [&["http/1.1"][..], &[]] {
        let origin = Recorder::start().await;
        let (tls, connector) = tls_offering(protocols);
        let setup = Setup {
            tls: Some(tls),
            ..Setup::default()
        };
        let gateway = gateway(setup, origin.address).await;
        let stream = TcpStream::connect(gateway.address).await.unwrap();
        let name = ServerName::try_from("a").unwrap();
        let mut stream = connector.connect(name, stream).await.unwrap();
        let settled = stream.get_ref().1.alpn_protocol();
        assert_eq!(settled, protocols.first().map(|name| name.as_bytes()));
        let get = b"GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        stream.write_all(get).await.unwrap();
        let mut answer = String::new();
        // Without TLS's close this is an error.
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\nhi"), "{answer}");
        let seen = origin.take().remove(0);
        assert!(seen.contains("x-forwarded-proto: https\r\n"), "{seen}");
    }
}

#[tokio::test]
async fn a_client_without_tls_gets_an_error() {
    let (gateway, origin, _) = encrypted(Setup::default()).await;
    let mut plain = Wire::connect(gateway.address).await;
    plain.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let answer = plain.rest().await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(answer.ends_with("This port speaks https. Use https:// to reach it."));
    let length = answer.split_once("\r\n\r\n").unwrap().1.len();
    assert!(answer.contains(&format!("Content-Length: {length}\r\n")));
    assert_eq!(origin.take(), [""; 0]);
}

#[tokio::test]
async fn a_connection_has_its_share_of_requests() {
    let mut setup = Setup::default();
    setup.sizes.requests_per_connection = 2;
    let (gateway, _origin, connector) = encrypted(setup).await;
    let mut wire = Http2Wire::connect(gateway.address, &connector).await;
    wire.headers(1, &get(b"/"), true).await;
    assert_eq!(wire.end(1).await, End::Answered(200));
    wire.headers(3, &get(b"/"), true).await;
    let (mut answered, mut went) = (false, false);
    while !(answered && went) {
        match wire.end(3).await {
            End::Answered(200) => answered = true,
            End::GoAway(0) => went = true,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn near_the_limit_only_our_own_responses_close_a_connection() {
    let mut setup = Setup::default();
    setup.sizes.connections = 1;
    let (gateway, _origin, connector) = encrypted(setup).await;
    let mut wire = Http2Wire::connect(gateway.address, &connector).await;
    wire.headers(1, &get(b"/"), true).await;
    assert_eq!(wire.end(1).await, End::Answered(200));
    wire.headers(3, &get(&[b'/'; 10_000]), true).await;
    let (mut answered, mut went) = (false, false);
    while !(answered && went) {
        match wire.end(3).await {
            End::Answered(414) => answered = true,
            End::GoAway(0) => went = true,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn slow_handshakes_and_idle_connections_make_room() {
    let mut setup = Setup::default();
    setup.sizes.connections = 10;
    let (gateway, _origin, connector) = encrypted(setup).await;
    let mut idle = Http2Wire::connect(gateway.address, &connector).await;
    let mut slow = Vec::new();
    for number in 0..40_u8 {
        let mut stream = TcpStream::connect(gateway.address).await.unwrap();
        // The beginning of a handshake, or nothing.
        if number.is_multiple_of(2) {
            let _ = stream.write_all(&[22, 3, 1, 2]).await;
        }
        slow.push(stream);
    }
    let mut client = connect(&gateway, &connector).await;
    let answer = client.send_request(request("/", "")).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(idle.end(9).await, End::GoAway(0), "it gets GOAWAY");
}

#[tokio::test]
async fn a_connection_without_requests_is_ended_and_one_with_some_is_not() {
    let mut setup = Setup::default();
    setup.timeouts.request_head = DurationMs(500);
    setup.timeouts.keep_alive = DurationMs(500);
    let origin = Origin::new().await;
    let (tls, connector) = tls();
    setup.tls = Some(tls);
    let gateway = gateway(setup, origin.address).await;
    let mut wire = Http2Wire::connect(gateway.address, &connector).await;
    wire.headers(1, &get(b"/"), true).await;
    let mut at_origin = origin.accept().await;
    at_origin.head().await;
    // A later idle connection shows when the first one would have been ended.
    let mut idle = Http2Wire::connect(gateway.address, &connector).await;
    assert_eq!(idle.end(9).await, End::GoAway(0));
    at_origin
        .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        .await;
    assert_eq!(wire.end(1).await, End::Answered(200), "slow, and not idle");
    assert_eq!(wire.end(9).await, End::GoAway(0));
}

#[tokio::test]
async fn oversized_heads_and_addresses_are_rejected() {
    let (gateway, origin, connector) = encrypted(Setup::default()).await;
    let mut client = connect(&gateway, &connector).await;
    let mut status = async |request: Request<Full<bytes::Bytes>>| {
        let answer = client.send_request(request).await;
        answer.map(|answer| answer.status().as_u16())
    };
    let long = request(&format!("/{}", "x".repeat(9_000)), "");
    assert_eq!(status(long).await.unwrap(), 414);
    let mut many = request("/", "");
    for number in 0..101 {
        let name: http::HeaderName = format!("x-{number}").parse().unwrap();
        many.headers_mut().append(name, "1".parse().unwrap());
    }
    assert_eq!(status(many).await.unwrap(), 431);
    let mut large = request("/", "");
    let value = "x".repeat(17_000).parse().unwrap();
    large.headers_mut().append("x-large", value);
    // Either side rejects it: the gateway announces its limits before.
    let refused = status(large).await;
    assert!(
        refused.as_ref().map_or(true, |status| *status == 431),
        "{refused:?}"
    );
    assert_eq!(origin.take(), [""; 0]);
}

#[tokio::test]
async fn a_flood_of_streams_that_are_taken_back_ends_the_connection() {
    let (gateway, _origin, connector) = encrypted(Setup::default()).await;
    let mut wire = Http2Wire::connect(gateway.address, &connector).await;
    let fields = get(b"/");
    for number in 0..5_000 {
        let stream = number * 2 + 1;
        wire.headers(stream, &fields, true).await;
        wire.reset(stream).await;
    }
    // Code of ENHANCE_YOUR_CALM.
    assert_eq!(wire.end(0).await, End::GoAway(11));
}

/// Starts a gateway with TLS in front of an origin that the test controls.
async fn with_raw_origin(mut setup: Setup) -> (Gateway, Origin, TlsConnector) {
    let origin = Origin::new().await;
    let (tls, connector) = tls();
    setup.tls = Some(tls);
    let gateway = gateway(setup, origin.address).await;
    (gateway, origin, connector)
}

#[tokio::test]
async fn pieces_of_an_answer_come_as_they_are_sent() {
    let (gateway, origin, connector) = with_raw_origin(Setup::default()).await;
    let mut client = connect(&gateway, &connector).await;
    let response = tokio::spawn(client.send_request(request("/events", "")));
    let mut wire = origin.accept().await;
    wire.head().await;
    wire.send(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
    )
    .await;
    let mut events = response.await.unwrap().unwrap().into_body();
    for number in 1..=3 {
        let event = format!("data: {number}\n\n");
        wire.send(&format!("{:x}\r\n{event}\r\n", event.len()))
            .await;
        let piece = events.frame().await.unwrap().unwrap();
        assert_eq!(piece.into_data().unwrap(), event);
    }
    wire.send("0\r\n\r\n").await;
    assert!(events.collect().await.unwrap().to_bytes().is_empty());
}

#[tokio::test]
async fn an_untaken_response_is_given_up_and_others_are_not() {
    let mut setup = Setup::default();
    setup.timeouts.body_idle = DurationMs(300);
    let (gateway, origin, connector) = with_raw_origin(setup).await;
    let mut client = Http2Wire::connect(gateway.address, &connector).await;
    client.headers(1, &get(b"/large"), true).await;
    let mut wire = origin.accept().await;
    wire.head().await;
    let large = "x".repeat(1_000_000);
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{large}",
        large.len()
    );
    let sent = tokio::spawn(async move { wire.try_send(answer.as_bytes()).await });
    assert_eq!(client.end(1).await, End::Answered(200));
    // The client does not enlarge its initial window.
    assert_eq!(client.end(1).await, End::Reset(8));
    sent.await.unwrap();
    client.headers(3, &get(b"/small"), true).await;
    let mut wire = origin.accept().await;
    wire.head().await;
    wire.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        .await;
    assert_eq!(client.end(3).await, End::Answered(200));
}

#[tokio::test]
async fn the_last_piece_of_an_answer_is_given_up_too() {
    let mut setup = Setup::default();
    setup.timeouts.body_idle = DurationMs(300);
    let (gateway, origin, connector) = with_raw_origin(setup).await;
    // Room for the first byte of it, and for no other.
    let mut client = Http2Wire::with_window(gateway.address, &connector, 1).await;
    client.headers(1, &get(b"/"), true).await;
    let mut wire = origin.accept().await;
    wire.head().await;
    // Comes in one piece, and so is the last.
    let body = "x".repeat(5_000);
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    wire.send(&(head + &body)).await;
    assert_eq!(client.end(1).await, End::Answered(200));
    assert_eq!(client.end(1).await, End::Reset(8));
}

#[tokio::test]
async fn a_large_response_arrives_whole_at_a_reading_client() {
    let (gateway, origin, connector) = with_raw_origin(Setup::default()).await;
    let mut client = connect(&gateway, &connector).await;
    let response = tokio::spawn(client.send_request(request("/large", "")));
    let mut wire = origin.accept().await;
    wire.head().await;
    let body: String = (0..50_000).map(|number| format!("{number}\n")).collect();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    let whole = head + &body;
    let sent = tokio::spawn(async move { wire.send(&whole).await });
    let answer = response.await.unwrap().unwrap();
    assert_eq!(answer.headers()["content-length"], body.len().to_string());
    assert!(
        answer.collect().await.unwrap().to_bytes() == body,
        "other bytes"
    );
    sent.await.unwrap();
}

#[tokio::test]
async fn a_connection_without_requests_has_the_timeout_of_a_head() {
    let mut setup = Setup::default();
    setup.timeouts.request_head = DurationMs(300);
    let (gateway, _origin, connector) = encrypted(setup).await;
    let mut idle = Http2Wire::connect(gateway.address, &connector).await;
    assert_eq!(idle.end(1).await, End::GoAway(0));
}

#[tokio::test]
async fn a_handshake_that_does_not_end_is_not_waited_for() {
    let mut setup = Setup::default();
    setup.timeouts.request_head = DurationMs(100);
    let (gateway, _origin, _) = encrypted(setup).await;
    let mut idle = Wire::connect(gateway.address).await;
    let mut half = Wire::connect(gateway.address).await;
    half.send("\u{16}\u{3}\u{1}").await;
    assert_eq!(idle.rest().await, "");
    half.rest().await;
}
