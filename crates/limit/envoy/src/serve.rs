//! Connections of clients: how many at once, and limits on slow ones.

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

use crate::first_byte_timeout::FirstByteTimeout;

/// Connections at once, per endpoint; more wait in the kernel. Envoy opens one per worker thread.
const CONNECTIONS_MAX: usize = 1_024;
/// Requests at once on one connection. Envoy queues more.
const STREAMS_MAX: u32 = 256;
/// Largest header, in bytes. Envoy sends some hundred bytes, with tracing a few more.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Longest time for the head of an HTTP/1 request, and between two requests.
const HEAD_TIME_MAX: Duration = Duration::from_secs(60);
/// Longest time for the first bytes of an HTTP/2 connection. Envoy sends them as soon as it is
/// connected, and hyper sends no ping before them.
const PREFACE_TIME_MAX: Duration = Duration::from_secs(10);
/// Time without traffic on an HTTP/2 connection after which a ping is sent, and timeout of the
/// ping.
const PING_EVERY: Duration = Duration::from_secs(30);
/// Longest time for open requests when the service stops: as long as one may take.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);
/// Grace time for the first bytes of clients that had connected when the service stops: a round
/// trip, and a slow process.
const FIRST_BYTES_GRACE: Duration = Duration::from_secs(1);
/// Pause after a failed accept. Without one, a process out of file descriptors spins.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(100);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Serves gRPC until `stopped` is true or its sender is dropped.
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
        let stream = FirstByteTimeout::new(without_delay(stream), PREFACE_TIME_MAX);
        let connection = http.serve_connection(TokioIo::new(stream), service_fn(call.clone()));
        async move { watcher.watch(connection).await.map_err(Into::into) }
    })
    .await;
}

/// Serves HTTP/1.1 until `stopped` is true or its sender is dropped.
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
            // Kept until the connection ends, as the shutdown waits for it.
            let _watcher = watcher;
            if !sent_first_bytes(&stream, stopping.clone()).await {
                return Ok(());
            }
            let stream = TokioIo::new(without_delay(stream));
            let mut connection = pin!(http.serve_connection(stream, service_fn(call)));
            tokio::select! {
                // The connection goes first, so that it has read something: hyper drops a request
                // that it has not read when it is told to shut down (hyper 1.12,
                // `Dispatcher::disable_keep_alive`).
                biased;
                served = connection.as_mut() => return served.map_err(Into::into),
                // An error means that the sender was dropped, which also stops the service.
                _ = stopping.wait_for(|is_stopped| *is_stopped) => {}
            }
            connection.as_mut().graceful_shutdown();
            connection.await.map_err(Into::into)
        }
    })
    .await;
}

/// Waits for the first bytes of a client, and returns whether they came. A client that had
/// connected before the service stops has sent them already, or is about to.
async fn sent_first_bytes(stream: &TcpStream, mut stopping: watch::Receiver<bool>) -> bool {
    let mut first = [0];
    let grace_over = async {
        // An error means that the sender was dropped, which also stops the service.
        let _ = stopping.wait_for(|is_stopped| *is_stopped).await;
        tokio::time::sleep(FIRST_BYTES_GRACE).await;
    };
    tokio::select! {
        biased;
        // Peeks, as mere readiness may be false.
        seen = timeout(HEAD_TIME_MAX, stream.peek(&mut first)) => matches!(seen, Ok(Ok(1..))),
        () = grace_over => false,
    }
}

fn without_delay(stream: TcpStream) -> TcpStream {
    // A response is one small packet that the client waits for.
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
    // Dropped to close the connections that are still open.
    let (keep_open, closed) = watch::channel(());
    loop {
        let (stream, permit) = tokio::select! {
            biased;
            // An error means that the sender was dropped, which also stops the service.
            _ = stopped.wait_for(|is_stopped| *is_stopped) => break,
            accepted = accept(&listener, &permits) => accepted,
        };
        let connection = connect(stream, open.watcher());
        let mut closed = closed.clone();
        tokio::spawn(async move {
            let served = tokio::select! {
                served = connection => served,
                _ = closed.changed() => Ok(()),
            };
            if let Err(error) = served {
                tracing::debug!(error = &*error, "client connection failed");
            }
            drop(permit);
        });
    }
    // Connections in the kernel's queue go to the successor process, which has the same socket.
    // Without a successor they are refused instead of left hanging.
    drop(listener);
    if timeout(DRAIN_TIME_MAX, open.shutdown()).await.is_err() {
        tracing::debug!("closing connections that did not end in time");
    }
    // This closes health watches, and clients that send nothing more.
    drop(keep_open);
}

/// Accepts the next connection, once there is room for it.
async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> (TcpStream, OwnedSemaphorePermit) {
    let permit = Arc::clone(permits).acquire_owned().await;
    let permit = permit.expect("the semaphore is never closed");
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
