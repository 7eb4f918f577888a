//! API clients that send requests to every node all the time, and count the allowed ones.
//!
//! The origin records the arrival of each request there. A request that arrived was decided between
//! its sending and its arrival, even without a response. Requests sent and arrived within one
//! window were therefore all decided in it. More of them than the limit prove a violation.

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

use anteroom_testkit::load::NodeRoutes;

/// Header that identifies a client.
pub const CLIENT: &str = "x-api-key";
/// Longest wait for a response.
const RESPONSE_WITHIN: Duration = Duration::from_secs(4);
/// Pause between two requests of one task.
const PACE: Duration = Duration::from_millis(20);

/// Header with the number of a request.
const NUMBER: &str = "x-call";

/// Arrival times of requests, by number.
type Arrivals = Arc<Mutex<HashMap<usize, Instant>>>;

/// Origin that accepts every request.
#[derive(Debug)]
pub struct WillingOrigin {
    address: SocketAddr,
    arrivals: Arrivals,
    serving: JoinHandle<()>,
}

impl WillingOrigin {
    /// Starts the origin.
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

    /// Returns its address.
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
        let response = move |request: Request<Incoming>| {
            note(&arrivals, &request);
            let mut response = Response::new(Empty::<Bytes>::new());
            *response.status_mut() = StatusCode::NO_CONTENT;
            std::future::ready(Ok::<_, Infallible>(response))
        };
        let serving = hyper::server::conn::http1::Builder::new();
        let serving = serving.serve_connection(TokioIo::new(stream), service_fn(response));
        tokio::spawn(serving);
    }
}

/// Records the arrival of a request.
fn note(arrivals: &Arrivals, request: &Request<Incoming>) {
    let number = request.headers().get(NUMBER);
    let number = number.and_then(|number| number.to_str().ok()?.parse().ok());
    if let Some(number) = number {
        // If a gateway sent it twice, it had been decided before the first arrival.
        arrivals.lock().entry(number).or_insert_with(Instant::now);
    }
}

/// Request with its results.
#[derive(Clone, Copy, Debug)]
struct SentRequest {
    client: usize,
    number: usize,
    /// Time since the start.
    sent: Duration,
    /// Arrival at the origin, `None` for a rejected request; known at the end.
    arrived: Option<Duration>,
    /// Status; `None` without a response in time.
    status: Option<StatusCode>,
}

/// Clients that send requests until they are stopped.
#[derive(Debug)]
pub struct ApiClients {
    began: Instant,
    requests: Arc<Mutex<Vec<SentRequest>>>,
    numbers: Arc<AtomicUsize>,
    arrivals: Arrivals,
    stop: Arc<AtomicBool>,
    tasks: JoinSet<()>,
}

/// Load of the clients.
#[derive(Clone, Debug)]
pub struct Demand {
    /// Number of clients.
    pub clients: usize,
    /// Tasks per client; each sends one request after the other, to a random node.
    pub tasks: usize,
    /// Path of the requests.
    pub path: String,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl ApiClients {
    /// Starts all clients. Allowed requests arrive at `origin`.
    #[must_use]
    pub fn at_once(routes: &NodeRoutes, demand: &Demand, origin: &WillingOrigin) -> Self {
        let mut clients = Self {
            began: Instant::now(),
            requests: Arc::default(),
            numbers: Arc::default(),
            arrivals: Arc::clone(&origin.arrivals),
            stop: Arc::default(),
            tasks: JoinSet::new(),
        };
        for task in 0..demand.clients * demand.tasks {
            let rng = Pcg64Mcg::seed_from_u64(demand.seed ^ ((task as u64) << 32));
            let client = task % demand.clients;
            let calling = clients.task(routes.clone(), client, demand.path.clone(), rng);
            clients.tasks.spawn(calling);
        }
        clients
    }

    fn task(
        &self,
        routes: NodeRoutes,
        client: usize,
        path: String,
        mut rng: Pcg64Mcg,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (requests, stop) = (Arc::clone(&self.requests), Arc::clone(&self.stop));
        let began = self.began;
        let numbers = Arc::clone(&self.numbers);
        async move {
            // Idle connections are closed before a paused node could block all of them.
            let http: Client<HttpConnector, Empty<Bytes>> = Client::builder(TokioExecutor::new())
                .pool_idle_timeout(Duration::from_secs(5))
                .pool_timer(TokioTimer::new())
                .build_http();
            while !stop.load(Ordering::Relaxed) {
                sleep(PACE).await; // tidy: time passes
                let Some(address) = routes.anywhere(&mut rng) else {
                    continue;
                };
                let number = numbers.fetch_add(1, Ordering::Relaxed);
                let request = Request::get(format!("http://{address}{path}"))
                    .header(NUMBER, number)
                    .header(CLIENT, format!("client-{client}"))
                    .body(Empty::new())
                    .expect("addresses of nodes are valid in a request");
                let sent = began.elapsed();
                let response = timeout(RESPONSE_WITHIN, http.request(request)).await;
                let response = response.ok().and_then(Result::ok);
                requests.lock().push(SentRequest {
                    client,
                    number,
                    sent,
                    arrived: None,
                    status: response.map(|response| response.status()),
                });
            }
        }
    }

    /// Returns the number of allowed requests until now.
    #[must_use]
    pub fn allowed_count(&self) -> usize {
        self.arrivals.lock().len()
    }

    /// Stops all tasks, and returns their requests.
    pub async fn stop(mut self) -> SentRequests {
        self.stop.store(true, Ordering::Relaxed);
        while self.tasks.join_next().await.is_some() {}
        let mut requests = std::mem::take(&mut *self.requests.lock());
        let arrivals = self.arrivals.lock();
        for entry in &mut requests {
            // Includes requests that arrived after their client had given up.
            let arrived = arrivals.get(&entry.number);
            entry.arrived = arrived.map(|at| at.duration_since(self.began));
        }
        SentRequests(requests)
    }
}

/// Requests and their results.
#[derive(Clone, Debug)]
pub struct SentRequests(Vec<SentRequest>);

impl SentRequests {
    /// Fails if any window has more allowed requests of one client than the limit. Prints the
    /// results, and the fullest window.
    ///
    /// # Panics
    ///
    /// If that happened.
    pub fn assert_kept(&self, limit: usize, window: Duration) {
        let last = self.0.iter().map(|entry| entry.sent).max();
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

    /// Returns for each client the most requests that certainly passed in one window.
    #[must_use]
    pub fn most(&self, window: Duration) -> Vec<usize> {
        let clients = self
            .0
            .iter()
            .map(|entry| entry.client + 1)
            .max()
            .unwrap_or(0);
        let of_client = |client| {
            let own = self.0.iter().filter(|entry| entry.client == client);
            let arrived_requests = own.filter_map(|entry| Some((entry.sent, entry.arrived?)));
            most_within(arrived_requests.collect(), window)
        };
        (0..clients).map(of_client).collect()
    }
}

/// Returns the most requests that were both sent and had arrived in one window.
fn most_within(mut requests: Vec<(Duration, Duration)>, window: Duration) -> usize {
    requests.sort();
    let mut most = 0;
    for (at, (first, _)) in requests.iter().enumerate() {
        let end = *first + window;
        // Windows are half open: a request that arrives at the end may belong to the next one.
        let within = requests[at..].iter().take_while(|(sent, _)| *sent < end);
        most = most.max(within.filter(|(_, arrived)| *arrived < end).count());
    }
    most
}

impl fmt::Display for SentRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut by_status: BTreeMap<u16, usize> = BTreeMap::new();
        for entry in &self.0 {
            let status = entry.status.map_or(0, |status| status.as_u16());
            *by_status.entry(status).or_default() += 1;
        }
        write!(
            f,
            "{} requests (0 = no response): {by_status:?}",
            self.0.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn only_requests_wholly_within_a_window_count() {
        let check = |requests: &[(u64, u64)], expected: usize| {
            let requests = requests
                .iter()
                .map(|(sent, arrived)| (millis(*sent), millis(*arrived)));
            assert_eq!(most_within(requests.collect(), millis(100)), expected);
        };
        check(&[], 0);
        check(&[(0, 1), (50, 51), (98, 99)], 3);
        check(&[(0, 1), (50, 51), (98, 100)], 2);
        check(&[(0, 1), (98, 100), (99, 150), (120, 190)], 3);
        check(&[(0, 500), (10, 20)], 1);
    }

    fn requests(arrived: [Option<u64>; 4]) -> SentRequests {
        let entry = |(at, arrived): (u64, Option<u64>)| SentRequest {
            client: 1,
            number: 0,
            sent: millis(at),
            arrived: arrived.map(millis),
            // No client received a response.
            status: None,
        };
        SentRequests((0..).zip(arrived).map(entry).collect())
    }

    #[test]
    #[should_panic(expected = "client 1: 3 in a window, and not 2")]
    fn an_excess_is_found_even_without_responses() {
        let requests = requests([Some(5), Some(6), None, Some(99)]);
        requests.assert_kept(2, millis(100));
    }

    #[test]
    fn a_request_that_did_not_arrive_does_not_count() {
        let requests = requests([Some(5), None, None, Some(99)]);
        assert_eq!(requests.most(millis(100)), [0, 2]);
        requests.assert_kept(2, millis(100));
    }
}
