//! A gateway small enough to be verified by reading, correct or with one fault.
//!
//! It implements the headers, the cookie and the position of a real gateway over real sockets, and
//! decides under one lock. It has no order of arrival, no limit per minute and no recovery.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anteroom_room::time::{DurationMs, Timestamp};
use bytes::Bytes;
use http::header::{COOKIE, SET_COOKIE};
use http::{HeaderMap, HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::watch;
use url::Url;

use crate::checker::{ACCEPTED_AT, ROOM, SEAT_ENDS, VISITOR};
use crate::clock::Clock;
use crate::{GatewayStats, Layout, RunningGateway, RunningGateways};

/// Time after its end at which a seat is granted again: the clocks of the origin differ a little.
const GIVE_ON_AFTER: DurationMs = DurationMs(5);

/// Fault of a gateway.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fault {
    /// A correct gateway.
    None,
    /// The gateway has seats for every visitor.
    AdmitsEverybody,
    /// The gateway forgets a visitor's seat after the first page and grants it to another.
    Forgets,
    /// The gateway sends the origin no headers about the visitor.
    SendsNoHeaders,
    /// The gateway passes visitors whose seats ended long ago.
    LetsOverstay,
}

/// A gateway for one test, with one or more listeners that share their state; ends with the
/// runtime.
pub(super) struct FakeGateway {
    listeners: Vec<SocketAddr>,
    inner: Arc<Inner>,
}

struct Inner {
    origin: SocketAddr,
    seats: usize,
    session: DurationMs,
    fault: Fault,
    clock: Clock,
    client: Client<HttpConnector, Incoming>,
    state: Mutex<State>,
    polled: watch::Sender<BTreeSet<u32>>,
}

#[derive(Default)]
struct State {
    visitors: u32,
    admitted: u64,
    /// Requests through each listener.
    requests: BTreeMap<SocketAddr, u64>,
    seats: BTreeMap<u32, Seat>,
}

#[derive(Clone, Copy)]
struct Seat {
    accepted_at: Timestamp,
    ends_at: Timestamp,
    pages: u32,
}

type Reply = Response<Either<Incoming, Full<Bytes>>>;

impl FakeGateway {
    pub(super) async fn start(
        origin: SocketAddr,
        seats: usize,
        session: DurationMs,
        fault: Fault,
    ) -> Self {
        let inner = Arc::new(Inner {
            origin,
            seats,
            session,
            fault,
            clock: Clock::start(),
            client: Client::builder(TokioExecutor::new()).build_http(),
            state: Mutex::default(),
            polled: watch::Sender::default(),
        });
        let gateway = Self {
            listeners: Vec::new(),
            inner,
        };
        gateway.with_another_listener().await
    }

    /// Adds a listener.
    pub(super) async fn with_another_listener(mut self) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::clone(&self.inner);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let inner = Arc::clone(&shared);
                let service = service_fn(move |request| {
                    let mut state = inner.state.lock();
                    *state.requests.entry(address).or_default() += 1;
                    respond(Arc::clone(&inner), request)
                });
                let connection =
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                tokio::spawn(connection);
            }
        });
        self.listeners.push(address);
        self
    }

    pub(super) fn urls(&self) -> Vec<Url> {
        let urls = self
            .listeners
            .iter()
            .map(|listener| format!("http://{listener}/"));
        urls.map(|url| url.parse().unwrap()).collect()
    }

    /// Returns the requests through each listener that was used.
    pub(super) fn requests(&self) -> Vec<u64> {
        self.inner.state.lock().requests.values().copied().collect()
    }

    /// Returns the number of visitors without a cookie.
    pub(super) fn visitors(&self) -> u32 {
        self.inner.state.lock().visitors
    }

    /// Completes once `count` different visitors have polled their positions.
    pub(super) async fn polled_by(&self, count: usize) {
        let mut polled = self.inner.polled.subscribe();
        polled
            .wait_for(|visitors| visitors.len() >= count)
            .await
            .unwrap();
    }

    /// Returns the gateway as the demo expects it: one listener for each node.
    pub(super) async fn into_running(mut self, layout: Layout) -> RunningGateways {
        for _ in 1..layout.nodes() {
            self = self.with_another_listener().await;
        }
        let listeners = self.urls().into_iter().zip(0..);
        let running = listeners.map(|(url, number)| {
            let inner = Arc::clone(&self.inner);
            let stats = move || {
                let state = inner.state.lock();
                GatewayStats {
                    inside: state.seats.len().try_into().unwrap(),
                    waiting: 0,
                    admitted: if number == 0 { state.admitted } else { 0 },
                }
            };
            RunningGateway {
                url,
                data_center: 1 + number / layout.nodes_in_each,
                stats: Box::new(stats),
            }
        });
        RunningGateways {
            gateways: running.collect(),
            stop: Box::pin(async {}),
        }
    }
}

impl Inner {
    /// Identifies or numbers the visitor, and finds or grants a seat.
    fn decide(&self, cookie: Option<u32>) -> (u32, Option<Seat>) {
        let mut state = self.state.lock();
        let now = self.clock.now();
        let visitor = cookie.unwrap_or_else(|| {
            state.visitors += 1;
            state.visitors
        });
        if self.fault == Fault::Forgets {
            state.seats.retain(|_, seat| seat.pages < 1);
        }
        state.seats.retain(|id, seat| {
            seat.ends_at > now || (*id != visitor && seat.ends_at + GIVE_ON_AFTER > now)
        });
        let is_free = self.fault == Fault::AdmitsEverybody || state.seats.len() < self.seats;
        if !state.seats.contains_key(&visitor) && is_free {
            let seat = Seat {
                accepted_at: now,
                ends_at: now,
                pages: 0,
            };
            state.seats.insert(visitor, seat);
            state.admitted += 1;
        }
        let seat = state.seats.get_mut(&visitor).map(|seat| {
            seat.ends_at = now + self.session;
            *seat
        });
        (visitor, seat)
    }

    fn describe(&self, visitor: u32, seat: Seat, headers: &mut HeaderMap) {
        if self.fault == Fault::SendsNoHeaders {
            return;
        }
        let ends_at = match self.fault {
            Fault::LetsOverstay => seat.ends_at - self.session - DurationMs(2_000),
            _ => seat.ends_at,
        };
        let id = format!("{visitor:032x}");
        headers.insert(VISITOR, HeaderValue::from_str(&id).unwrap());
        headers.insert(SEAT_ENDS, HeaderValue::from(ends_at.0));
        headers.insert(ACCEPTED_AT, HeaderValue::from(seat.accepted_at.0));
        headers.insert(ROOM, HeaderValue::from_static("demo"));
    }

    async fn pass(&self, visitor: u32, seat: Seat, mut request: Request<Incoming>) -> Reply {
        let path = request.uri().path();
        *request.uri_mut() = format!("http://{}{path}", self.origin)
            .parse::<Uri>()
            .unwrap();
        self.describe(visitor, seat, request.headers_mut());
        let response = self.client.request(request).await.unwrap();
        let mut state = self.state.lock();
        if response.headers().contains_key("anteroom-command") {
            state.seats.remove(&visitor);
        } else if let Some(seat) = state.seats.get_mut(&visitor) {
            seat.pages += 1;
        }
        response.map(Either::Left)
    }
}

async fn respond(inner: Arc<Inner>, request: Request<Incoming>) -> Result<Reply, Infallible> {
    let cookie = request.headers().get(COOKIE).and_then(|cookie| {
        let cookie = cookie.to_str().unwrap();
        cookie.strip_prefix("__anteroom_demo=")?.parse().ok()
    });
    let (visitor, seat) = inner.decide(cookie);
    let is_position = request.uri().path() == "/.well-known/anteroom/position";
    let mut response = match seat {
        Some(seat) if !is_position => inner.pass(visitor, seat, request).await,
        _ if is_position => {
            assert_eq!(request.uri().query(), Some("room=demo"));
            inner
                .polled
                .send_if_modified(|visitors| visitors.insert(visitor));
            let json = format!(
                r#"{{"cfWaitingRoom":{{"inWaitingRoom":{},"refreshIntervalSeconds":0.03}}}}"#,
                seat.is_none()
            );
            Response::new(Either::Right(Full::from(json)))
        }
        _ => {
            drop(request.into_body().collect().await);
            let mut page = Response::new(Either::Right(Full::from("<h1>Please wait</h1>")));
            let headers = page.headers_mut();
            headers.insert("anteroom-verdict", HeaderValue::from_static("queue"));
            headers.insert("retry-after", HeaderValue::from_static("1"));
            page
        }
    };
    let cookie = format!("__anteroom_demo={visitor}; Path=/; HttpOnly; SameSite=Lax");
    let cookie = HeaderValue::from_str(&cookie).unwrap();
    response.headers_mut().append(SET_COOKIE, cookie);
    Ok(response)
}
