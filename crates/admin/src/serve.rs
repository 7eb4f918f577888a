//! HTTP server of the admin address, and its limits on connections, requests and time.
//!
//! One request per connection: a single timeout then bounds clients that send slowly, read slowly
//! or send nothing. A scrape every few seconds does not need keep-alive.
//!
//! Every connection is accepted. Connections without a whole head are few: one more closes the
//! oldest of them, so that idle ones cannot block a probe. Concurrent requests are few as well;
//! probes do not count among them.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anteroom_proxy::downstream::tls::Tls;
use axum::body::Body;
use axum::http::{Request, Response};
use axum::{Extension, Router};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;
use tracing::{debug, warn};

use crate::api_error::ApiError;
use crate::guard::refused;
use crate::hosts::AllowedHosts;

/// Maximum concurrent requests, without probes; more are rejected. A handful of scrapers and people
/// need fewer, and client connections need the file descriptors.
const REQUESTS_MAX: usize = 64;
/// Maximum connections without a whole head. A head arrives within milliseconds, so few wait at a
/// time. With fewer, a flood of thousands a second closes a probe before it has sent its head.
const HEADS_MAX: usize = 512;
/// Timeout for the head of a request. On a network of operators it takes milliseconds.
const HEAD_TIME_MAX: Duration = Duration::from_secs(2);
/// Paths of supervisors, which restart a process that sends no response.
const PROBES: [&str; 3] = ["/livez", "/readyz", "/healthz"];
/// Timeout of a whole connection: two megabytes of metrics over a slow link fit.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(30);
/// Longest drain after shutdown; a process that ends must not wait for a scraper.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);
/// Maximum bytes of a request's head. Browsers send a few hundred, cookies of other ports a few
/// thousand.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Pause after a failed accept. Without one, a process out of file descriptors spins.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(100);

/// Client address of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Connections that have not sent a whole head, oldest first.
#[derive(Default)]
struct Heads(Mutex<BTreeMap<u64, oneshot::Sender<()>>>);

impl Heads {
    /// Adds a connection. The returned receiver signals that it must close for a newer one.
    fn begin(&self, id: u64) -> oneshot::Receiver<()> {
        let (close, closing) = oneshot::channel();
        let mut heads = self.0.lock();
        if heads.len() >= HEADS_MAX
            && let Some((_, oldest)) = heads.pop_first()
        {
            // The connection may have ended already.
            let _ = oldest.send(());
        }
        heads.insert(id, close);
        closing
    }

    /// Removes a connection that has sent its head or has ended.
    fn end(&self, id: u64) {
        self.0.lock().remove(&id);
    }
}

/// State that all connections share.
struct Serving {
    tls: Option<Tls>,
    http: http1::Builder,
    router: Router,
    heads: Arc<Heads>,
    permits: Arc<Semaphore>,
}

/// Serves on `listener` until `shutdown`, then drains open requests for at most five seconds.
/// `hosts` are names that browsers may use, beside those of a loopback address. With `tls`, clients
/// connect by https.
pub async fn serve(
    listener: TcpListener,
    (hosts, tls): (Vec<String>, Option<Tls>),
    router: Router,
    shutdown: impl Future<Output = ()>,
) {
    let own = listener.local_addr().map(|address| address.ip());
    let own = own
        .unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
        .to_canonical();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .keep_alive(false)
        .max_header_size(HEAD_BYTES_MAX)
        .max_buf_size(HEAD_BYTES_MAX);
    let serving = Serving {
        http,
        router: router.layer(Extension(Arc::new(AllowedHosts::new(own, hosts)))),
        tls,
        heads: Arc::default(),
        permits: Arc::new(Semaphore::new(REQUESTS_MAX)),
    };
    let open = GracefulShutdown::new();
    let mut shutdown = pin!(shutdown);
    for id in 0.. {
        let (stream, peer) = tokio::select! {
            biased;
            () = shutdown.as_mut() => break,
            accepted = accept(&listener) => accepted,
        };
        serving.start(id, stream, peer, open.watcher());
    }
    // Connections in the kernel's queue are refused, instead of left hanging.
    drop(listener);
    if timeout(DRAIN_TIME_MAX, open.shutdown()).await.is_err() {
        debug!("admin connections were still open at the end of draining");
    }
}

impl Serving {
    /// Serves one connection in a task of its own.
    fn start(&self, id: u64, stream: TcpStream, peer: Peer, open: Watcher) {
        let closing = self.heads.begin(id);
        let heads = Arc::clone(&self.heads);
        let permits = Arc::clone(&self.permits);
        // Held until the connection ends, so until the whole response is sent.
        let permit: Arc<OnceLock<OwnedSemaphorePermit>> = Arc::default();
        let router = TowerToHyperService::new(self.router.clone().layer(Extension(peer)));
        let service = service_fn(move |request: Request<Incoming>| {
            heads.end(id);
            let is_allowed = PROBES.contains(&request.uri().path())
                || Arc::clone(&permits)
                    .try_acquire_owned()
                    .is_ok_and(|acquired| permit.set(acquired).is_ok());
            let path = (!is_allowed).then(|| request.uri().path().to_owned());
            let response = is_allowed.then(|| router.call(request));
            async move {
                match response {
                    Some(response) => response.await,
                    None => {
                        let path = path.unwrap_or_default();
                        Ok::<Response<Body>, Infallible>(refused(&path, ApiError::Busy))
                    }
                }
            }
        });
        let (http, tls, heads) = (self.http.clone(), self.tls.clone(), Arc::clone(&self.heads));
        let connection = async move {
            let Some(tls) = tls else {
                let connection = http.serve_connection(TokioIo::new(stream), service);
                return open.watch(connection).await;
            };
            match tls.accept_http1(stream, HEAD_TIME_MAX).await {
                Ok(stream) => {
                    let connection = http.serve_connection(TokioIo::new(stream), service);
                    open.watch(connection).await
                }
                Err(error) => {
                    debug!(%error, "TLS handshake of an operator failed");
                    Ok(())
                }
            }
        };
        tokio::spawn(async move {
            let closed = async {
                if closing.await.is_err() {
                    // The head arrived in time.
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                () = closed => debug!("admin connection without a request closed for a newer one"),
                served = timeout(CONNECTION_TIME_MAX, connection) => match served {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => {
                        debug!(error = &error as &dyn std::error::Error, "connection broke");
                    }
                    Err(_) => debug!("a connection took too long"),
                },
            }
            heads.end(id);
        });
    }
}

/// Accepts the next connection.
async fn accept(listener: &TcpListener) -> (TcpStream, Peer) {
    loop {
        match listener.accept().await {
            Ok((stream, address)) => return (stream, Peer(address.ip().to_canonical())),
            Err(error) => {
                warn!(%error, "cannot accept an admin connection");
                tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::oneshot::error::TryRecvError;
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
        let mut router = Router::new().route("/slow", get(std::future::pending::<String>));
        for probe in PROBES {
            router = router.route(probe, get(async || "yes"));
        }
        let done = tokio::spawn(serve(listener, (Vec::new(), None), router, shutdown));
        Running {
            address,
            stop,
            done,
        }
    }

    /// Reads until the other side has closed.
    async fn rest(mut stream: TcpStream) -> Vec<u8> {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        rest
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_is_closed() {
        let running = start().await;
        let began = Instant::now();
        let idle = TcpStream::connect(running.address).await.unwrap();
        assert_eq!(rest(idle).await, b"");
        assert!(began.elapsed() >= HEAD_TIME_MAX);
        assert!(began.elapsed() < CONNECTION_TIME_MAX);
    }

    async fn get_path(address: std::net::SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        String::from_utf8(rest(stream).await).unwrap()
    }

    #[tokio::test]
    async fn a_probe_gets_a_response_while_1500_heads_are_unfinished() {
        let running = start().await;
        let mut unfinished = Vec::new();
        for _ in 0..1_500 {
            let mut stream = TcpStream::connect(running.address).await.unwrap();
            // A connection may have been closed for a newer one.
            let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: a").await;
            unfinished.push(stream);
        }
        let response = timeout(HEAD_TIME_MAX, get_path(running.address, "/livez")).await;
        let response = response.expect("a response before the timeout of the others");
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    }

    #[test]
    fn one_connection_too_many_without_a_head_closes_the_oldest() {
        let heads = Heads::default();
        let all = (0..).take(HEADS_MAX + 1).map(|id| heads.begin(id));
        let mut closing: Vec<_> = all.collect();
        assert!(closing[0].try_recv().is_ok());
        for later in &mut closing[1..] {
            assert_eq!(later.try_recv(), Err(TryRecvError::Empty));
        }
        heads.end(1);
        assert_eq!(closing[1].try_recv(), Err(TryRecvError::Closed));
    }

    #[tokio::test]
    async fn open_requests_do_not_block_probes() {
        let running = start().await;
        let mut slow = Vec::new();
        for _ in 0..REQUESTS_MAX {
            let mut stream = TcpStream::connect(running.address).await.unwrap();
            let request = b"GET /slow HTTP/1.1\r\nhost: localhost\r\n\r\n";
            stream.write_all(request).await.unwrap();
            slow.push(stream);
        }
        // Connections are served concurrently: until all are known, one more may be allowed.
        loop {
            let one_more = get_path(running.address, "/nothing").await;
            if one_more.starts_with("HTTP/1.1 503 ") {
                break;
            }
            assert!(one_more.starts_with("HTTP/1.1 404 "), "{one_more}");
        }
        for path in PROBES {
            let response = get_path(running.address, path).await;
            assert!(response.starts_with("HTTP/1.1 200 "), "{path}: {response}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn shutdown_does_not_wait_for_idle_connections() {
        let running = start().await;
        let idle = TcpStream::connect(running.address).await.unwrap();
        running.stop.send(()).unwrap();
        running.done.await.unwrap();
        drop(idle);
        assert!(TcpStream::connect(running.address).await.is_err());
    }
}
