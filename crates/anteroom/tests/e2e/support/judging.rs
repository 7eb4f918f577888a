//! An origin that judges: what it counts is what a room's limits are worth.
//!
//! It tells each visitor until when its seat lasts, so that a visitor knows when it was thrown out
//! too early. It can be taken down and brought back on the same port, and counts on all the while.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use anteroom_demo::judge::{Judge, Sighting, Verdict};
use anteroom_node::{SystemWallClock, WallClock as _};
use anteroom_room::id::VisitorId;
use anteroom_room::rules::Limits;
use anteroom_room::time::{Millis, Minute, Span};
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// In an answer: until when the visitor's seat lasts.
pub(crate) const SEAT_ENDS: &str = "judge-seat-ends";

/// Gateway and judge each cut what they read down to whole milliseconds, the gateway twice: a seat
/// that it gave on in time must not look taken for that long.
const CLOCKS_APART: Span = Span(2);

/// Tells the judge what time it is.
pub(crate) type JudgesClock = Arc<dyn Fn() -> Millis + Send + Sync>;

/// A running origin with its judge.
pub(crate) struct JudgingOrigin {
    pub(crate) address: SocketAddr,
    court: Arc<Court>,
    serving: Option<JoinHandle<()>>,
}

/// What all connections share.
struct Court {
    room: String,
    clock: JudgesClock,
    book: Mutex<Book>,
    is_released: watch::Sender<bool>,
    held: watch::Sender<usize>,
}

struct Book {
    judge: Judge,
    admissions: BTreeMap<(Millis, VisitorId), String>,
}

/// The time by the machine's wall clock.
pub(crate) fn now() -> Millis {
    SystemWallClock.read()
}

impl JudgingOrigin {
    /// An origin for this room, judged by the machine's wall clock.
    pub(crate) async fn start(room: &str) -> Self {
        Self::start_by(room, Arc::new(now)).await
    }

    /// The same by another clock: the one that the gateway goes by.
    pub(crate) async fn start_by(room: &str, clock: JudgesClock) -> Self {
        // Not 127.0.0.1, from which everybody else connects and takes any port that is free: the
        // port must still be ours when the origin comes back.
        let listener = TcpListener::bind("127.0.0.2:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let court = Arc::new(Court {
            room: room.to_owned(),
            clock,
            book: Mutex::new(Book::new()),
            is_released: watch::Sender::new(false),
            held: watch::Sender::new(0),
        });
        let serving = Some(tokio::spawn(serve(listener, Arc::clone(&court))));
        Self {
            address,
            court,
            serving,
        }
    }

    /// Breaks all connections and accepts no more.
    pub(crate) async fn stop(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.abort();
            assert!(serving.await.unwrap_err().is_cancelled());
        }
    }

    /// Accepts connections again.
    pub(crate) async fn resume(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.serving = Some(tokio::spawn(serve(listener, Arc::clone(&self.court))));
    }

    /// What was counted so far, beside the limits.
    pub(crate) fn verdict(&self, limits: Limits) -> Verdict {
        let mut book = self.court.book.lock();
        book.judge.verdict(limits, self.court.now())
    }

    /// Fails unless both limits were kept all the time, and nobody overstayed.
    pub(crate) fn assert_within(&self, limits: Limits) {
        let verdict = self.verdict(limits);
        assert!(verdict.is_within_limits(), "{verdict:?}");
    }

    /// How many are inside.
    pub(crate) fn inside(&self) -> usize {
        let mut book = self.court.book.lock();
        book.judge.inside(self.court.now())
    }

    /// How many were admitted in each minute, by what the gateway says.
    pub(crate) fn admissions_by_minute(&self) -> BTreeMap<Minute, usize> {
        let mut minutes = BTreeMap::new();
        for (accepted_at, _) in self.court.book.lock().admissions.keys() {
            *minutes.entry(accepted_at.minute()).or_insert(0) += 1;
        }
        minutes
    }

    /// When somebody was admitted, and the path each asked for first, in that order.
    pub(crate) fn admissions(&self) -> Vec<(Millis, String)> {
        let book = self.court.book.lock();
        let admissions = book.admissions.iter();
        admissions
            .map(|((accepted_at, _), path)| (*accepted_at, path.clone()))
            .collect()
    }

    /// Forgets everybody: for a deployment that begins anew.
    pub(crate) fn begin_anew(&self) {
        *self.court.book.lock() = Book::new();
    }

    /// How many requests for `/held` wait for [`JudgingOrigin::release`].
    pub(crate) fn held(&self) -> usize {
        *self.court.held.borrow()
    }

    /// Answers requests for `/held`.
    pub(crate) fn release(&self) {
        self.court.is_released.send_replace(true);
    }
}

impl Book {
    fn new() -> Self {
        Self {
            judge: Judge::new(Span::from_secs(60)),
            admissions: BTreeMap::new(),
        }
    }
}

impl Drop for JudgingOrigin {
    fn drop(&mut self) {
        if let Some(serving) = &self.serving {
            serving.abort();
        }
    }
}

impl Court {
    fn now(&self) -> Millis {
        (self.clock)() + CLOCKS_APART
    }

    fn judge(&self, sighting: Option<&Sighting>, path: &str) {
        let mut book = self.book.lock();
        // Read under the lock, so that the judge sees time in order.
        let now = self.now();
        let Some(sighting) = sighting else {
            book.judge.observe_unjudged(now);
            return;
        };
        book.judge.observe(sighting, now);
        let admission = (sighting.accepted_at, sighting.visitor);
        book.admissions
            .entry(admission)
            .or_insert_with(|| path.to_owned());
        if path == "/logout" {
            // Before the answer leaves: the gateway may give the seat away as soon as it has it.
            book.judge.revoke(sighting.visitor, now);
        }
    }
}

async fn serve(listener: TcpListener, court: Arc<Court>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted.unwrap();
                connections.spawn(serve_connection(stream, Arc::clone(&court)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve_connection(stream: TcpStream, court: Arc<Court>) {
    stream.set_nodelay(true).unwrap();
    let service = service_fn(move |request| answer(Arc::clone(&court), request));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // A connection that breaks is the gateway's business.
    let _ = connection.await;
}

async fn answer(
    court: Arc<Court>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path();
    let sighting = Sighting::from_headers(request.headers(), &court.room);
    court.judge(sighting.as_ref(), path);
    if path == "/held" {
        court.held.send_modify(|held| *held += 1);
        let mut released = court.is_released.subscribe();
        released.wait_for(|is_released| *is_released).await.unwrap();
    }
    let mut response = Response::new(Full::new(Bytes::from_static(b"the origin")));
    let headers = response.headers_mut();
    if let Some(sighting) = sighting {
        headers.insert(SEAT_ENDS, HeaderValue::from(sighting.seat_ends_at.0));
    }
    match path {
        "/logout" => {
            headers.insert("anteroom-command", HeaderValue::from_static("revoke"));
        }
        "/error" => *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR,
        _ => {}
    }
    Ok(response)
}
