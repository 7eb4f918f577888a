//! How do operators connect, how many at once, and for how long?
//!
//! One request for each connection: then one time-out over all of it bounds whoever sends slowly,
//! reads slowly or says nothing, and a scrape every few seconds does not miss what keep-alive
//! would save.

use std::future::Future;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tracing::{debug, warn};

/// Connections at once; more wait in the kernel. A handful of scrapers, probes and people need
/// fewer, and the front door needs the file descriptors.
const CONNECTIONS_MAX: usize = 64;
/// For the head of a request. On a network of operators it takes milliseconds.
const HEAD_TIME_MAX: Duration = Duration::from_secs(5);
/// For a whole connection: two megabytes of metrics over a slow line fit in.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(30);
/// For open connections after shutdown; a process on its way out must not wait for a scraper.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);
/// Bytes of a request's head. Browsers send a few hundred, cookies of other ports a few thousand.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Pause after a failed accept. Without one, a process out of file descriptors spins.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(100);

/// Where a request comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Answers on `listener` until `shutdown`, then lets open requests end, for five seconds at most.
pub async fn serve(listener: TcpListener, router: Router, shutdown: impl Future<Output = ()>) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .keep_alive(false)
        .max_header_size(HEAD_BYTES_MAX)
        .max_buf_size(HEAD_BYTES_MAX);
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let open = GracefulShutdown::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let (stream, peer, permit) = tokio::select! {
            biased;
            () = shutdown.as_mut() => break,
            accepted = accept(&listener, &permits) => accepted,
        };
        let service = TowerToHyperService::new(router.clone().layer(Extension(peer)));
        let connection = open.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            match timeout(CONNECTION_TIME_MAX, connection).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    debug!(error = &error as &dyn std::error::Error, "connection broke");
                }
                Err(_) => debug!("a connection took too long"),
            }
            drop(permit);
        });
    }
    // Whoever waits in the queue of the kernel is refused, instead of left hanging.
    drop(listener);
    if timeout(DRAIN_TIME_MAX, open.shutdown()).await.is_err() {
        debug!("admin connections were still open at the end of draining");
    }
}

/// The next connection, once there may be one more.
async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> (TcpStream, Peer, OwnedSemaphorePermit) {
    let permit = Arc::clone(permits)
        .acquire_owned()
        .await
        .expect("nobody closes the semaphore");
    loop {
        match listener.accept().await {
            Ok((stream, address)) => return (stream, Peer(address.ip().to_canonical()), permit),
            Err(error) => {
                warn!(%error, "could not accept an admin connection");
                tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::oneshot;
    use tokio::task::JoinHandle;
    use tokio::time::Instant;

    use super::*;

    struct Running {
        address: std::net::SocketAddr,
        stop: oneshot::Sender<()>,
        done: JoinHandle<()>,
    }

    async fn start() -> Running {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let shutdown = async {
            let _ = stopped.await;
        };
        let done = tokio::spawn(serve(listener, Router::new(), shutdown));
        Running {
            address,
            stop,
            done,
        }
    }

    /// Everything that comes until the other side has closed.
    async fn rest(mut stream: TcpStream) -> Vec<u8> {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        rest
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_says_nothing_is_let_go() {
        let running = start().await;
        let began = Instant::now();
        let mute = TcpStream::connect(running.address).await.unwrap();
        assert_eq!(rest(mute).await, b"");
        assert!(began.elapsed() >= HEAD_TIME_MAX);
        assert!(began.elapsed() < CONNECTION_TIME_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn one_connection_too_many_waits_until_another_has_ended() {
        let running = start().await;
        let began = Instant::now();
        let mut mute = Vec::new();
        for _ in 0..CONNECTIONS_MAX {
            mute.push(TcpStream::connect(running.address).await.unwrap());
        }
        let mut last = TcpStream::connect(running.address).await.unwrap();
        last.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
            .await
            .unwrap();
        let answer = rest(last).await;
        assert!(answer.starts_with(b"HTTP/1.1 404 "));
        assert!(began.elapsed() >= HEAD_TIME_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn shutdown_waits_for_nobody_who_says_nothing() {
        let running = start().await;
        let mute = TcpStream::connect(running.address).await.unwrap();
        running.stop.send(()).unwrap();
        running.done.await.unwrap();
        drop(mute);
        assert!(TcpStream::connect(running.address).await.is_err());
    }
}
