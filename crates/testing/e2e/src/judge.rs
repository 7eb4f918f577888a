//! Were the limits kept? An origin that judges with the demo's judge, and remembers when and at
//! which node something went wrong.
//!
//! It believes what the nodes say of each request (`Anteroom-Seat-Ends`, `Anteroom-Accepted-At`)
//! and nothing else; through which node a request came it is told by the crowd, for the evidence
//! only.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anteroom_demo::judge::{Judge, ON_THE_WAY_MAX, Sighting, VISITOR, Verdict};
use anteroom_room::rules::Limits;
use anteroom_room::time::{Millis, Minute, Span};
use bytes::Bytes;
use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::clock::now;

/// Name of the one room.
pub const ROOM: &str = "shop";
/// In an answer: until when the visitor's seat lasts. The ticket is sealed, so this is how a
/// visitor knows whether it was thrown out too early.
pub const JUDGE_SEAT_ENDS: HeaderName = HeaderName::from_static("judge-seat-ends");
/// In an answer: whom the node took the visitor for.
pub const JUDGE_VISITOR: HeaderName = HeaderName::from_static("judge-visitor");
/// In a request: the node to which the visitor sent it.
pub const VIA: HeaderName = HeaderName::from_static("crowd-via");
/// Whoever asks for it is logged out.
pub const LOGOUT: &str = "/logout";

/// What a node obeys in an answer.
const COMMAND: HeaderName = HeaderName::from_static("anteroom-command");
/// Node and judge each cut what they read down to whole milliseconds, the node twice: a seat that
/// it gave on in time must not look taken for that long.
const CLOCKS_APART: Span = Span(2);
/// Most pieces of evidence that are kept: the first ones tell the most.
const EVIDENCE_MAX: usize = 60;

/// A running origin with its judge; ends when dropped.
#[derive(Debug)]
pub struct JudgingOrigin {
    address: SocketAddr,
    court: Arc<Court>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Court {
    limits: Limits,
    book: Mutex<Book>,
}

#[derive(Debug)]
struct Book {
    judge: Judge,
    began_at: Millis,
    minutes: BTreeMap<Minute, usize>,
    admissions: u64,
    /// By node: how long ago the newest admission seemed to be when it was first seen, at least.
    clocks_behind_ms: BTreeMap<String, i64>,
    evidence: Vec<String>,
}

impl JudgingOrigin {
    /// Serves on a free port. `session` is for the judge's second measure only.
    ///
    /// # Panics
    ///
    /// If this machine has no free port.
    pub async fn start(limits: Limits, session: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("this machine has a free port");
        let address = listener
            .local_addr()
            .expect("a listener knows its own address");
        let session = u64::try_from(session.as_millis()).unwrap_or(u64::MAX);
        let court = Arc::new(Court {
            limits,
            book: Mutex::new(Book {
                judge: Judge::new(Span(session)),
                began_at: now(),
                minutes: BTreeMap::new(),
                admissions: 0,
                clocks_behind_ms: BTreeMap::new(),
                evidence: Vec::new(),
            }),
        });
        let task = tokio::spawn(serve(listener, Arc::clone(&court)));
        Self {
            address,
            court,
            task,
        }
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What was counted so far.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let mut book = self.court.book.lock();
        let now = now() + CLOCKS_APART;
        book.judge.verdict(self.court.limits, now)
    }

    /// How many are inside.
    #[must_use]
    pub fn inside(&self) -> usize {
        let mut book = self.court.book.lock();
        book.judge.inside(now() + CLOCKS_APART)
    }

    /// How many were admitted in each minute.
    #[must_use]
    pub fn minutes(&self) -> BTreeMap<Minute, usize> {
        self.court.book.lock().minutes.clone()
    }

    /// How many were admitted in all.
    #[must_use]
    pub fn admissions(&self) -> u64 {
        self.court.book.lock().admissions
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
}

impl Drop for JudgingOrigin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Court {
    fn judge(&self, sighting: Option<&Sighting>, headers: &HeaderMap, path: &str) {
        let mut book = self.book.lock();
        // Read under the lock, so that the judge sees time in order.
        let now = now() + CLOCKS_APART;
        let Some(sighting) = sighting else {
            book.judge.observe_unjudged(now);
            book.note(now, "could not be judged", headers, "");
            return;
        };
        book.observe(sighting, headers, now, self.limits);
        if path == LOGOUT {
            // Before the answer leaves: the node may give the seat away as soon as it has it.
            book.judge.revoke(sighting.visitor, now);
        }
    }
}

impl Book {
    fn observe(&mut self, sighting: &Sighting, headers: &HeaderMap, now: Millis, limits: Limits) {
        let before = self.judge.verdict(limits, now);
        self.judge.observe(sighting, now);
        let who = format!("{sighting:?}");
        let after = self.judge.verdict(limits, now);
        let inside = after.most_inside;
        if inside > before.most_inside && inside > limits.total_active_users as usize {
            self.note(now, &format!("{inside} inside"), headers, &who);
        }
        let late = now.since(sighting.seat_ends_at);
        if late > ON_THE_WAY_MAX {
            self.note(now, &format!("{} ms late", late.0), headers, &who);
        }
        if after.admissions == before.admissions {
            return;
        }
        self.admissions += 1;
        self.note_clock(sighting, headers, now);
        let minute = self
            .minutes
            .entry(sighting.accepted_at.minute())
            .or_default();
        *minute += 1;
        let count = *minute;
        if count > limits.new_users_per_minute as usize {
            self.note(
                now,
                &format!("admission {count} of its minute"),
                headers,
                &who,
            );
        }
    }

    fn note_clock(&mut self, sighting: &Sighting, headers: &HeaderMap, now: Millis) {
        let Some(via) = headers.get(VIA).and_then(|via| via.to_str().ok()) else {
            return;
        };
        let (here, there) = (now.0, sighting.accepted_at.0 + CLOCKS_APART.0);
        let behind = here.checked_signed_diff(there).unwrap_or(i64::MAX);
        let least = self.clocks_behind_ms.entry(via.to_owned());
        let least = least.or_insert(behind);
        *least = behind.min(*least);
    }

    fn note(&mut self, now: Millis, what: &str, headers: &HeaderMap, who: &str) {
        if self.evidence.len() >= EVIDENCE_MAX {
            return;
        }
        let since = now.since(self.began_at).0;
        let via = headers.get(VIA).and_then(|via| via.to_str().ok());
        let via = via.unwrap_or("nobody knows where");
        self.evidence
            .push(format!("{} ({since} ms) at {via}: {what} {who}", now.0));
    }
}

async fn serve(listener: TcpListener, court: Arc<Court>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(serve_connection(stream, Arc::clone(&court)));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve_connection(stream: TcpStream, court: Arc<Court>) {
    // Without it small pages wait for acknowledgements; a socket that refuses still works.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| answer(Arc::clone(&court), request));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // A connection that breaks is the node's business.
    let _ = connection.await;
}

async fn answer(
    court: Arc<Court>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path();
    let sighting = Sighting::from_headers(request.headers(), ROOM);
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
    if path == LOGOUT {
        headers.insert(COMMAND, HeaderValue::from_static("revoke"));
    }
    Ok(response)
}
