//! A gateway small enough to be seen through, honest or with one planted fault.
//!
//! It speaks the headers, the cookie and the place of a real one over real sockets, and decides
//! under one lock. It has no order of arrival, no minute's limit and nothing to recover from.

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

use crate::clock::Clock;
use crate::judge::{ACCEPTED_AT, ROOM, SEAT_ENDS, VISITOR};
use crate::{GatewayStats, Layout, RunningGateway, RunningGateways};

/// How long after its end a seat is given on: the origin reads its clock a little apart.
const GIVE_ON_AFTER: DurationMs = DurationMs(5);

/// What is wrong with a gateway.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fault {
    /// Nothing.
    None,
    /// It has seats for everybody.
    AdmitsEverybody,
    /// It forgets a visitor's seat after the first page and gives it to another.
    Forgets,
    /// It does not tell the origin who comes.
    IsSilent,
    /// It lets visitors in whose seat ended long ago.
    LetsOverstay,
}

/// A gateway for one test, with one door or several that lead to the same book; ends with the
/// runtime.
pub(super) struct FakeGateway {
    doors: Vec<SocketAddr>,
    inner: Arc<Inner>,
}

struct Inner {
    origin: SocketAddr,
    seats: usize,
    session: DurationMs,
    fault: Fault,
    clock: Clock,
    client: Client<HttpConnector, Incoming>,
    book: Mutex<Book>,
    asked: watch::Sender<BTreeSet<u32>>,
}

#[derive(Default)]
struct Book {
    visitors: u32,
    admitted: u64,
    /// Requests through each door.
    requests: BTreeMap<SocketAddr, u64>,
    seats: BTreeMap<u32, Seat>,
}

#[derive(Clone, Copy)]
struct Seat {
    accepted_at: Timestamp,
    ends_at: Timestamp,
    pages: u32,
}

type Answer = Response<Either<Incoming, Full<Bytes>>>;

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
            book: Mutex::default(),
            asked: watch::Sender::default(),
        });
        let gateway = Self {
            doors: Vec::new(),
            inner,
        };
        gateway.with_another_door().await
    }

    /// The same at one more address.
    pub(super) async fn with_another_door(mut self) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::clone(&self.inner);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let inner = Arc::clone(&shared);
                let service = service_fn(move |request| {
                    let mut book = inner.book.lock();
                    *book.requests.entry(address).or_default() += 1;
                    answer(Arc::clone(&inner), request)
                });
                let connection =
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                tokio::spawn(connection);
            }
        });
        self.doors.push(address);
        self
    }

    pub(super) fn urls(&self) -> Vec<Url> {
        let urls = self.doors.iter().map(|door| format!("http://{door}/"));
        urls.map(|url| url.parse().unwrap()).collect()
    }

    /// Requests through each door that was used.
    pub(super) fn requests(&self) -> Vec<u64> {
        self.inner.book.lock().requests.values().copied().collect()
    }

    /// How many came without a cookie.
    pub(super) fn visitors(&self) -> u32 {
        self.inner.book.lock().visitors
    }

    /// Returns once `count` different visitors have asked for their place.
    pub(super) async fn asked_by(&self, count: usize) {
        let mut asked = self.inner.asked.subscribe();
        asked
            .wait_for(|visitors| visitors.len() >= count)
            .await
            .unwrap();
    }

    /// As the demo wants it: one door for each node.
    pub(super) async fn into_running(mut self, layout: Layout) -> RunningGateways {
        for _ in 1..layout.nodes() {
            self = self.with_another_door().await;
        }
        let doors = self.urls().into_iter().zip(0..);
        let running = doors.map(|(url, number)| {
            let inner = Arc::clone(&self.inner);
            let stats = move || {
                let book = inner.book.lock();
                GatewayStats {
                    inside: book.seats.len().try_into().unwrap(),
                    waiting: 0,
                    admitted: if number == 0 { book.admitted } else { 0 },
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
    /// Knows or numbers the visitor, and finds or gives it a seat.
    fn decide(&self, cookie: Option<u32>) -> (u32, Option<Seat>) {
        let mut book = self.book.lock();
        let now = self.clock.now();
        let visitor = cookie.unwrap_or_else(|| {
            book.visitors += 1;
            book.visitors
        });
        if self.fault == Fault::Forgets {
            book.seats.retain(|_, seat| seat.pages < 1);
        }
        book.seats.retain(|id, seat| {
            seat.ends_at > now || (*id != visitor && seat.ends_at + GIVE_ON_AFTER > now)
        });
        let is_free = self.fault == Fault::AdmitsEverybody || book.seats.len() < self.seats;
        if !book.seats.contains_key(&visitor) && is_free {
            let seat = Seat {
                accepted_at: now,
                ends_at: now,
                pages: 0,
            };
            book.seats.insert(visitor, seat);
            book.admitted += 1;
        }
        let seat = book.seats.get_mut(&visitor).map(|seat| {
            seat.ends_at = now + self.session;
            *seat
        });
        (visitor, seat)
    }

    fn describe(&self, visitor: u32, seat: Seat, headers: &mut HeaderMap) {
        if self.fault == Fault::IsSilent {
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

    async fn pass(&self, visitor: u32, seat: Seat, mut request: Request<Incoming>) -> Answer {
        let path = request.uri().path();
        *request.uri_mut() = format!("http://{}{path}", self.origin)
            .parse::<Uri>()
            .unwrap();
        self.describe(visitor, seat, request.headers_mut());
        let response = self.client.request(request).await.unwrap();
        let mut book = self.book.lock();
        if response.headers().contains_key("anteroom-command") {
            book.seats.remove(&visitor);
        } else if let Some(seat) = book.seats.get_mut(&visitor) {
            seat.pages += 1;
        }
        response.map(Either::Left)
    }
}

async fn answer(inner: Arc<Inner>, request: Request<Incoming>) -> Result<Answer, Infallible> {
    let cookie = request.headers().get(COOKIE).and_then(|cookie| {
        let cookie = cookie.to_str().unwrap();
        cookie.strip_prefix("__anteroom_demo=")?.parse().ok()
    });
    let (visitor, seat) = inner.decide(cookie);
    let is_place = request.uri().path() == "/.well-known/anteroom/place";
    let mut answer = match seat {
        Some(seat) if !is_place => inner.pass(visitor, seat, request).await,
        _ if is_place => {
            assert_eq!(request.uri().query(), Some("room=demo"));
            inner
                .asked
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
    answer.headers_mut().append(SET_COOKIE, cookie);
    Ok(answer)
}
