//! A room's origins, and one that answers as it is told.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use anteroom_config::{Config, RoomConfig};
use anteroom_proxy::upstream::{Answer, Delivery, Failure, Group, Limits, Outcome};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub(crate) type Body = Empty<Bytes>;

/// How long an answer is waited for.
pub(crate) const WAIT: Duration = Duration::from_secs(60);

pub(crate) const LIMITS: Limits = Limits {
    connect: Duration::from_secs(20),
    idle: Duration::from_secs(20),
    head_bytes: 16_384,
    headers: 100,
};

/// A room as a file would have it.
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

/// Brings one request to a group.
pub(crate) async fn ask(group: &Arc<Group<Body>>) -> Result<Answer, Failure> {
    let request = Request::get("/").header("host", "shop.example");
    let request = request.body(Body::new()).unwrap();
    deliver(group, request).await
}

/// Brings a request to a group, and says of it what is to be said.
pub(crate) async fn deliver(
    group: &Arc<Group<Body>>,
    request: Request<Body>,
) -> Result<Answer, Failure> {
    let mut delivery = Delivery::new(Arc::clone(group), false, WAIT);
    let result = delivery.send(request).await;
    delivery.settle(match &result {
        Ok(answer) => Outcome::Answered(answer.response.status()),
        Err(failure) => failure.outcome(),
    });
    result
}

/// Reads an answer to its end.
pub(crate) async fn text(answer: Answer) -> (StatusCode, String) {
    let Answer {
        response,
        mut lease,
    } = answer;
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    lease.finish();
    (status, String::from_utf8_lossy(&body).into_owned())
}

/// An origin that answers everything with the same status, on connections that it closes.
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
                    let answer = format!(
                        "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi"
                    );
                    // Whoever asked may be gone.
                    let _ = stream.write_all(answer.as_bytes()).await;
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

/// Waits until something is so.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let mut looks = tokio::time::interval(Duration::from_millis(5));
    let wait = async {
        while !is_so() {
            looks.tick().await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(20), wait).await;
    assert!(waited.is_ok(), "not in time: {what}");
}

/// Waits for something that comes, or the test fails.
pub(crate) async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(Duration::from_secs(20), future).await;
    waited.unwrap_or_else(|_| panic!("not in time: {what}"))
}

/// Lets time pass for everybody, at once.
pub(crate) async fn advance(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}
