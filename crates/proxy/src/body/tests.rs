//! Tests of bodies in memory and of slow streams, in paused time.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::mpsc;

use super::yielding::TURN_BYTES;
use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Starts an upload; returns the client's end of the connection and the body.
async fn upload() -> (DuplexStream, Incoming) {
    let (mut client, server) = tokio::io::duplex(10_000);
    let (given_tx, mut received) = mpsc::channel(1);
    let keep = service_fn(move |request: Request<Incoming>| {
        let given_tx = given_tx.clone();
        async move {
            given_tx.send(request.into_body()).await.unwrap();
            std::future::pending::<Result<Response<Body>, Infallible>>().await
        }
    });
    tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(server), keep));
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n";
    client.write_all(head).await.unwrap();
    (client, received.recv().await.unwrap())
}

#[tokio::test(start_paused = true)]
async fn an_upload_below_the_minimum_rate_fails() {
    for (bytes, is_slow) in [(150, false), (50, true)] {
        let (mut client, incoming) = upload().await;
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(SECOND).await; // tidy: time passes
                if client.write_all(&vec![7; bytes]).await.is_err() {
                    return;
                }
            }
        });
        let mut body = Body::incoming(incoming, 60 * SECOND).paced(100);
        let mut failed = None;
        for _ in 0..40 {
            failed = failed.or(body.frame().await.unwrap().err());
        }
        let found = matches!(failed, Some(BodyError::Slow { .. }));
        assert_eq!(found, is_slow, "{bytes} {failed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_upload_that_waits_for_its_reader_is_not_slow() {
    let (mut client, incoming) = upload().await;
    let mut body = Body::incoming(incoming, 60 * SECOND).paced(100);
    for _ in 0..10 {
        client.write_all(b"x").await.unwrap();
        body.frame().await.unwrap().unwrap();
        tokio::time::sleep(20 * SECOND).await; // tidy: time passes
    }
}

#[tokio::test]
async fn a_body_in_memory_is_one_piece() {
    let body = Body::from("hello");
    assert_eq!(body.size_hint().exact(), Some(5));
    assert!(!body.is_end_stream());
    assert_eq!(body.collect().await.unwrap().to_bytes(), "hello");
}

#[tokio::test]
async fn an_empty_body_is_known_to_end_before_it_is_read() {
    for body in [Body::empty(), Body::from(""), Body::default()] {
        assert!(body.is_end_stream());
        assert_eq!(body.size_hint().exact(), Some(0));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "");
    }
}

/// Starts a download of `bytes` bytes, all of which are ready to be read.
async fn download(bytes: usize) -> Incoming {
    let (server, client) = tokio::io::duplex(1 << 20);
    tokio::spawn(async move {
        let (mut read, mut write) = tokio::io::split(server);
        let _ = read.read(&mut [0; 1_000]).await;
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n");
        let _ = write.write_all(head.as_bytes()).await;
        let _ = write.write_all(&vec![7; bytes]).await;
    });
    let mut builder = hyper::client::conn::http1::Builder::new();
    let builder = builder.max_buf_size(PIECE_BYTES);
    let (mut sender, connection) = builder.handshake(TokioIo::new(client)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get("/").header("host", "a").body(Body::empty());
    let response = sender.send_request(request.unwrap()).await.unwrap();
    response.into_body()
}

/// Maximum bytes of one read from a connection.
const PIECE_BYTES: usize = 64 * 1024;

/// Returns two ends of a connection; the first one is used without the runtime.
fn connected() -> (std::net::TcpStream, tokio::net::TcpStream) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let far = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (near, _) = listener.accept().unwrap();
    near.set_nonblocking(true).unwrap();
    (far, tokio::net::TcpStream::from_std(near).unwrap())
}

#[tokio::test]
async fn a_large_body_yields_to_small_requests() {
    let moved = Arc::new(AtomicUsize::new(0));
    let (far, mut near) = connected();
    let moved_so_far = Arc::clone(&moved);
    // The bytes of a small request arrive during the download.
    let small = tokio::spawn(async move {
        near.read_exact(&mut [0]).await.unwrap();
        moved_so_far.load(Relaxed)
    });
    let (server, mut client) = tokio::io::duplex(1 << 20);
    let sent_at = Arc::new(AtomicUsize::new(0));
    let (count, at) = (Arc::clone(&moved), Arc::clone(&sent_at));
    let far = Arc::new(far);
    let serve = service_fn(move |_: Request<Incoming>| {
        let (count, at, far) = (Arc::clone(&count), Arc::clone(&at), Arc::clone(&far));
        async move {
            let body = Body::incoming(download(64 << 20).await, 60 * SECOND);
            let body = body.map_frame(move |frame| {
                let moved = count.fetch_add(frame.data_ref().unwrap().len(), Relaxed);
                if moved > 1 << 20 && at.load(Relaxed) == 0 {
                    at.store(moved, Relaxed);
                    std::io::Write::write_all(&mut &*far, b"x").unwrap();
                }
                frame
            });
            Ok::<_, Infallible>(Response::new(body))
        }
    });
    tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(server), serve));
    let request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    client.write_all(request).await.unwrap();
    tokio::io::copy(&mut client, &mut tokio::io::sink())
        .await
        .unwrap();
    assert_eq!(moved.load(Relaxed), 64 << 20);
    let waited = small.await.unwrap() - sent_at.load(Relaxed);
    assert!(waited <= TURN_BYTES + 2 * PIECE_BYTES, "{waited} bytes");
}
