//! Origins that speak HTTP/2 without TLS, by prior knowledge.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};

use anteroom_config::Http2;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, Version};
use http_body::Frame;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpSocket};

use crate::proxy::support::{Setup, Wire, gateway, header};

/// Counts of an origin.
#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    bytes_given: AtomicUsize,
}

fn http2() -> Setup {
    Setup {
        http2: Http2::Always,
        ..Setup::default()
    }
}

/// Starts an origin that responds with the request; `/endless` sends bytes as long as a client
/// takes them, `/deaf` never reads.
async fn origin() -> (SocketAddr, Arc<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::new(Seen::default());
    let shared = Arc::clone(&seen);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            shared.connections.fetch_add(1, Relaxed);
            let seen = Arc::clone(&shared);
            let service = service_fn(move |request| response(request, Arc::clone(&seen)));
            let http = http2::Builder::new(TokioExecutor::new());
            tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
        }
    });
    (address, seen)
}

type Answer = Response<BoxBody<Bytes, hyper::Error>>;

async fn response(request: Request<Incoming>, seen: Arc<Seen>) -> Result<Answer, Infallible> {
    assert_eq!(request.version(), Version::HTTP_2);
    let whole = |text: String| Full::from(text).map_err(|never| match never {}).boxed();
    let (head, body) = request.into_parts();
    let response = match head.uri.path() {
        "/endless" => Response::new(Endless(seen).boxed()),
        "/deaf" => {
            let _unread = body;
            std::future::pending::<()>().await;
            unreachable!("the test ends first")
        }
        "/large-head" => {
            let mut response = Response::new(whole(String::new()));
            let value = HeaderValue::from_str(&"y".repeat(20_000)).unwrap();
            response.headers_mut().insert("x", value);
            response
        }
        "/many-headers" => {
            let mut response = Response::new(whole(String::new()));
            for _ in 0..101 {
                response
                    .headers_mut()
                    .append("x", HeaderValue::from_static("y"));
            }
            response
        }
        _ => {
            let body = body.collect().await.unwrap();
            let trailers = body.trailers().cloned().unwrap_or_default();
            let text = format!(
                "{} {:?} {:?} {:?} {:?}",
                head.uri,
                head.headers,
                head.headers.get("connection"),
                trailers,
                body.to_bytes()
            );
            let mut after = HeaderMap::new();
            after.insert("x-done", HeaderValue::from_static("1"));
            after.insert("set-cookie", HeaderValue::from_static("a=b"));
            let pieces = [Frame::data(Bytes::from(text)), Frame::trailers(after)];
            let pieces = futures_util::stream::iter(pieces.map(Ok));
            let mut response = Response::new(StreamBody::new(pieces).boxed());
            let names = HeaderValue::from_static("x-done");
            response.headers_mut().insert("trailer", names);
            response
        }
    };
    Ok(response)
}

/// Body with a kilobyte for each poll.
struct Endless(Arc<Seen>);

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.0.bytes_given.fetch_add(1_024, Relaxed);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[7; 1_024])))))
    }
}

#[tokio::test]
async fn the_request_reaches_the_origin_whole_and_trailers_pass_both_ways() {
    let (address, seen) = origin().await;
    let gateway = gateway(http2(), address).await;
    let mut client = Wire::connect(gateway.address).await;
    client
        .send(
            "POST /a?b=%20c HTTP/1.1\r\nHost: shop.example:81\r\nTE: trailers\r\n\
             Connection: te, x-hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nX-Own: 2\r\n\
             Trailer: X-Sum, Range\r\nTransfer-Encoding: chunked\r\n\r\n\
             2\r\nhi\r\n0\r\nX-Sum: 3\r\nRange: bytes=0-1\r\n\r\n",
        )
        .await;
    let head = client.head().await;
    assert!(head.starts_with("http/1.1 200 "), "{head}");
    let body = client.read_until("\r\n\r\n").await;
    assert!(body.contains("http://shop.example:81/a?b=%20c "), "{body}");
    for there in [
        "\"x-own\": \"2\"",
        "\"te\": \"trailers\"",
        "{\"x-sum\": \"3\"}",
        "b\"hi\"",
    ] {
        assert!(body.contains(there), "{there}: {body}");
    }
    for absent in ["x-hop", "keep-alive", "\"host\"", "\"connection\""] {
        assert!(!body.contains(absent), "{absent}: {body}");
    }
    assert!(body.ends_with("0\r\nx-done: 1\r\n\r\n"), "{body}");
    client
        .send("GET / HTTP/1.1\r\nHost: other.example\r\n\r\n")
        .await;
    client.read_until("http://other.example/").await;
    assert_eq!(
        seen.connections.load(Relaxed),
        1,
        "whatever host is requested"
    );
}

#[tokio::test]
async fn an_upgrade_goes_by_http_1() {
    let origin = crate::proxy::support::Origin::new().await;
    let gateway = gateway(http2(), origin.address).await;
    let mut client = Wire::connect(gateway.address).await;
    client
        .send("GET /ws HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
        .await;
    let mut wire = origin.accept().await;
    let head = wire.head().await;
    assert!(head.starts_with("get /ws http/1.1\r\n"), "{head}");
    wire.send("HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
        .await;
    client.head().await;
    client.send("ping").await;
    wire.read_until("ping").await;
    assert_eq!(header(&head, "upgrade"), Some("websocket"));
}

/// Socket buffers of a slow visitor's connection, so that the gateway's own buffers show.
const SOCKET_BYTES: u32 = 32 * 1_024;

#[tokio::test]
async fn slow_readers_use_little_memory_and_delay_no_request() {
    let (address, seen) = origin().await;
    let setup = Setup {
        socket_bytes: Some(SOCKET_BYTES),
        ..http2()
    };
    let gateway = gateway(setup, address).await;
    let mut slow = Vec::new();
    for _ in 0..60 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(SOCKET_BYTES).unwrap();
        let mut client = Wire::new(socket.connect(gateway.address).await.unwrap());
        client
            .send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
            .await;
        client.head().await;
        slow.push(client);
    }
    // Until nothing moves: all buffers of each connection are full.
    let mut last = 0;
    loop {
        // Other requests pass in between, all on one connection.
        for _ in 0..20 {
            let mut client = Wire::connect(gateway.address).await;
            client.send("GET /quick HTTP/1.1\r\nHost: a\r\n\r\n").await;
            client.read_until("\r\n\r\n").await;
        }
        let given = seen.bytes_given.load(Relaxed);
        if given == last {
            break;
        }
        last = given;
    }
    // For each: a window of 256 KiB, the kernel's buffers, and as much again for data being
    // written; 360,000 were seen.
    assert!(last < 60 * 600_000, "{last} bytes were taken");
    assert_eq!(seen.connections.load(Relaxed), 1);
}

#[tokio::test]
async fn an_upload_that_the_origin_does_not_read_is_given_up() {
    let (address, _seen) = origin().await;
    let mut setup = http2();
    setup.timeouts.origin_response = anteroom_room::time::DurationMs(2_000);
    let gateway = gateway(setup, address).await;
    let mut client = Wire::connect(gateway.address).await;
    client
        .send("POST /deaf HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n")
        .await;
    let sent = client.send_until_blocked().await;
    assert!(sent < 50_000_000, "{sent} bytes went somewhere");
    let head = client.head().await;
    assert!(head.starts_with("http/1.1 504 "), "{head}");
    client.rest().await;
    // The connection to the origin still works.
    let mut client = Wire::connect(gateway.address).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(client.head().await.starts_with("http/1.1 200 "));
}

#[tokio::test]
async fn more_requests_than_a_connection_bears_open_another() {
    let (address, seen) = origin().await;
    let gateway = gateway(
        Setup {
            sizes: anteroom_config::SizeLimits {
                connections: 1_000,
                connections_per_address: 0,
                ..Setup::default().sizes
            },
            ..http2()
        },
        address,
    )
    .await;
    let mut open = Vec::new();
    for _ in 0..101 {
        let mut client = Wire::connect(gateway.address).await;
        client
            .send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
            .await;
        client.head().await;
        open.push(client);
    }
    assert_eq!(seen.connections.load(Relaxed), 2);
}

#[tokio::test]
async fn a_head_that_is_larger_than_the_limits_is_502() {
    let (address, _seen) = origin().await;
    let gateway = gateway(http2(), address).await;
    for path in ["/large-head", "/many-headers"] {
        let mut client = Wire::connect(gateway.address).await;
        client
            .send(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"))
            .await;
        let head = client.head().await;
        assert!(head.starts_with("http/1.1 502 "), "{path}: {head}");
    }
}

#[tokio::test]
async fn an_origin_without_http_2_is_502() {
    let origin = crate::proxy::support::Origin::new().await;
    let gateway = gateway(http2(), origin.address).await;
    let mut client = Wire::connect(gateway.address).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut wire = origin.accept().await;
    wire.read_until("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    wire.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        .await;
    let head = client.head().await;
    assert!(head.starts_with("http/1.1 502 "), "{head}");
}
