//! An origin that has the [`Checker`] count, for tests: what it counts is what limits are worth.
//!
//! It believes what nodes say of each request (`Anteroom-Seat-Ends`, `Anteroom-Accepted-At`) and
//! nothing else. Through which node a request came, the load generator says, for the evidence
//! only. It tells each visitor until when the seat lasts: the ticket is sealed, so this is how a
//! visitor knows that it was thrown out too early. The shop of the demo ([`crate::origin`]) is
//! another origin, because it slows down and shows its count to people.
//!
//! | path | answer |
//! | --- | --- |
//! | `/logout` | a page that ends the visitor's session |
//! | `/error` | a page with the status 500 |
//! | `/held` | a page, once [`CheckingOrigin::release`] was called |
//! | any other | a page |

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use anteroom_room::id::VisitorId;
use anteroom_room::rules::Limits;
use anteroom_room::time::{DurationMs, Minute, Timestamp};
use bytes::Bytes;
use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::judge::{Checker, ON_THE_WAY_MAX, OriginRequest, VISITOR, Verdict};

/// In an answer: until when the visitor's seat lasts.
pub const JUDGE_SEAT_ENDS: HeaderName = HeaderName::from_static("judge-seat-ends");
/// In an answer: whom the node took the visitor for.
pub const JUDGE_VISITOR: HeaderName = HeaderName::from_static("judge-visitor");
/// In a request: the node to which the visitor sent it.
pub const VIA: HeaderName = HeaderName::from_static("crowd-via");
/// Logs out the visitor who asks for it.
pub const LOGOUT: &str = "/logout";

/// Not 127.0.0.1, from which everybody else connects and takes any port that is free: the port must
/// still be ours when the origin comes back.
const LISTEN: &str = "127.0.0.2:0";
/// What a node obeys in an answer.
const COMMAND: HeaderName = HeaderName::from_static("anteroom-command");
/// Node and judge each cut what they read down to whole milliseconds, the node twice: a seat that
/// it gave on in time must not look taken for that long.
const CLOCKS_APART: DurationMs = DurationMs(2);
/// Most pieces of evidence that are kept: the first ones tell the most.
const EVIDENCE_MAX: usize = 60;

/// Tells the judge what time it is: the clock that the nodes go by.
#[derive(Clone)]
pub struct CheckerClock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

/// What is judged.
#[derive(Clone, Debug)]
pub struct CheckedRoom {
    /// The name that requests must have been admitted to.
    pub name: String,
    /// The limits that must hold.
    pub limits: Limits,
    /// For the judge's second measure only.
    pub session: DurationMs,
    /// What time it is.
    pub clock: CheckerClock,
}

/// A running origin with its judge; ends when dropped.
#[derive(Debug)]
pub struct CheckingOrigin {
    address: SocketAddr,
    court: Arc<CheckerShared>,
    serving: Option<JoinHandle<()>>,
}

/// What all connections share.
#[derive(Debug)]
struct CheckerShared {
    room: CheckedRoom,
    book: Mutex<CheckerState>,
    is_released: watch::Sender<bool>,
    held: watch::Sender<usize>,
}

#[derive(Debug)]
struct CheckerState {
    judge: Checker,
    began_at: Timestamp,
    /// The path that each admitted visitor asked for first.
    admissions: BTreeMap<(Timestamp, VisitorId), String>,
    /// By node: how long ago the newest admission seemed to be when it was first seen, at least.
    clocks_behind_ms: BTreeMap<String, i64>,
    evidence: Vec<String>,
}

impl CheckerClock {
    /// A clock that is read like this.
    pub fn new(read: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }
}

impl fmt::Debug for CheckerClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JudgesClock").field(&(self.0)()).finish()
    }
}

impl CheckingOrigin {
    /// Serves on a free port.
    ///
    /// # Panics
    ///
    /// If this machine has no free port.
    pub async fn start(room: CheckedRoom) -> Self {
        let listener = TcpListener::bind(LISTEN).await;
        let listener = listener.expect("this machine has a free port");
        let address = listener.local_addr();
        let book = CheckerState::new(&room);
        let court = Arc::new(CheckerShared {
            room,
            book: Mutex::new(book),
            is_released: watch::Sender::new(false),
            held: watch::Sender::new(0),
        });
        Self {
            address: address.expect("a listener knows its own address"),
            serving: Some(tokio::spawn(serve(listener, Arc::clone(&court)))),
            court,
        }
    }

    /// Breaks all connections and accepts no more; the judge counts on.
    ///
    /// # Panics
    ///
    /// If it had stopped by itself.
    pub async fn stop(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.abort();
            let ended = serving.await.expect_err("it serves until it is aborted");
            assert!(ended.is_cancelled(), "serving failed: {ended}");
        }
    }

    /// Accepts connections again, at the same address.
    ///
    /// # Panics
    ///
    /// If somebody else has taken the port.
    pub async fn resume(&mut self) {
        let listener = TcpListener::bind(self.address).await;
        let listener = listener.expect("nobody else listens at this address");
        self.serving = Some(tokio::spawn(serve(listener, Arc::clone(&self.court))));
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What was counted so far, beside the limits.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let mut book = self.court.book.lock();
        book.judge.verdict(self.court.room.limits, self.court.now())
    }

    /// Fails unless both limits were kept all the time, and nobody overstayed.
    ///
    /// # Panics
    ///
    /// With the evidence, if that is not so.
    pub fn assert_within_limits(&self) {
        let verdict = self.verdict();
        let evidence = self.evidence().join("\n");
        assert!(verdict.is_within_limits(), "{verdict:?}\n{evidence}");
    }

    /// How many are inside.
    #[must_use]
    pub fn inside(&self) -> usize {
        let mut book = self.court.book.lock();
        book.judge.inside(self.court.now())
    }

    /// How many were admitted in all.
    #[must_use]
    pub fn admissions(&self) -> u64 {
        self.verdict().admissions
    }

    /// How many were admitted in each minute, by what the nodes say.
    #[must_use]
    pub fn minutes(&self) -> BTreeMap<Minute, usize> {
        let mut minutes = BTreeMap::new();
        for (accepted_at, _) in self.court.book.lock().admissions.keys() {
            *minutes.entry(accepted_at.minute()).or_insert(0) += 1;
        }
        minutes
    }

    /// When each visitor was admitted and the path that it asked for first, in that order.
    #[must_use]
    pub fn first_paths(&self) -> Vec<(Timestamp, String)> {
        let book = self.court.book.lock();
        let admissions = book.admissions.iter();
        let paths = admissions.map(|((accepted_at, _), path)| (*accepted_at, path.clone()));
        paths.collect()
    }

    /// How far the clock of a node is behind the origin's, from what it says of the moments of
    /// admissions; negative if it is ahead. Too much by the quickest way of a visitor who was
    /// admitted. `None` if it has admitted nobody.
    #[must_use]
    pub fn clock_behind_ms(&self, node: &str) -> Option<i64> {
        let book = self.court.book.lock();
        book.clocks_behind_ms.get(node).copied()
    }

    /// What went wrong, when, and through which node.
    #[must_use]
    pub fn evidence(&self) -> Vec<String> {
        self.court.book.lock().evidence.clone()
    }

    /// Forgets everybody: for a deployment that begins anew.
    pub fn begin_anew(&self) {
        *self.court.book.lock() = CheckerState::new(&self.court.room);
    }

    /// How many requests for `/held` wait for [`CheckingOrigin::release`], or have waited.
    #[must_use]
    pub fn held(&self) -> usize {
        *self.court.held.borrow()
    }

    /// Answers requests for `/held`.
    pub fn release(&self) {
        self.court.is_released.send_replace(true);
    }
}

impl Drop for CheckingOrigin {
    fn drop(&mut self) {
        if let Some(serving) = &self.serving {
            serving.abort();
        }
    }
}

impl CheckerShared {
    fn now(&self) -> Timestamp {
        (self.room.clock.0)() + CLOCKS_APART
    }

    fn judge(&self, sighting: Option<&OriginRequest>, headers: &HeaderMap, path: &str) {
        let mut book = self.book.lock();
        // Read under the lock, so that the judge sees time in order.
        let now = self.now();
        let Some(sighting) = sighting else {
            book.judge.observe_unjudged(now);
            book.note(now, "could not be judged", headers, "");
            return;
        };
        book.observe(sighting, headers, now, self.room.limits);
        let admission = book
            .admissions
            .entry((sighting.accepted_at, sighting.visitor));
        admission.or_insert_with(|| path.to_owned());
        if path == LOGOUT {
            // Before the answer leaves: the node may give the seat away as soon as it has it.
            book.judge.revoke(sighting.visitor, now);
        }
    }
}

impl CheckerState {
    fn new(room: &CheckedRoom) -> Self {
        Self {
            judge: Checker::new(room.session),
            began_at: (room.clock.0)(),
            admissions: BTreeMap::new(),
            clocks_behind_ms: BTreeMap::new(),
            evidence: Vec::new(),
        }
    }

    fn observe(
        &mut self,
        sighting: &OriginRequest,
        headers: &HeaderMap,
        now: Timestamp,
        limits: Limits,
    ) {
        let before = self.judge.verdict(limits, now);
        self.judge.observe(sighting, now);
        let who = format!("{sighting:?}");
        let after = self.judge.verdict(limits, now);
        let inside = after.most_inside;
        if inside > before.most_inside && after.is_over_total_active_users() {
            self.note(now, &format!("{inside} inside"), headers, &who);
        }
        let late = now.since(sighting.seat_ends_at);
        if late > ON_THE_WAY_MAX {
            self.note(now, &format!("{} ms late", late.0), headers, &who);
        }
        if after.admissions == before.admissions {
            return;
        }
        self.note_clock(sighting, headers, now);
        if after.is_over_new_users_per_minute() {
            let minute = sighting.accepted_at.minute();
            let admitted = self.admissions.keys().map(|(at, _)| at.minute());
            let count = admitted.filter(|of| *of == minute).count() + 1;
            if count > limits.new_users_per_minute as usize {
                self.note(
                    now,
                    &format!("admission {count} of its minute"),
                    headers,
                    &who,
                );
            }
        }
    }

    fn note_clock(&mut self, sighting: &OriginRequest, headers: &HeaderMap, now: Timestamp) {
        let Some(via) = headers.get(VIA).and_then(|via| via.to_str().ok()) else {
            return;
        };
        let (here, there) = (now.0, sighting.accepted_at.0 + CLOCKS_APART.0);
        let behind = here.checked_signed_diff(there).unwrap_or(i64::MAX);
        let least = self.clocks_behind_ms.entry(via.to_owned());
        let least = least.or_insert(behind);
        *least = behind.min(*least);
    }

    fn note(&mut self, now: Timestamp, what: &str, headers: &HeaderMap, who: &str) {
        if self.evidence.len() >= EVIDENCE_MAX {
            return;
        }
        let since = now.since(self.began_at).0;
        let via = headers.get(VIA).and_then(|via| via.to_str().ok());
        let via = via.unwrap_or("nobody knows where");
        let evidence = format!("{} ({since} ms) at {via}: {what} {who}", now.0);
        self.evidence.push(evidence);
    }
}

async fn serve(listener: TcpListener, court: Arc<CheckerShared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // An origin that cannot accept is no judge: the test that asks it must fail.
                let (stream, _) = accepted.expect("a test has files enough for its sockets");
                connections.spawn(serve_connection(stream, Arc::clone(&court)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve_connection(stream: TcpStream, court: Arc<CheckerShared>) {
    // Without it small pages wait for acknowledgements; a socket that refuses still works.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| answer(Arc::clone(&court), request));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // A connection that breaks is the node's business.
    let _ = connection.await;
}

async fn answer(
    court: Arc<CheckerShared>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path();
    let sighting = OriginRequest::from_headers(request.headers(), &court.room.name);
    court.judge(sighting.as_ref(), request.headers(), path);
    let visitor = request.headers().get(VISITOR).cloned();
    let mut response = Response::new(Full::new(Bytes::from_static(b"the origin")));
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(sighting) = sighting {
        let ends_at = HeaderValue::from(sighting.seat_ends_at.0);
        headers.insert(JUDGE_SEAT_ENDS, ends_at);
    }
    if let Some(visitor) = visitor {
        headers.insert(JUDGE_VISITOR, visitor);
    }
    match path {
        LOGOUT => {
            headers.insert(COMMAND, HeaderValue::from_static("revoke"));
        }
        "/error" => *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR,
        "/held" => {
            court.held.send_modify(|held| *held += 1);
            let mut released = court.is_released.subscribe();
            // It cannot be gone: the court holds the sender.
            let _ = released.wait_for(|is_released| *is_released).await;
        }
        _ => {}
    }
    Ok(response)
}
