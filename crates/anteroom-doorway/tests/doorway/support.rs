//! A gateway without rooms, raw sockets in front of it, and origins behind it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::{
    Config, Http2, Origin as OriginConfig, RoomName, RoomOrigins, SizeLimits, TimeOuts,
};
use anteroom_front::drain::{DrainTrigger, drain};
use anteroom_front::hold::{ConnectionCap, Unobserved};
use anteroom_front::listener::listen;
use anteroom_front::server::Server;
use anteroom_front::tls::Tls;
use anteroom_gateway::body::Body;
use anteroom_gateway::forwarded::TrustedProxies;
use anteroom_gateway::intake::{Checked, Intake};
use anteroom_gateway::proxy::{ReverseProxy, Upstream};
use anteroom_origin::{Limits, Origins};
use http::Request;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tower::ServiceExt;

/// What a test may want to set.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) time_outs: TimeOuts,
    pub(crate) sizes: SizeLimits,
    pub(crate) tls: Option<Tls>,
}

const ROOM: &str = "[[room]]\nname = \"shop\"\norigin = \"http://127.0.0.1:3000\"\n\
    total_active_users = 200\nnew_users_per_minute = 200\nbypass = []\n";

impl Default for Setup {
    fn default() -> Self {
        let server = Config::parse("test.toml", ROOM).unwrap().config.server;
        Self {
            time_outs: server.time_outs,
            sizes: SizeLimits {
                request_head_bytes: 16_384,
                request_uri_bytes: 8_192,
                ..server.size_limits
            },
            tls: None,
        }
    }
}

fn upstream(setup: &Setup, origin: SocketAddr) -> Upstream {
    let origins = RoomOrigins {
        list: vec![OriginConfig::parse(&format!("http://{origin}")).unwrap()],
        http2: Http2::default(),
        ca_file: None,
        health_check: None,
    };
    let limits = Limits {
        connect: Duration::from_millis(setup.time_outs.origin_connect.0),
        idle: Duration::from_secs(4),
        head_bytes: 65_536,
        headers: 100,
    };
    let room = RoomName::new("shop").unwrap();
    Upstream(Origins::new(limits).single(&room, &origins).unwrap())
}

/// A gateway that sends everything to one origin.
pub(crate) struct Gateway {
    pub(crate) address: SocketAddr,
    pub(crate) trigger: DrainTrigger,
    pub(crate) ended: JoinHandle<()>,
}

pub(crate) async fn gateway(setup: Setup, origin: SocketAddr) -> Gateway {
    let proxy = ReverseProxy::new(&setup.time_outs);
    let upstream = upstream(&setup, origin);
    let service = tower::service_fn(move |mut request: Request<Body>| {
        let upstream = upstream.clone();
        async move {
            request.extensions_mut().insert(upstream);
            proxy.oneshot(request).await
        }
    });
    let listener = listen("127.0.0.1:0".parse().unwrap(), true).unwrap();
    let address = listener.local_addr().unwrap();
    let (trigger, signal) = drain();
    let server = Server::new(
        &setup.time_outs,
        &setup.sizes,
        ConnectionCap::new(setup.sizes.connections),
        Arc::new(Unobserved),
    );
    let trusted = TrustedProxies::default();
    let intake = Intake::new(&setup.time_outs, &setup.sizes, trusted);
    let handler = Checked::new(intake, service);
    let server = server.with_tls(setup.tls);
    let ended = tokio::spawn(server.serve(listener, handler, signal));
    Gateway {
        address,
        trigger,
        ended,
    }
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

    /// The same; `None` if it ended before.
    pub(crate) async fn try_read_until(&mut self, end: &str) -> Option<String> {
        loop {
            if let Some(at) = find(&self.read, end.as_bytes()) {
                return self.try_read(at + end.len()).await;
            }
            let read = self.stream.read_buf(&mut self.read).await;
            read.ok().filter(|read| *read > 0)?;
        }
    }

    /// Reads so many bytes; `None` if it ended before.
    pub(crate) async fn try_read(&mut self, count: usize) -> Option<String> {
        while self.read.len() < count {
            let read = self.stream.read_buf(&mut self.read).await;
            read.ok().filter(|read| *read > 0)?;
        }
        let rest = self.read.split_off(count);
        let text = std::mem::replace(&mut self.read, rest);
        Some(String::from_utf8_lossy(&text).into_owned())
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

    pub(crate) async fn accept(&self) -> Wire {
        Wire::new(self.listener.accept().await.unwrap().0)
    }
}

/// An origin that answers every request with 200, and keeps what it was asked.
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

    /// Requests that have come to their end since the last call.
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

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
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
