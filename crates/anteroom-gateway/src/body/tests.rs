//! Bodies that are in memory, and some that take their time, in time that passes at once.

use std::convert::Infallible;

use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncWriteExt as _, DuplexStream};
use tokio::sync::mpsc;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A request's body, and the client that has more of it to send.
async fn upload() -> (DuplexStream, Incoming) {
    let (mut client, server) = tokio::io::duplex(10_000);
    let (give, mut given) = mpsc::channel(1);
    let keep = service_fn(move |request: Request<Incoming>| {
        let give = give.clone();
        async move {
            give.send(request.into_body()).await.unwrap();
            std::future::pending::<Result<Response<Body>, Infallible>>().await
        }
    });
    tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(server), keep));
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n";
    client.write_all(head).await.unwrap();
    (client, given.recv().await.unwrap())
}

#[tokio::test(start_paused = true)]
async fn an_upload_that_trickles_fails_and_a_slow_one_does_not() {
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
async fn an_upload_that_nobody_takes_for_a_while_is_not_slow() {
    let (mut client, incoming) = upload().await;
    let mut body = Body::incoming(incoming, 60 * SECOND).paced(100);
    for _ in 0..10 {
        client.write_all(b"x").await.unwrap();
        body.frame().await.unwrap().unwrap();
        tokio::time::sleep(20 * SECOND).await; // tidy: time passes
    }
}

#[tokio::test]
async fn what_is_in_memory_comes_in_one_piece() {
    let body = Body::from("hello");
    assert_eq!(body.size_hint().exact(), Some(5));
    assert!(!body.is_end_stream());
    assert_eq!(body.collect().await.unwrap().to_bytes(), "hello");
}

#[tokio::test]
async fn an_empty_body_says_so_before_it_is_read() {
    for body in [Body::empty(), Body::from(""), Body::default()] {
        assert!(body.is_end_stream());
        assert_eq!(body.size_hint().exact(), Some(0));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "");
    }
}
