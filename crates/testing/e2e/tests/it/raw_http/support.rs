//! Gateway without rooms, raw sockets in front of it, and origins behind it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::{
    Config, Http2, Origin as OriginConfig, OriginGroup, OriginOwner, OwnedOrigins, RoomName,
    SizeLimits, Timeouts,
};
use anteroom_proxy::body::Body;
use anteroom_proxy::cookies;
use anteroom_proxy::downstream::connection_table::ConnectionTable;
use anteroom_proxy::downstream::drain::{DrainTrigger, drain};
use anteroom_proxy::downstream::listener::listen;
use anteroom_proxy::downstream::observer::Unobserved;
use anteroom_proxy::downstream::server::Server;
use anteroom_proxy::downstream::tls::Tls;
use anteroom_proxy::forwarded::TrustedProxies;
use anteroom_proxy::intake::{Checked, Intake};
use anteroom_proxy::request_context::{RequestContext, Upstream};
use anteroom_proxy::reverse_proxy::ReverseProxy;
use anteroom_proxy::upstream::{Limits, Origins};
pub(crate) use anteroom_testkit::wire::{Origin, Wire, header};
use http::Request;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tower::ServiceExt;

use crate::fast_path::Direct;

/// Settings of a test.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) timeouts: Timeouts,
    pub(crate) sizes: SizeLimits,
    pub(crate) tls: Option<Tls>,
    /// Whether plain requests take the fast path.
    pub(crate) fast_path: bool,
    /// Whether the peers of the tests are trusted proxies.
    pub(crate) trusts_peers: bool,
}

const ROOM: &str = "[[room]]\nname = \"shop\"\norigin = \"http://127.0.0.1:3000\"\n\
    total_active_users = 200\nnew_users_per_minute = 200\nbypass = []\n";

impl Default for Setup {
    fn default() -> Self {
        let server = Config::parse("test.toml", ROOM).unwrap().config.server;
        Self {
            timeouts: server.timeouts,
            sizes: SizeLimits {
                request_head_bytes: 16_384,
                request_uri_bytes: 8_192,
                ..server.size_limits
            },
            tls: None,
            fast_path: true,
            trusts_peers: false,
        }
    }
}

fn upstream(setup: &Setup, origin: SocketAddr) -> Upstream {
    let origins = OriginGroup {
        list: vec![OriginConfig::parse(&format!("http://{origin}")).unwrap()],
        http2: Http2::default(),
        ca_file: None,
        health_check: None,
    };
    let limits = Limits {
        connect: Duration::from_millis(setup.timeouts.origin_connect.0),
        idle: Duration::from_secs(4),
        head_bytes: 65_536,
        headers: 100,
    };
    let owned = OwnedOrigins {
        owner: OriginOwner::Room(RoomName::new("shop").unwrap()),
        group: &origins,
        host: None,
    };
    Upstream::new(Origins::new(limits).single(owned).unwrap())
}

/// Gateway that sends everything to one origin.
pub(crate) struct Gateway {
    pub(crate) address: SocketAddr,
    pub(crate) trigger: DrainTrigger,
    pub(crate) ended: JoinHandle<()>,
}

pub(crate) async fn gateway(setup: Setup, origin: SocketAddr) -> Gateway {
    let proxy = ReverseProxy::new(&setup.timeouts);
    let upstream = upstream(&setup, origin);
    let decider = setup.fast_path.then(|| Direct {
        upstream: upstream.clone(),
        unknown: None,
        shows_outcome: false,
    });
    let service = tower::service_fn(move |mut request: Request<Body>| {
        let upstream = upstream.clone();
        async move {
            // As the layer of the rooms does it.
            cookies::without(request.headers_mut(), cookies::PREFIX);
            RequestContext::of_mut(&mut request).unwrap().upstream = Some(upstream);
            proxy.oneshot(request).await
        }
    });
    let listener = listen("127.0.0.1:0".parse().unwrap(), true).unwrap();
    let address = listener.local_addr().unwrap();
    let (trigger, signal) = drain();
    let server = Server::new(
        &setup.timeouts,
        &setup.sizes,
        ConnectionTable::with_limit(setup.sizes.connections),
        Arc::new(Unobserved),
    );
    let here = setup.trusts_peers.then(|| "127.0.0.0/8".parse().unwrap());
    let trusted = TrustedProxies::new(here);
    let intake = Intake::new(&setup.sizes, trusted);
    let handler = Checked::new(intake, service, decider);
    let server = server.with_tls(setup.tls);
    let ended = tokio::spawn(server.serve(listener, handler, signal));
    Gateway {
        address,
        trigger,
        ended,
    }
}

/// Origin that responds to every request with 200, and records it.
pub(crate) struct Recorder {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    pub(crate) async fn start() -> Self {
        let origin = Origin::new().await;
        let address = origin.address;
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        tokio::spawn(async move {
            loop {
                let wire = origin.accept().await;
                tokio::spawn(record(wire, Arc::clone(&kept)));
            }
        });
        Self { address, requests }
    }

    /// Returns the complete requests since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock())
    }
}

async fn record(mut wire: Wire, requests: Arc<Mutex<Vec<String>>>) {
    while let Some(head) = wire.try_read_until("\r\n\r\n").await {
        let lower = head.to_lowercase();
        let body = if lower.contains("\r\ntransfer-encoding: chunked") {
            wire.try_read_until("0\r\n").await
        } else if let Some(length) = header(&lower, "content-length") {
            wire.try_read(length.parse().unwrap()).await
        } else {
            Some(String::new())
        };
        let Some(body) = body else { return };
        if body.ends_with("0\r\n") && wire.try_read_until("\r\n").await.is_none() {
            return;
        }
        requests.lock().push(head + &body);
        wire.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
            .await;
    }
}
