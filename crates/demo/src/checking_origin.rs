//! Origin for tests that counts with the [`Checker`]: whether limits hold is what it counts.
//!
//! It trusts only the headers of the nodes (`Anteroom-Seat-Ends`, `Anteroom-Accepted-At`). The load
//! generator says when it sent a request, so that no request is late because the machine is busy.
//! It also names the node of a request, for the evidence only. The origin sends each visitor the
//! end of its seat: the ticket is sealed, so this is how a visitor notices that it was rejected too
//! early. The shop of the demo ([`crate::origin`]) is another origin, because it slows down and
//! shows its count to people.
//!
//! | path | response |
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

use crate::checker::{Checker, OriginRequest, VISITOR, Verdict, parse_millis, the_only};

/// Response header: end of the visitor's seat.
pub const CHECKER_SEAT_ENDS: HeaderName = HeaderName::from_static("judge-seat-ends");
/// Response header: the visitor as the node identified it.
pub const CHECKER_VISITOR: HeaderName = HeaderName::from_static("judge-visitor");
/// Request header: the node to which the visitor sent it.
pub const VIA: HeaderName = HeaderName::from_static("crowd-via");
/// Request header: the time at which the visitor sent it, in Unix milliseconds.
pub const SENT_AT: HeaderName = HeaderName::from_static("crowd-sent-at");
/// Path that logs the visitor out.
pub const LOGOUT: &str = "/logout";

/// Address to listen on. Not 127.0.0.1, from which other connections take any free port: the port
/// must still be free when the origin resumes.
const LISTEN: &str = "127.0.0.2:0";
/// Response header with a command for the node.
const COMMAND: HeaderName = HeaderName::from_static("anteroom-command");
/// Tolerance between clocks. Node and checker each round down to whole milliseconds, the node
/// twice: a seat that was granted again in time must not seem to overlap for that long.
const CLOCKS_APART: DurationMs = DurationMs(2);
/// Most pieces of evidence that are kept; the first ones say the most.
const EVIDENCE_MAX: usize = 60;

/// Clock of the checker: the one that the nodes use.
#[derive(Clone)]
pub struct CheckerClock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

/// Room that is checked.
#[derive(Clone, Debug)]
pub struct CheckedRoom {
    /// Name of the room that requests must have been admitted to.
    pub name: String,
    /// The limits that must hold.
    pub limits: Limits,
    /// Session duration, for [`Verdict::most_seen_in_a_session`] only.
    pub session: DurationMs,
    /// Clock of the nodes.
    pub clock: CheckerClock,
}

/// Running origin with its checker; stops when dropped.
#[derive(Debug)]
pub struct CheckingOrigin {
    address: SocketAddr,
    shared: Arc<CheckerShared>,
    serving: Option<JoinHandle<()>>,
}

/// State that all connections share.
#[derive(Debug)]
struct CheckerShared {
    room: CheckedRoom,
    state: Mutex<CheckerState>,
    is_released: watch::Sender<bool>,
    held: watch::Sender<usize>,
}

#[derive(Debug)]
struct CheckerState {
    checker: Checker,
    began_at: Timestamp,
    /// First path that each admitted visitor requested.
    admissions: BTreeMap<(Timestamp, VisitorId), String>,
    /// Least age in ms of each node's newest admission when it was first seen.
    clocks_behind_ms: BTreeMap<String, i64>,
    evidence: Vec<String>,
}

impl CheckerClock {
    /// Creates a clock from a function.
    pub fn new(read: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }
}

impl fmt::Debug for CheckerClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CheckerClock").field(&(self.0)()).finish()
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
        let state = CheckerState::new(&room);
        let shared = Arc::new(CheckerShared {
            room,
            state: Mutex::new(state),
            is_released: watch::Sender::new(false),
            held: watch::Sender::new(0),
        });
        Self {
            address: address.expect("a listener knows its own address"),
            serving: Some(tokio::spawn(serve(listener, Arc::clone(&shared)))),
            shared,
        }
    }

    /// Breaks all connections and accepts no more; the checker keeps its counts.
    ///
    /// # Panics
    ///
    /// If it had stopped already.
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
    /// If another process has taken the port.
    pub async fn resume(&mut self) {
        let listener = TcpListener::bind(self.address).await;
        let listener = listener.expect("nobody else listens at this address");
        self.serving = Some(tokio::spawn(serve(listener, Arc::clone(&self.shared))));
    }

    /// Returns the address on which it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the counts so far, with the limits.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let mut state = self.shared.state.lock();
        state
            .checker
            .verdict(self.shared.room.limits, self.shared.now())
    }

    /// Fails unless both limits held all the time, and no visitor overstayed.
    ///
    /// # Panics
    ///
    /// With the evidence, if a limit did not hold.
    pub fn assert_within_limits(&self) {
        let verdict = self.verdict();
        let evidence = self.evidence().join("\n");
        assert!(verdict.is_within_limits(), "{verdict:?}\n{evidence}");
    }

    /// Returns the number of active visitors.
    #[must_use]
    pub fn inside(&self) -> usize {
        let mut state = self.shared.state.lock();
        state.checker.inside(self.shared.now())
    }

    /// Returns the number of admissions.
    #[must_use]
    pub fn admissions(&self) -> u64 {
        self.verdict().admissions
    }

    /// Returns the admissions in each minute, as the nodes report them.
    #[must_use]
    pub fn minutes(&self) -> BTreeMap<Minute, usize> {
        let mut minutes = BTreeMap::new();
        for (accepted_at, _) in self.shared.state.lock().admissions.keys() {
            *minutes.entry(accepted_at.minute()).or_insert(0) += 1;
        }
        minutes
    }

    /// Returns the time of each visitor's admission and the first path that it requested, in order.
    #[must_use]
    pub fn first_paths(&self) -> Vec<(Timestamp, String)> {
        let state = self.shared.state.lock();
        let admissions = state.admissions.iter();
        let paths = admissions.map(|((accepted_at, _), path)| (*accepted_at, path.clone()));
        paths.collect()
    }

    /// Returns by how many ms the clock of a node is behind the origin's, from the times of its
    /// admissions; negative if it is ahead. It is too large by the shortest delay of an admitted
    /// visitor's request. `None` if the node has admitted nobody.
    #[must_use]
    pub fn clock_behind_ms(&self, node: &str) -> Option<i64> {
        let state = self.shared.state.lock();
        state.clocks_behind_ms.get(node).copied()
    }

    /// Returns what went wrong, with the time and the node.
    #[must_use]
    pub fn evidence(&self) -> Vec<String> {
        self.shared.state.lock().evidence.clone()
    }

    /// Resets all counts, for a deployment that starts from nothing.
    pub fn reset(&self) {
        *self.shared.state.lock() = CheckerState::new(&self.shared.room);
    }

    /// Returns how many requests for `/held` wait, or have waited, for [`CheckingOrigin::release`].
    #[must_use]
    pub fn held_requests(&self) -> usize {
        *self.shared.held.borrow()
    }

    /// Responds to requests for `/held`.
    pub fn release(&self) {
        self.shared.is_released.send_replace(true);
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

    fn check_request(&self, sighting: Option<&OriginRequest>, headers: &HeaderMap, path: &str) {
        let mut state = self.state.lock();
        // Read under the lock, so that the checker sees times in order.
        let now = self.now();
        let Some(sighting) = sighting else {
            state.checker.observe_without_headers(now);
            state.note(now, "has no valid headers", headers, "");
            return;
        };
        state.observe(sighting, headers, now, self.room.limits);
        let admission = state
            .admissions
            .entry((sighting.accepted_at, sighting.visitor));
        admission.or_insert_with(|| path.to_owned());
        if path == LOGOUT {
            // Before the response is sent: the node may grant the seat to another as soon as it has
            // it.
            state.checker.revoke(sighting.visitor, now);
        }
    }
}

impl CheckerState {
    fn new(room: &CheckedRoom) -> Self {
        Self {
            checker: Checker::new(room.session),
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
        let before = self.checker.verdict(limits, now);
        let sent_at = the_only(headers, &SENT_AT).and_then(parse_millis);
        self.checker.observe(sighting, sent_at, now);
        let who = format!("{sighting:?}");
        let after = self.checker.verdict(limits, now);
        let inside = after.most_inside;
        if inside > before.most_inside && after.is_over_total_active_users() {
            self.note(now, &format!("{inside} inside"), headers, &who);
        }
        let sent_at = sent_at.unwrap_or(now);
        if sighting.is_late(sent_at) {
            let late = sent_at.since(sighting.seat_ends_at);
            self.note(now, &format!("sent {} ms late", late.0), headers, &who);
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
        let via = via.unwrap_or("an unknown node");
        let evidence = format!("{} ({since} ms) at {via}: {what} {who}", now.0);
        self.evidence.push(evidence);
    }
}

async fn serve(listener: TcpListener, shared: Arc<CheckerShared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // An origin that cannot accept checks nothing, so the test must fail.
                let (stream, _) = accepted.expect("a test has files enough for its sockets");
                connections.spawn(serve_connection(stream, Arc::clone(&shared)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve_connection(stream: TcpStream, shared: Arc<CheckerShared>) {
    // Without it, small packets wait for acknowledgements; if it fails, the socket still works.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| respond(Arc::clone(&shared), request));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // The node notices a broken connection.
    let _ = connection.await;
}

async fn respond(
    shared: Arc<CheckerShared>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path();
    let sighting = OriginRequest::from_headers(request.headers(), &shared.room.name);
    shared.check_request(sighting.as_ref(), request.headers(), path);
    let visitor = request.headers().get(VISITOR).cloned();
    let mut response = Response::new(Full::new(Bytes::from_static(b"the origin")));
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(sighting) = sighting {
        let ends_at = HeaderValue::from(sighting.seat_ends_at.0);
        headers.insert(CHECKER_SEAT_ENDS, ends_at);
    }
    if let Some(visitor) = visitor {
        headers.insert(CHECKER_VISITOR, visitor);
    }
    match path {
        LOGOUT => {
            headers.insert(COMMAND, HeaderValue::from_static("revoke"));
        }
        "/error" => *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR,
        "/held" => {
            shared.held.send_modify(|held| *held += 1);
            let mut released = shared.is_released.subscribe();
            // It cannot be closed: `shared` has the sender.
            let _ = released.wait_for(|is_released| *is_released).await;
        }
        _ => {}
    }
    Ok(response)
}
