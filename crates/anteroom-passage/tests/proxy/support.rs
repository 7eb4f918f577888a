//! A gateway without rooms in front of one origin, and raw sockets at both ends.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anteroom_config::{Http2, Origin as OriginConfig, RoomName, RoomOrigins, SizeLimits, TimeOuts};
use anteroom_core::time::Span;
use anteroom_front::drain::{DrainTrigger, drain};
use anteroom_front::hold::{ConnectionCap, ConnectionObserver};
use anteroom_front::listener::listen;
use anteroom_front::server::Server;
use anteroom_gateway::body::Body;
use anteroom_gateway::forwarded::TrustedProxies;
use anteroom_gateway::intake::{Checked, Intake};
use anteroom_gateway::proxy::{OriginOutcome, ReverseProxy, Upstream};
use anteroom_origin::{Group, Limits, Origins};
use http::{HeaderValue, Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tower::ServiceExt;

/// What a test may want to set.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) time_outs: TimeOuts,
    pub(crate) sizes: SizeLimits,
    pub(crate) trusted: Vec<ipnet::IpNet>,
    pub(crate) http2: Http2,
    pub(crate) head_bytes: usize,
    pub(crate) headers: usize,
    pub(crate) idle: Duration,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            time_outs: TimeOuts {
                request_head: Span::from_secs(20),
                origin_connect: Span::from_secs(20),
                origin_response: Span::from_secs(20),
                body_idle: Span::from_secs(20),
                keep_alive: Span::from_secs(20),
                drain: Span::from_secs(20),
            },
            sizes: SizeLimits {
                request_head_bytes: 16_384,
                request_headers: 100,
                request_uri_bytes: 8_192,
                request_body_bytes: 0,
                body_bytes_per_second_min: 0,
                connections: 100,
                requests_per_connection: 0,
                http2_streams: 100,
            },
            trusted: Vec::new(),
            http2: Http2::Never,
            head_bytes: 16_384,
            headers: 100,
            idle: Duration::from_secs(20),
        }
    }
}

/// Counts what happens to connections.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) opened: AtomicUsize,
    pub(crate) closed: AtomicUsize,
    pub(crate) paused: AtomicUsize,
    changed: Notify,
}

impl Counts {
    /// Waits until `count` has reached `target`.
    pub(crate) async fn wait(&self, count: fn(&Self) -> &AtomicUsize, target: usize) {
        loop {
            let changed = self.changed.notified();
            if count(self).load(Ordering::SeqCst) >= target {
                return;
            }
            changed.await;
        }
    }

    fn add(&self, count: &AtomicUsize) {
        count.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_waiters();
    }
}

impl ConnectionObserver for Counts {
    fn opened(&self) {
        self.add(&self.opened);
    }

    fn closed(&self) {
        self.add(&self.closed);
    }

    fn accept_paused(&self) {
        self.add(&self.paused);
    }
}

/// A gateway that sends everything to one origin, and says `x-outcome` in its answers.
pub(crate) struct Gateway {
    pub(crate) address: SocketAddr,
    pub(crate) counts: Arc<Counts>,
    pub(crate) trigger: DrainTrigger,
    pub(crate) ended: JoinHandle<()>,
    pub(crate) group: Arc<Group<Body>>,
}

pub(crate) async fn gateway(setup: Setup, origin: SocketAddr) -> Gateway {
    gateway_to(setup, &[origin]).await
}

/// The same with several origins.
pub(crate) async fn gateway_to(setup: Setup, origins: &[SocketAddr]) -> Gateway {
    let proxy = ReverseProxy::new(&setup.time_outs);
    let upstream = Upstream(group(&setup, origins));
    let group = Arc::clone(&upstream.0);
    let service = tower::service_fn(move |mut request: Request<Body>| {
        let upstream = upstream.clone();
        async move {
            if request.uri().path() != "/no-origin" {
                request.extensions_mut().insert(upstream);
            }
            let mut response = proxy.oneshot(request).await?;
            tell_outcome(&mut response);
            Ok::<_, Infallible>(response)
        }
    });
    let listener = listen("127.0.0.1:0".parse().unwrap(), true).unwrap();
    let address = listener.local_addr().unwrap();
    let counts = Arc::new(Counts::default());
    let (trigger, signal) = drain();
    let server = Server::new(
        &setup.time_outs,
        &setup.sizes,
        ConnectionCap::new(setup.sizes.connections),
        Arc::clone(&counts) as Arc<dyn ConnectionObserver>,
    );
    let trusted = TrustedProxies::new(setup.trusted);
    let intake = Intake::new(&setup.time_outs, &setup.sizes, trusted);
    let handler = Checked::new(intake, service);
    let ended = tokio::spawn(server.serve(listener, handler, signal));
    Gateway {
        address,
        counts,
        trigger,
        ended,
        group,
    }
}

fn group(setup: &Setup, origins: &[SocketAddr]) -> Arc<Group<Body>> {
    let urls = origins.iter().map(|address| format!("http://{address}"));
    let origins = RoomOrigins {
        list: urls.map(|url| OriginConfig::parse(&url).unwrap()).collect(),
        http2: setup.http2,
        ca_file: None,
        health_check: None,
    };
    let limits = Limits {
        connect: Duration::from_millis(setup.time_outs.origin_connect.0),
        idle: setup.idle,
        head_bytes: setup.head_bytes,
        headers: setup.headers,
    };
    let room = RoomName::new("shop").unwrap();
    Origins::new(limits).single(&room, &origins).unwrap()
}

fn tell_outcome(response: &mut Response<Body>) {
    let outcome = match response.extensions().get::<OriginOutcome>() {
        Some(OriginOutcome::Answered(_)) => "answered",
        Some(OriginOutcome::ConnectFailed) => "connect-failed",
        Some(OriginOutcome::TimedOut) => "timed-out",
        Some(OriginOutcome::Broken) => "broken",
        None => "none",
    };
    let outcome = HeaderValue::from_static(outcome);
    response.headers_mut().insert("x-outcome", outcome);
}

/// One end of a connection, spoken to by hand.
pub(crate) struct Wire {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            read: Vec::new(),
        }
    }

    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::new(TcpStream::connect(address).await.unwrap())
    }

    pub(crate) async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Sends what may be cut short by the other side.
    pub(crate) async fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok()
    }

    /// Sends until the other side takes nothing for a while; how much it took, at least.
    pub(crate) async fn send_until_held_back(&mut self) -> usize {
        let piece = vec![7; 100_000];
        let mut sent = 0;
        while let Ok(true) = timeout(Duration::from_millis(500), self.try_send(&piece)).await {
            sent += piece.len();
            assert!(sent < 500_000_000, "nobody holds it back");
        }
        sent
    }

    /// Reads up to and with `end`, and returns it.
    pub(crate) async fn read_until(&mut self, end: &str) -> String {
        loop {
            if let Some(at) = find(&self.read, end.as_bytes()) {
                let rest = self.read.split_off(at + end.len());
                let text = std::mem::replace(&mut self.read, rest);
                return String::from_utf8_lossy(&text).into_owned();
            }
            let read = self.stream.read_buf(&mut self.read).await.unwrap();
            let so_far = String::from_utf8_lossy(&self.read);
            assert!(read > 0, "ended before {end:?}: {so_far}");
        }
    }

    /// Reads a head, in lower case.
    pub(crate) async fn head(&mut self) -> String {
        self.read_until("\r\n\r\n").await.to_lowercase()
    }

    /// Reads until the other side closes; a reset counts as closed.
    pub(crate) async fn rest(&mut self) -> String {
        while let Ok(1..) = self.stream.read_buf(&mut self.read).await {}
        String::from_utf8_lossy(&std::mem::take(&mut self.read)).into_owned()
    }

    /// Closes the sending side only.
    pub(crate) async fn finish(&mut self) {
        self.stream.shutdown().await.unwrap();
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// An origin spoken to by hand: nothing happens but what a test does.
pub(crate) struct Origin {
    listener: TcpListener,
    pub(crate) address: SocketAddr,
}

impl Origin {
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        Self { listener, address }
    }

    /// Fails if anybody has connected who was not accepted.
    pub(crate) async fn assert_nobody_else(&self) {
        let own = TcpStream::connect(self.address).await.unwrap();
        let (_, first) = self.listener.accept().await.unwrap();
        assert_eq!(first, own.local_addr().unwrap(), "somebody has connected");
    }

    pub(crate) async fn accept(&self) -> Wire {
        Wire::new(self.listener.accept().await.unwrap().0)
    }
}

/// A gateway with default settings, its origin, and a connected client.
pub(crate) async fn all(setup: Setup) -> (Wire, Gateway, Origin) {
    let origin = Origin::new().await;
    let gateway = gateway(setup, origin.address).await;
    let client = Wire::connect(gateway.address).await;
    (client, gateway, origin)
}

/// The value of a header in a head; panics if it is there twice.
pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut values = head.lines().filter_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found == name).then_some(value.trim())
    });
    let value = values.next();
    assert_eq!(values.next(), None, "{name} twice in {head}");
    value
}
