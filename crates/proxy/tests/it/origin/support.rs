//! Helpers: a room's origins, and an origin with a configurable status.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use anteroom_config::{Config, RoomConfig};
use anteroom_proxy::upstream::{Delivery, Failure, Group, Limits, Outcome, UpstreamResponse};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub(crate) type Body = Empty<Bytes>;

/// Timeout of a response.
pub(crate) const WAIT: Duration = Duration::from_secs(60);

pub(crate) const LIMITS: Limits = Limits {
    connect: Duration::from_secs(20),
    idle: Duration::from_secs(20),
    head_bytes: 16_384,
    headers: 100,
};

/// Parses a room.
pub(crate) fn room(name: &str, lines: &str) -> RoomConfig {
    let text = format!(
        "[[room]]\nname = \"{name}\"\ntotal_active_users = 1\nnew_users_per_minute = 1\n\
         bypass = []\n{lines}\n"
    );
    Config::parse("test.toml", &text)
        .unwrap()
        .config
        .rooms
        .remove(0)
}

/// Sends a GET request to a group.
pub(crate) async fn get(group: &Arc<Group<Body>>) -> Result<UpstreamResponse, Failure> {
    let request = Request::get("/").header("host", "shop.example");
    let request = request.body(Body::new()).unwrap();
    deliver(group, request).await
}

/// Delivers a request to a group, and reports its outcome.
pub(crate) async fn deliver(
    group: &Arc<Group<Body>>,
    request: Request<Body>,
) -> Result<UpstreamResponse, Failure> {
    let mut delivery = Delivery::new(Arc::clone(group), false, WAIT);
    let result = delivery.send(request).await;
    delivery.settle(match &result {
        Ok(response) => Outcome::Answered(response.response.status()),
        Err(failure) => failure.outcome(),
    });
    result
}

/// Reads a response to its end.
pub(crate) async fn text(response: UpstreamResponse) -> (StatusCode, String) {
    let UpstreamResponse {
        response,
        mut lease,
    } = response;
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    lease.finish();
    (status, String::from_utf8_lossy(&body).into_owned())
}

/// Origin that responds with the same status to every request, and closes connections.
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    pub(crate) shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) status: AtomicU16,
    pub(crate) checks: AtomicUsize,
    pub(crate) host: std::sync::Mutex<String>,
}

impl Origin {
    pub(crate) async fn new() -> Self {
        Self::at("127.0.0.1:0".parse().unwrap()).await
    }

    pub(crate) async fn at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        shared.status.store(200, Relaxed);
        let seen = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let seen = Arc::clone(&seen);
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
                            return;
                        }
                    }
                    let head = String::from_utf8_lossy(&head).to_lowercase();
                    if head.starts_with("get /healthz?a=b ") {
                        seen.checks.fetch_add(1, Relaxed);
                        let host = head.lines().find_map(|line| line.strip_prefix("host: "));
                        *seen.host.lock().unwrap() = host.unwrap_or_default().to_owned();
                    }
                    let status = seen.status.load(Relaxed);
                    let response = format!(
                        "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi"
                    );
                    // The client may have closed the connection.
                    let _ = stream.write_all(response.as_bytes()).await;
                });
            }
        });
        Self {
            address,
            shared,
            task,
        }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Waits until a condition is true.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    let mut ticks = tokio::time::interval(Duration::from_millis(5));
    let wait = async {
        while !condition() {
            ticks.tick().await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(20), wait).await;
    assert!(waited.is_ok(), "not in time: {what}");
}

/// Waits for a future with a timeout; the test fails after it.
pub(crate) async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(Duration::from_secs(20), future).await;
    waited.unwrap_or_else(|_| panic!("not in time: {what}"))
}

/// Advances the paused clock.
pub(crate) async fn advance(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}
