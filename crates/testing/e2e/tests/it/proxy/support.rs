//! Gateway without rooms in front of one origin, and raw sockets at both ends.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anteroom_config::{
    Http2, Origin as OriginConfig, OriginGroup, OriginOwner, OwnedOrigins, RoomName, SizeLimits,
    Timeouts,
};
use anteroom_proxy::body::Body;
use anteroom_proxy::downstream::connection_table::{ConnectionLimits, ConnectionTable};
use anteroom_proxy::downstream::drain::{DrainTrigger, drain};
use anteroom_proxy::downstream::listener::listen;
use anteroom_proxy::downstream::observer::ConnectionObserver;
use anteroom_proxy::downstream::server::Server;
use anteroom_proxy::forwarded::TrustedProxies;
use anteroom_proxy::intake::{Checked, Intake};
use anteroom_proxy::request_context::{RequestContext, Upstream};
use anteroom_proxy::reverse_proxy::ReverseProxy;
use anteroom_proxy::upstream::{Group, Limits, Origins};
use anteroom_room::time::DurationMs;
pub(crate) use anteroom_testkit::wire::{Origin, Wire, header};
use http::Request;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tower::ServiceExt;

use crate::fast_path::{Direct, add_outcome};

/// Settings of a test.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) timeouts: Timeouts,
    pub(crate) sizes: SizeLimits,
    pub(crate) trusted: Vec<ipnet::IpNet>,
    pub(crate) http2: Http2,
    pub(crate) head_bytes: usize,
    pub(crate) headers: usize,
    pub(crate) idle: Duration,
    /// Socket send buffer for one client; `None` = the default.
    pub(crate) socket_bytes: Option<u32>,
    /// Whether plain requests take the fast path.
    pub(crate) fast_path: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            timeouts: Timeouts {
                request_head: DurationMs::from_secs(20),
                origin_connect: DurationMs::from_secs(20),
                origin_response: DurationMs::from_secs(20),
                body_idle: DurationMs::from_secs(20),
                keep_alive: DurationMs::from_secs(20),
                drain: DurationMs::from_secs(20),
            },
            sizes: SizeLimits {
                request_head_bytes: 16_384,
                request_headers: 100,
                request_uri_bytes: 8_192,
                request_body_bytes: 0,
                body_bytes_per_second_min: 0,
                connections: 100,
                connections_per_address: 0,
                requests_per_connection: 0,
                http2_streams: 100,
            },
            trusted: Vec::new(),
            http2: Http2::Never,
            head_bytes: 16_384,
            headers: 100,
            idle: Duration::from_secs(20),
            socket_bytes: None,
            fast_path: true,
        }
    }
}

/// Counts of connection events.
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

/// Gateway that sends everything to one origin, and adds `x-outcome` to its responses.
pub(crate) struct Gateway {
    pub(crate) address: SocketAddr,
    pub(crate) counts: Arc<Counts>,
    pub(crate) trigger: DrainTrigger,
    pub(crate) ended: JoinHandle<()>,
    pub(crate) group: Arc<Group<Body>>,
}

impl Gateway {
    /// Returns the outcomes of requests at the first origin.
    pub(crate) fn outcomes(&self) -> Vec<(&'static str, u64)> {
        let mut outcomes = self.group.stats().origins.remove(0).outcomes;
        outcomes.retain(|(_, count)| *count > 0);
        outcomes
    }
}

pub(crate) async fn gateway(setup: Setup, origin: SocketAddr) -> Gateway {
    gateway_to(setup, &[origin]).await
}

/// Starts a gateway with several origins.
pub(crate) async fn gateway_to(setup: Setup, origins: &[SocketAddr]) -> Gateway {
    let proxy = ReverseProxy::new(&setup.timeouts);
    let upstream = Upstream::new(group(&setup, origins));
    let group = Arc::clone(&upstream.group);
    let decider = setup.fast_path.then(|| Direct {
        upstream: upstream.clone(),
        unknown: Some("/no-origin"),
        shows_outcome: true,
    });
    let service = tower::service_fn(move |mut request: Request<Body>| {
        let upstream = upstream.clone();
        async move {
            if request.uri().path() != "/no-origin" {
                RequestContext::of_mut(&mut request).unwrap().upstream = Some(upstream);
            }
            let mut response = proxy.oneshot(request).await?;
            add_outcome(&mut response);
            Ok::<_, Infallible>(response)
        }
    });
    let listener = listener(setup.socket_bytes);
    let address = listener.local_addr().unwrap();
    let counts = Arc::new(Counts::default());
    let (trigger, signal) = drain();
    let server = Server::new(
        &setup.timeouts,
        &setup.sizes,
        ConnectionTable::new(ConnectionLimits {
            connections: setup.sizes.connections,
            per_address: setup.sizes.connections_per_address,
            trusted_proxies: setup.trusted.clone(),
        }),
        Arc::clone(&counts) as Arc<dyn ConnectionObserver>,
    );
    let trusted = TrustedProxies::new(setup.trusted);
    let intake = Intake::new(&setup.sizes, trusted);
    let handler = Checked::new(intake, service, decider);
    let ended = tokio::spawn(server.serve(listener, handler, signal));
    Gateway {
        address,
        counts,
        trigger,
        ended,
        group,
    }
}

fn listener(socket_bytes: Option<u32>) -> TcpListener {
    let address = "127.0.0.1:0".parse().unwrap();
    let Some(bytes) = socket_bytes else {
        return listen(address, true).unwrap();
    };
    let socket = TcpSocket::new_v4().unwrap();
    // Accepted sockets inherit the buffer of the listener.
    socket.set_send_buffer_size(bytes).unwrap();
    socket.bind(address).unwrap();
    socket.listen(1_024).unwrap()
}

fn group(setup: &Setup, origins: &[SocketAddr]) -> Arc<Group<Body>> {
    let urls = origins.iter().map(|address| format!("http://{address}"));
    let origins = OriginGroup {
        list: urls.map(|url| OriginConfig::parse(&url).unwrap()).collect(),
        http2: setup.http2,
        ca_file: None,
        health_check: None,
    };
    let limits = Limits {
        connect: Duration::from_millis(setup.timeouts.origin_connect.0),
        idle: setup.idle,
        head_bytes: setup.head_bytes,
        headers: setup.headers,
    };
    let owned = OwnedOrigins {
        owner: OriginOwner::Room(RoomName::new("shop").unwrap()),
        group: &origins,
        host: None,
    };
    Origins::new(limits).single(owned).unwrap()
}

/// Starts a gateway with its origin, and connects a client.
pub(crate) async fn all(setup: Setup) -> (Wire, Gateway, Origin) {
    let origin = Origin::new().await;
    let gateway = gateway(setup, origin.address).await;
    let client = Wire::connect(gateway.address).await;
    (client, gateway, origin)
}
