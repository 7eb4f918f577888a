//! Who calls an API all the time, at every node, and counts what went through?
//!
//! The origin notes when each call arrives there. One that arrived was decided somewhere between
//! when it was sent and then, whether its answer ever came or not. Calls that were sent and arrived
//! in one window were therefore all decided in it: more of them than the limit, and the limit is
//! broken for certain.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use rand_core::SeedableRng as _;
use rand_pcg::Pcg64Mcg;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};

use crate::crowd::Doors;

/// The header that tells clients apart.
pub const CLIENT: &str = "x-api-key";
/// How long somebody waits for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(4);
/// Between two calls of one line.
const PACE: Duration = Duration::from_millis(20);

/// Says which call it is.
const NUMBER: &str = "x-call";

/// When each call arrived, by its number.
type Arrivals = Arc<Mutex<HashMap<usize, Instant>>>;

/// An origin that takes every call.
#[derive(Debug)]
pub struct WillingOrigin {
    address: SocketAddr,
    arrivals: Arrivals,
    serving: JoinHandle<()>,
}

impl WillingOrigin {
    /// Starts it.
    ///
    /// # Panics
    ///
    /// If there is no port left.
    pub async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await;
        let listener = listener.expect("a free port of this machine");
        let address = listener.local_addr().expect("it listens");
        let arrivals = Arrivals::default();
        Self {
            address,
            serving: tokio::spawn(serve(listener, Arc::clone(&arrivals))),
            arrivals,
        }
    }

    /// Where it is.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for WillingOrigin {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, arrivals: Arrivals) {
    while let Ok((stream, _)) = listener.accept().await {
        let arrivals = Arc::clone(&arrivals);
        let answer = move |request: Request<Incoming>| {
            note(&arrivals, &request);
            let mut response = Response::new(Empty::<Bytes>::new());
            *response.status_mut() = StatusCode::NO_CONTENT;
            std::future::ready(Ok::<_, Infallible>(response))
        };
        let serving = hyper::server::conn::http1::Builder::new();
        let serving = serving.serve_connection(TokioIo::new(stream), service_fn(answer));
        tokio::spawn(serving);
    }
}

/// Takes note that a call is there.
fn note(arrivals: &Arrivals, request: &Request<Incoming>) {
    let number = request.headers().get(NUMBER);
    let number = number.and_then(|number| number.to_str().ok()?.parse().ok());
    if let Some(number) = number {
        // If a gateway sent it twice, the first time was when it had been decided.
        arrivals.lock().entry(number).or_insert_with(Instant::now);
    }
}

/// One call.
#[derive(Clone, Copy, Debug)]
struct Call {
    client: usize,
    number: usize,
    /// Since all began.
    sent: Duration,
    /// At the origin, where most do not; known when all have ended.
    arrived: Option<Duration>,
    /// None came in time.
    status: Option<StatusCode>,
}

/// Callers that go on until they are told to stop.
#[derive(Debug)]
pub struct Callers {
    began: Instant,
    calls: Arc<Mutex<Vec<Call>>>,
    numbers: Arc<AtomicUsize>,
    arrivals: Arrivals,
    stop: Arc<AtomicBool>,
    lines: JoinSet<()>,
}

/// Who calls how often.
#[derive(Clone, Debug)]
pub struct Demand {
    /// How many clients.
    pub clients: usize,
    /// Of each client: one call after the other, every time at any node.
    pub lines: usize,
    /// What they call.
    pub path: String,
    /// Their dice.
    pub seed: u64,
}

impl Callers {
    /// All of them call from now on. What comes through arrives at `origin`.
    #[must_use]
    pub fn at_once(doors: &Doors, demand: &Demand, origin: &WillingOrigin) -> Self {
        let mut callers = Self {
            began: Instant::now(),
            calls: Arc::default(),
            numbers: Arc::default(),
            arrivals: Arc::clone(&origin.arrivals),
            stop: Arc::default(),
            lines: JoinSet::new(),
        };
        for line in 0..demand.clients * demand.lines {
            let rng = Pcg64Mcg::seed_from_u64(demand.seed ^ ((line as u64) << 32));
            let client = line % demand.clients;
            let calling = callers.line(doors.clone(), client, demand.path.clone(), rng);
            callers.lines.spawn(calling);
        }
        callers
    }

    fn line(
        &self,
        doors: Doors,
        client: usize,
        path: String,
        mut rng: Pcg64Mcg,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (began, calls, stop) = (self.began, Arc::clone(&self.calls), Arc::clone(&self.stop));
        let numbers = Arc::clone(&self.numbers);
        async move {
            // Connections that nobody uses are closed before a paused node could hold all of them.
            let http: Client<HttpConnector, Empty<Bytes>> = Client::builder(TokioExecutor::new())
                .pool_idle_timeout(Duration::from_secs(5))
                .pool_timer(TokioTimer::new())
                .build_http();
            while !stop.load(Ordering::Relaxed) {
                sleep(PACE).await; // tidy: time passes
                let Some(address) = doors.anywhere(&mut rng) else {
                    continue;
                };
                let number = numbers.fetch_add(1, Ordering::Relaxed);
                let request = Request::get(format!("http://{address}{path}"))
                    .header(NUMBER, number)
                    .header(CLIENT, format!("client-{client}"))
                    .body(Empty::new())
                    .expect("addresses of nodes are fit for a request");
                let sent = began.elapsed();
                let answer = timeout(ANSWER_WITHIN, http.request(request)).await;
                let answer = answer.ok().and_then(Result::ok);
                calls.lock().push(Call {
                    client,
                    number,
                    sent,
                    arrived: None,
                    status: answer.map(|answer| answer.status()),
                });
            }
        }
    }

    /// How many calls went through so far.
    #[must_use]
    pub fn went(&self) -> usize {
        self.arrivals.lock().len()
    }

    /// Ends all lines, and tells what became of their calls.
    pub async fn stop(mut self) -> Calls {
        self.stop.store(true, Ordering::Relaxed);
        while self.lines.join_next().await.is_some() {}
        let mut calls = std::mem::take(&mut *self.calls.lock());
        let arrivals = self.arrivals.lock();
        for call in &mut calls {
            // Those that came when their caller had given up as well.
            let arrived = arrivals.get(&call.number);
            call.arrived = arrived.map(|at| at.duration_since(self.began));
        }
        Calls(calls)
    }
}

/// What became of calls.
#[derive(Clone, Debug)]
pub struct Calls(Vec<Call>);

impl Calls {
    /// Fails if in any window more calls of one client came through than the limit says. Prints
    /// what came of all calls, and the most that came through in a window.
    ///
    /// # Panics
    ///
    /// If that happened.
    pub fn assert_kept(&self, limit: usize, window: Duration) {
        let last = self.0.iter().map(|call| call.sent).max();
        let windows = last.unwrap_or_default().as_secs_f64() / window.as_secs_f64();
        eprintln!("{self} in {windows:.1} windows");
        for (client, most) in self.most(window).into_iter().enumerate() {
            eprintln!("client {client}: at most {most} of {limit} in a window");
            assert!(
                most <= limit,
                "client {client}: {most} in a window, and not {limit}"
            );
        }
    }

    /// Of each client, the most calls that certainly came through in one window.
    #[must_use]
    pub fn most(&self, window: Duration) -> Vec<usize> {
        let clients = self.0.iter().map(|call| call.client + 1).max().unwrap_or(0);
        let of_client = |client| {
            let own = self.0.iter().filter(|call| call.client == client);
            let came = own.filter_map(|call| Some((call.sent, call.arrived?)));
            most_within(came.collect(), window)
        };
        (0..clients).map(of_client).collect()
    }
}

/// Calls that were both sent and had arrived in one window, at most.
fn most_within(mut calls: Vec<(Duration, Duration)>, window: Duration) -> usize {
    calls.sort();
    let mut most = 0;
    for (at, (first, _)) in calls.iter().enumerate() {
        let end = *first + window;
        // Windows are half open: what arrives at its end may be of the next one.
        let within = calls[at..].iter().take_while(|(sent, _)| *sent < end);
        most = most.max(within.filter(|(_, arrived)| *arrived < end).count());
    }
    most
}

impl fmt::Display for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut by_status: BTreeMap<u16, usize> = BTreeMap::new();
        for call in &self.0 {
            let status = call.status.map_or(0, |status| status.as_u16());
            *by_status.entry(status).or_default() += 1;
        }
        write!(f, "{} calls (0 = no answer): {by_status:?}", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn only_calls_that_lie_wholly_in_a_window_count() {
        let check = |calls: &[(u64, u64)], expected: usize| {
            let calls = calls
                .iter()
                .map(|(sent, arrived)| (millis(*sent), millis(*arrived)));
            assert_eq!(most_within(calls.collect(), millis(100)), expected);
        };
        check(&[], 0);
        check(&[(0, 1), (50, 51), (98, 99)], 3);
        check(&[(0, 1), (50, 51), (98, 100)], 2);
        check(&[(0, 1), (98, 100), (99, 150), (120, 190)], 3);
        check(&[(0, 500), (10, 20)], 1);
    }

    fn calls(arrived: [Option<u64>; 4]) -> Calls {
        let call = |(at, arrived): (u64, Option<u64>)| Call {
            client: 1,
            number: 0,
            sent: millis(at),
            arrived: arrived.map(millis),
            // Nobody has heard of them.
            status: None,
        };
        Calls((0..).zip(arrived).map(call).collect())
    }

    #[test]
    #[should_panic(expected = "client 1: 3 in a window, and not 2")]
    fn more_than_the_limit_is_told_whatever_callers_have_heard() {
        let calls = calls([Some(5), Some(6), None, Some(99)]);
        calls.assert_kept(2, millis(100));
    }

    #[test]
    fn what_did_not_arrive_does_not_count() {
        let calls = calls([Some(5), None, None, Some(99)]);
        assert_eq!(calls.most(millis(100)), [0, 2]);
        calls.assert_kept(2, millis(100));
    }
}
