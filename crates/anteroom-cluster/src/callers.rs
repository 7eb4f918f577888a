//! Who calls an API all the time, at every node, and counts what went through?
//!
//! A call that went through was decided somewhere between when it was sent and when its answer was there. Calls
//! that lie wholly in one window were therefore all decided in it: more of them than the limit, and the limit is
//! broken for certain.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// An origin that takes every call.
#[derive(Debug)]
pub struct WillingOrigin {
    address: SocketAddr,
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
        Self {
            address,
            serving: tokio::spawn(serve(listener)),
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

async fn serve(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        let answer = |_: Request<Incoming>| async {
            let mut response = Response::new(Empty::<Bytes>::new());
            *response.status_mut() = StatusCode::NO_CONTENT;
            Ok::<_, Infallible>(response)
        };
        let serving = hyper::server::conn::http1::Builder::new();
        let serving = serving.serve_connection(TokioIo::new(stream), service_fn(answer));
        tokio::spawn(serving);
    }
}

/// One call.
#[derive(Clone, Copy, Debug)]
struct Call {
    client: usize,
    /// Since all began.
    sent: Duration,
    answered: Duration,
    /// None came in time.
    status: Option<StatusCode>,
}

/// Callers that go on until they are told to stop.
#[derive(Debug)]
pub struct Callers {
    began: Instant,
    calls: Arc<Mutex<Vec<Call>>>,
    stop: Arc<AtomicBool>,
    lines: JoinSet<()>,
}

impl Callers {
    /// So many clients call by so many lines each, every time at any node.
    #[must_use]
    pub fn at_once(doors: &Doors, clients: usize, lines: usize, path: &str, seed: u64) -> Self {
        let mut callers = Self {
            began: Instant::now(),
            calls: Arc::default(),
            stop: Arc::default(),
            lines: JoinSet::new(),
        };
        for line in 0..clients * lines {
            let dice = Pcg64Mcg::seed_from_u64(seed ^ ((line as u64) << 32));
            let client = line % clients;
            let calling = callers.line(doors.clone(), client, path.to_owned(), dice);
            callers.lines.spawn(calling);
        }
        callers
    }

    fn line(
        &self,
        doors: Doors,
        client: usize,
        path: String,
        mut dice: Pcg64Mcg,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (began, calls, stop) = (self.began, Arc::clone(&self.calls), Arc::clone(&self.stop));
        async move {
            // Connections that nobody uses are closed before a paused node could hold all of them.
            let http: Client<HttpConnector, Empty<Bytes>> = Client::builder(TokioExecutor::new())
                .pool_idle_timeout(Duration::from_secs(5))
                .pool_timer(TokioTimer::new())
                .build_http();
            while !stop.load(Ordering::Relaxed) {
                sleep(PACE).await; // tidy: time passes
                let Some(address) = doors.anywhere(&mut dice) else {
                    continue;
                };
                let request = Request::get(format!("http://{address}{path}"))
                    .header(CLIENT, format!("client-{client}"))
                    .body(Empty::new())
                    .expect("addresses of nodes are fit for a request");
                let sent = began.elapsed();
                let answer = timeout(ANSWER_WITHIN, http.request(request)).await;
                let answer = answer.ok().and_then(Result::ok);
                calls.lock().push(Call {
                    client,
                    sent,
                    answered: began.elapsed(),
                    status: answer.map(|answer| answer.status()),
                });
            }
        }
    }

    /// How many calls went through so far.
    #[must_use]
    pub fn went(&self) -> usize {
        let calls = self.calls.lock();
        calls.iter().filter(|call| went(call)).count()
    }

    /// Ends all lines, and tells what became of their calls.
    pub async fn stop(mut self) -> Calls {
        self.stop.store(true, Ordering::Relaxed);
        while self.lines.join_next().await.is_some() {}
        Calls(std::mem::take(&mut *self.calls.lock()))
    }
}

/// What became of calls.
#[derive(Clone, Debug)]
pub struct Calls(Vec<Call>);

impl Calls {
    /// Fails if in any window one client came through more often than the limit says. Prints what came of all
    /// calls, and the most that came through in a window.
    ///
    /// # Panics
    ///
    /// If that happened.
    pub fn assert_kept(&self, limit: usize, window: Duration) {
        let last = self.0.iter().map(|call| call.answered).max();
        let windows = last.unwrap_or_default().as_secs_f64() / window.as_secs_f64();
        eprintln!("{self} in {windows:.1} windows");
        let clients = self.0.iter().map(|call| call.client).max().unwrap_or(0) + 1;
        for client in 0..clients {
            let own: Vec<&Call> = self.0.iter().filter(|call| call.client == client).collect();
            let went: Vec<&Call> = own.into_iter().filter(|call| went(call)).collect();
            let most = most_within(&went, window);
            let all = went.len();
            eprintln!("client {client}: {all} went through, at most {most} of {limit} in a window");
            assert!(
                most <= limit,
                "client {client}: {most} in a window, and not {limit}"
            );
        }
    }
}

/// Calls that were both sent and answered in one window, at most.
fn most_within(calls: &[&Call], window: Duration) -> usize {
    let mut by_sent: Vec<&Call> = calls.to_vec();
    by_sent.sort_by_key(|call| call.sent);
    let mut most = 0;
    for (at, first) in by_sent.iter().enumerate() {
        let end = first.sent + window;
        // Windows are half open: what is answered at its end may be of the next one.
        let within = by_sent[at..].iter().take_while(|call| call.sent < end);
        most = most.max(within.filter(|call| call.answered < end).count());
    }
    most
}

fn went(call: &Call) -> bool {
    call.status.is_some_and(|status| status.is_success())
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

    fn call(sent: u64, answered: u64) -> Call {
        Call {
            client: 0,
            sent: Duration::from_millis(sent),
            answered: Duration::from_millis(answered),
            status: Some(StatusCode::NO_CONTENT),
        }
    }

    #[test]
    fn only_calls_that_lie_wholly_in_a_window_count() {
        let check = |calls: &[Call], expected: usize| {
            let calls: Vec<&Call> = calls.iter().collect();
            assert_eq!(most_within(&calls, Duration::from_millis(100)), expected);
        };
        check(&[], 0);
        check(&[call(0, 1), call(50, 51), call(98, 99)], 3);
        check(&[call(0, 1), call(50, 51), call(98, 100)], 2);
        check(
            &[call(0, 1), call(98, 100), call(99, 150), call(120, 190)],
            3,
        );
        check(&[call(0, 500), call(10, 20)], 1);
    }

    #[test]
    #[should_panic(expected = "3 in a window")]
    fn more_than_the_limit_is_told() {
        let calls = Calls(vec![call(0, 1), call(2, 3), call(4, 5)]);
        calls.assert_kept(2, Duration::from_millis(100));
    }
}
