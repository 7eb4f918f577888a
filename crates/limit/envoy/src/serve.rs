//! How do clients connect, how many at once, and what may a slow one hold?

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

use crate::opening::Opening;

/// Connections at once, at each door; more wait in the kernel. Envoy has one for each of its
/// threads.
const CONNECTIONS_MAX: usize = 1_024;
/// Calls at once on one connection. Envoy queues what is beyond.
const STREAMS_MAX: u32 = 256;
/// Bytes of heads. Envoy sends some hundred, with tracing a few more.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// For the head of a request over HTTP/1, and between two requests.
const HEAD_TIME_MAX: Duration = Duration::from_secs(60);
/// Over HTTP/2, for the first bytes. Envoy sends them as soon as it is connected, and until then
/// nobody asks for a ping.
const PREFACE_TIME_MAX: Duration = Duration::from_secs(10);
/// After those, and so long without a word, a client is asked whether it is still there, and has as
/// long to say so.
const PING_EVERY: Duration = Duration::from_secs(30);
/// For open calls when the service ends: as long as one may take.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);
/// For the first bytes of clients that had connected when the service ends: a round trip, and a
/// slow process.
const LAST_CALL: Duration = Duration::from_secs(1);
/// Pause after a failed accept. Without one, a process out of file descriptors spins.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(100);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Serves gRPC until `stopped` says so, or its sender is gone.
pub(crate) async fn grpc<F, B>(
    listener: TcpListener,
    stopped: watch::Receiver<bool>,
    call: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
) where
    F: Future<Output = Result<Response<B>, Infallible>> + Send + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(HEAD_BYTES_MAX).unwrap_or(u32::MAX))
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_EVERY);
    serve(listener, stopped, move |stream, watcher: Watcher| {
        let stream = Opening::new(without_delay(stream), PREFACE_TIME_MAX);
        let connection = http.serve_connection(TokioIo::new(stream), service_fn(call.clone()));
        async move { watcher.watch(connection).await.map_err(Into::into) }
    })
    .await;
}

/// Serves HTTP/1.1 until `stopped` says so, or its sender is gone.
pub(crate) async fn http<F, B>(
    listener: TcpListener,
    stopped: watch::Receiver<bool>,
    call: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
) where
    F: Future<Output = Result<Response<B>, Infallible>> + Send + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_buf_size(HEAD_BYTES_MAX);
    let stopping = stopped.clone();
    serve(listener, stopped, move |stream, watcher: Watcher| {
        let (http, call, mut stopping) = (http.clone(), call.clone(), stopping.clone());
        async move {
            // Held until this ends, so that the service waits for it.
            let _watcher = watcher;
            if !says_something(&stream, stopping.clone()).await {
                return Ok(());
            }
            let stream = TokioIo::new(without_delay(stream));
            let mut connection = pin!(http.serve_connection(stream, service_fn(call)));
            tokio::select! {
                // First, so that it has read something: told to end before that it would not
                // answer (hyper 1.12, `Dispatcher::disable_keep_alive`).
                biased;
                served = connection.as_mut() => return served.map_err(Into::into),
                // An error is a sender that is gone, which means the same.
                _ = stopping.wait_for(|is_stopped| *is_stopped) => {}
            }
            connection.as_mut().graceful_shutdown();
            connection.await.map_err(Into::into)
        }
    })
    .await;
}

/// Waits for the first bytes of a client. One that had connected when the service was told to end
/// has sent them already, or is about to.
async fn says_something(stream: &TcpStream, mut stopping: watch::Receiver<bool>) -> bool {
    let mut first = [0];
    let last_call = async {
        // An error is a sender that is gone, which means the same.
        let _ = stopping.wait_for(|is_stopped| *is_stopped).await;
        tokio::time::sleep(LAST_CALL).await;
    };
    tokio::select! {
        biased;
        // What is there stays there; to be told that something may be there would not do.
        seen = timeout(HEAD_TIME_MAX, stream.peek(&mut first)) => matches!(seen, Ok(Ok(1..))),
        () = last_call => false,
    }
}

fn without_delay(stream: TcpStream) -> TcpStream {
    // An answer is one small packet that somebody waits for.
    let _ = stream.set_nodelay(true);
    stream
}

async fn serve<F>(
    listener: TcpListener,
    mut stopped: watch::Receiver<bool>,
    connect: impl Fn(TcpStream, Watcher) -> F,
) where
    F: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let open = GracefulShutdown::new();
    // Dropped when whoever is still there is to go.
    let (patience, over) = watch::channel(());
    loop {
        let (stream, permit) = tokio::select! {
            biased;
            // An error is a sender that is gone, which means the same.
            _ = stopped.wait_for(|is_stopped| *is_stopped) => break,
            accepted = accept(&listener, &permits) => accepted,
        };
        let connection = connect(stream, open.watcher());
        let mut over = over.clone();
        tokio::spawn(async move {
            let served = tokio::select! {
                served = connection => served,
                _ = over.changed() => Ok(()),
            };
            if let Err(error) = served {
                tracing::debug!(error = &*error, "a client's connection broke");
            }
            drop(permit);
        });
    }
    // Whoever waits in the queue of the kernel is accepted by the successor, which has the same
    // socket; if there is none, refused instead of left hanging.
    drop(listener);
    if timeout(DRAIN_TIME_MAX, open.shutdown()).await.is_err() {
        tracing::debug!("clients of the rate limit service were still connected at its end");
    }
    // Such as who watches whether it is well, and who answers no more.
    drop(patience);
}

/// The next connection, once there may be one more.
async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> (TcpStream, OwnedSemaphorePermit) {
    let permit = Arc::clone(permits).acquire_owned().await;
    let permit = permit.expect("nobody closes it");
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, permit),
            Err(error) => {
                tracing::warn!(%error, "cannot accept a client of the rate limit service");
                tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
            }
        }
    }
}
