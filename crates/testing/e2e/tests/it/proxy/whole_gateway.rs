//! Whole gateway in this process: several origins, their health checks, and changes of them while
//! requests are under way.

use std::cell::RefCell;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use anteroom::gateway::Gateway;
use anteroom_config::{Config, Origin as OriginConfig, RoomId, RoomName, RoomOrigins};
use anteroom_e2e::eventually;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};

use crate::proxy::support::{Wire, header};

/// Origin that responds with its name; on `/held` once it is released. Gone when dropped.
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    pub(crate) seen: Arc<Seen>,
    task: JoinHandle<()>,
}

#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) requests: AtomicUsize,
    pub(crate) holds: AtomicUsize,
    released: Notify,
}

impl Origin {
    pub(crate) async fn start(name: &'static str) -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), name).await
    }

    async fn at(address: SocketAddr, name: &'static str) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let shared = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            // They end with the task that accepted them.
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let seen = Arc::clone(&shared);
                let service = service_fn(move |request| response(request, name, Arc::clone(&seen)));
                let io = TokioIo::new(stream);
                connections.spawn(http1::Builder::new().serve_connection(io, service));
            }
        });
        Self {
            address,
            seen,
            task,
        }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn response(
    request: Request<Incoming>,
    name: &'static str,
    seen: Arc<Seen>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    match request.uri().path() {
        "/check" => {}
        "/held" => {
            let released = seen.released.notified();
            seen.holds.fetch_add(1, Relaxed);
            released.await;
        }
        _ => {
            seen.requests.fetch_add(1, Relaxed);
        }
    }
    Ok(Response::new(Full::from(format!("this is {name}"))))
}

/// Gateway with one room.
pub(crate) struct Site {
    pub(crate) gateway: Gateway,
    pub(crate) folder: TempDir,
}

pub(crate) fn config(folder: &TempDir, origins: &[SocketAddr], more: &str) -> Config {
    config_on(true, folder, origins, more)
}

fn config_on(fast_path: bool, folder: &TempDir, origins: &[SocketAddr], more: &str) -> Config {
    let urls: Vec<_> = origins
        .iter()
        .map(|origin| format!("http://{origin}"))
        .collect();
    let data = folder.path().join("data");
    let has_rules = more.contains("bypass = ");
    let bypass = if has_rules { "" } else { "bypass = []\n" };
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\ndata_dir = {data:?}\n\
         fast_path = {fast_path}\n\
         [[room]]\nname = \"shop\"\norigins = {urls:?}\ntotal_active_users = 100\n\
         new_users_per_minute = 100000\n{bypass}{more}\n"
    );
    Config::parse("test.toml", &text).unwrap().config
}

impl Site {
    pub(crate) async fn open(origins: &[SocketAddr], more: &str) -> Self {
        Self::open_on(true, origins, more).await
    }

    /// Opens a site with or without the fast path.
    pub(crate) async fn open_on(fast_path: bool, origins: &[SocketAddr], more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let gateway = Gateway::start(&config_on(fast_path, &folder, origins, more)).await;
        Self {
            gateway: gateway.unwrap(),
            folder,
        }
    }

    /// Sends a request on its own connection; returns the head of the response in lower case, and
    /// the rest.
    pub(crate) async fn ask(&self, path: &str, cookie: &str) -> (String, String) {
        let mut wire = Wire::connect(self.gateway.address()).await;
        wire.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\nSec-Fetch-Mode: navigate\r\n\
             Connection: close\r\nCookie: {cookie}\r\n\r\n"
        ))
        .await;
        let head = wire.read_until("\r\n\r\n").await;
        (head, wire.rest().await)
    }

    /// Returns the cookie of an active visitor.
    pub(crate) async fn active_visitor_cookie(&self) -> String {
        let cookie = RefCell::new(String::new());
        eventually("a visitor is admitted", async || {
            let (head, _) = self.ask("/", "").await;
            let is_inside = head.starts_with("HTTP/1.1 200 ") && !head.contains("anteroom-verdict");
            let set = head
                .lines()
                .find_map(|line| line.strip_prefix("set-cookie: "));
            let pair = set.and_then(|set| set.split(';').next());
            cookie.replace(pair.unwrap_or("").to_owned());
            is_inside
        })
        .await;
        cookie.into_inner()
    }

    pub(crate) async fn operators(&self, path: &str) -> String {
        let mut wire = Wire::connect(self.gateway.admin()).await;
        wire.send(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
            .await;
        wire.head().await;
        wire.rest().await
    }

    pub(crate) async fn state(&self) -> Value {
        serde_json::from_str(&self.operators("/api/v1/rooms/shop/state").await).unwrap()
    }
}

const CHECK: &str =
    "[room.health_check]\npath = \"/check\"\ninterval = \"100ms\"\nhealthy_after = 1";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_healthy_origins_no_new_visitor_enters() {
    let (first, second) = (Origin::start("one").await, Origin::start("two").await);
    let (first_address, second_address) = (first.address, second.address);
    let site = Site::open(&[first_address, second_address], CHECK).await;
    let cookie = site.active_visitor_cookie().await;
    drop(second);
    let condition = async |at: usize, expected: &str| {
        eventually("an origin's condition is seen", async || {
            site.state().await["origins"][at]["condition"] == expected
        })
        .await;
    };
    condition(1, "unhealthy").await;
    for _ in 0..20 {
        let (head, body) = site.ask("/", &cookie).await;
        assert!(
            head.starts_with("HTTP/1.1 200 ") && body.ends_with("this is one"),
            "{head}{body}"
        );
    }
    let state = site.state().await;
    assert!(state["degraded"].is_null(), "{state}");
    assert!(state["origins"][1]["lastError"].is_string(), "{state}");
    let metrics = site.operators("/metrics").await;
    let up = |address, value| {
        format!("anteroom_origin_up{{room=\"shop\",origin=\"http://{address}\"}} {value}\n")
    };
    assert!(metrics.contains(&up(first_address, 1)), "{metrics}");
    assert!(metrics.contains(&up(second_address, 0)), "{metrics}");

    drop(first);
    eventually("the room is degraded before a visitor tries", async || {
        site.state().await["degraded"] == "origin_down"
    })
    .await;
    let (head, _) = site.ask("/", "").await;
    assert_eq!(
        header(&head, "anteroom-reason"),
        Some("origin_down"),
        "{head}"
    );
    // A kept connection may still respond; the gateway sends active visitors there.
    let (head, _) = site.ask("/", &cookie).await;
    assert!(
        !head.contains("anteroom-verdict"),
        "active, so not queued: {head}"
    );

    let again = Origin::at(second_address, "two").await;
    condition(1, "up").await;
    site.active_visitor_cookie().await;
    assert!(again.seen.requests.load(Relaxed) > 0);
    site.gateway.stop_soon().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn origins_change_without_a_dropped_request() {
    let (first, second) = (Origin::start("one").await, Origin::start("two").await);
    let site = Arc::new(Site::open(&[first.address], "").await);
    let cookie = site.active_visitor_cookie().await;
    let held = {
        let (site, cookie) = (Arc::clone(&site), cookie.clone());
        tokio::spawn(async move { site.ask("/held", &cookie).await })
    };
    eventually("the first has a request", async || {
        first.seen.holds.load(Relaxed) == 1
    })
    .await;
    let next = config(&site.folder, &[second.address], "");
    site.gateway.reload(&next).unwrap();
    let before = first.seen.requests.load(Relaxed);
    let (_, body) = site.ask("/", &cookie).await;
    assert!(body.ends_with("this is two"), "{body}");
    assert_eq!(first.seen.requests.load(Relaxed), before);
    first.seen.released.notify_waiters();
    let (head, body) = held.await.unwrap();
    assert!(
        head.starts_with("HTTP/1.1 200 ") && body.ends_with("this is one"),
        "{head}{body}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_that_fails_for_its_origins_changes_nothing() {
    let origin = Origin::start("one").await;
    let site = Site::open(&[origin.address], "").await;
    let name = RoomName::new("shop").unwrap();
    let mut next = config(&site.folder, &[origin.address], "");
    let room = &mut next.rooms[0];
    room.rules.limits.total_active_users = 7;
    let RoomOrigins::Own(origins) = &mut room.origins else {
        panic!("the room has origins of its own");
    };
    origins.list = vec![OriginConfig::parse("https://127.0.0.1:9").unwrap()];
    origins.ca_file = Some("no/such/file.pem".into());
    // A valid change of another room is not applied either.
    let mut other = room.clone();
    other.name = RoomName::new("other").unwrap();
    other.id = RoomId::of_name(&other.name);
    if let RoomOrigins::Own(origins) = &mut other.origins {
        origins.ca_file = None;
    }
    next.rooms.push(other);
    let error = site.gateway.reload(&next).unwrap_err();
    assert!(error.to_string().contains("1 mistake"), "{error:#}");
    let node = site.gateway.node();
    let limits = node.room(&name).unwrap().config().rules.limits;
    assert_eq!(limits.total_active_users, 100);
    assert!(node.room(&RoomName::new("other").unwrap()).is_none());
    let cookie = site.active_visitor_cookie().await;
    let (_, body) = site.ask("/", &cookie).await;
    assert!(body.ends_with("this is one"), "{body}");
}
