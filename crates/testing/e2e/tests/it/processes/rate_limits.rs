//! Envoy's rate limit service responds all the time while its process is replaced.

use std::error::Error as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anteroom_e2e::eventually;
use anteroom_e2e::node::Node;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustix::process::Signal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::processes::successor::{SERVES, Successor, count};
use crate::processes::{config, node};

const FILE: &str =
    "domain: d\ndescriptors:\n- {key: k, rate_limit: {unit: hour, requests_per_unit: 10000000}}\n";
/// Request in JSON and as a message of gRPC: domain `d`, one descriptor, `k` is `v`.
const JSON: &str = r#"{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}"#;
const MESSAGE: &[u8] = b"\0\0\0\0\x0d\x0a\x01d\x12\x08\x0a\x06\x0a\x01k\x12\x01v";
const PATH: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
/// Clients of each kind: so many that some wait in the kernel at every moment.
const CALLERS: usize = 8;

type Fault = Box<dyn std::error::Error + Send + Sync>;

/// Sends one request, on its own connection.
async fn send_json(address: SocketAddr) -> Result<(), Fault> {
    let mut stream = TcpStream::connect(address).await?;
    let length = JSON.len();
    let request = format!(
        "POST /json HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n\
         {JSON}"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let is_answer = answer.starts_with("HTTP/1.1 200 ") && answer.contains(r#""OK""#);
    is_answer.then_some(()).ok_or_else(|| answer.into())
}

type Connection = http2::SendRequest<Full<Bytes>>;

async fn connect(address: SocketAddr) -> Result<Connection, Fault> {
    let stream = TokioIo::new(TcpStream::connect(address).await?);
    let (connection, driver) = http2::handshake(TokioExecutor::new(), stream).await?;
    tokio::spawn(driver);
    Ok(connection)
}

/// Sends one request. Returns `false` if the server announced before that it accepts no more on
/// this connection.
async fn send_on(connection: &mut Connection, address: SocketAddr) -> Result<bool, Fault> {
    let request = Request::post(format!("http://{address}{PATH}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::from(MESSAGE))?;
    let response = match connection.send_request(request).await {
        Err(fault) if must_retry(&fault) => return Ok(false),
        response => response?,
    };
    let answer = response.into_body().collect().await?;
    let status = answer.trailers().and_then(|all| all.get("grpc-status"));
    let is_good = status.is_some_and(|status| status == "0");
    // The overall code comes first: OK.
    let answer = answer.to_bytes();
    let is_answer = is_good && answer.get(5..7) == Some(&[8, 1]);
    is_answer
        .then_some(true)
        .ok_or_else(|| format!("{answer:?}").into())
}

/// Whether the request was not processed, because the server had announced its end. The
/// announcement may arrive between a client's check and its request. The server never processes
/// such a request (RFC 9113, 6.8), and the client retries on another connection.
fn must_retry(fault: &hyper::Error) -> bool {
    let reason = fault.source().and_then(|source| source.downcast_ref());
    let is_announced = reason.is_some_and(|reason: &h2::Error| {
        reason.is_go_away() && reason.is_remote() && reason.reason() == Some(h2::Reason::NO_ERROR)
    });
    // A request that never left the client's own queue is cancelled.
    is_announced || fault.is_canceled()
}

/// Sends one request by gRPC, on its own connection.
async fn send_grpc(address: SocketAddr) -> Result<(), Fault> {
    // An ending server accepts no connection: the second one is the successor's.
    for _ in 0..2 {
        if send_on(&mut connect(address).await?, address).await? {
            return Ok(());
        }
    }
    Err("redirected twice".into())
}

/// Keeps its connection until that ends, as Envoy does. Returns the number of connections.
async fn send_and_stay(
    connection: &mut Option<Connection>,
    address: SocketAddr,
) -> Result<usize, Fault> {
    let mut times = 0;
    loop {
        let there = match connection {
            Some(there) => there,
            None => {
                times += 1;
                connection.insert(connect(address).await?)
            }
        };
        // After an announcement it sends the request on another connection.
        if there.ready().await.is_ok() && send_on(there, address).await? {
            return Ok(times);
        }
        if times == 2 {
            return Err("redirected twice".into());
        }
        *connection = None;
    }
}

/// Numbers of responses by kind of client, and of connections of those that keep theirs.
#[derive(Default)]
struct Responses {
    json: AtomicUsize,
    grpc: AtomicUsize,
    stayed: AtomicUsize,
    connected: AtomicUsize,
}

impl Responses {
    fn all(&self) -> [usize; 3] {
        [&self.json, &self.grpc, &self.stayed].map(|count| count.load(Ordering::Relaxed))
    }

    /// Waits until each kind has got many more responses.
    async fn go_on(&self) {
        let before = self.all();
        eventually("all get responses", async || {
            let now = self.all();
            now.iter()
                .zip(before)
                .all(|(now, before)| *now >= before + 50)
        })
        .await;
    }
}

/// Starts all clients; each task returns its failure.
fn start_clients(responses: &Arc<Responses>, grpc: SocketAddr, http: SocketAddr) -> JoinSet<Fault> {
    let mut asking = JoinSet::new();
    for _ in 0..CALLERS {
        let [here, there, stay] = [(); 3].map(|()| Arc::clone(responses));
        asking.spawn(async move {
            loop {
                if let Err(fault) = send_json(http).await {
                    return format!("JSON: {fault}").into();
                }
                here.json.fetch_add(1, Ordering::Relaxed);
            }
        });
        asking.spawn(async move {
            loop {
                if let Err(fault) = send_grpc(grpc).await {
                    return format!("gRPC: {fault:?}").into();
                }
                there.grpc.fetch_add(1, Ordering::Relaxed);
            }
        });
        asking.spawn(async move {
            let mut connection = None;
            loop {
                match send_and_stay(&mut connection, grpc).await {
                    Ok(times) => stay.connected.fetch_add(times, Ordering::Relaxed),
                    Err(fault) => return format!("gRPC that stays: {fault:?}").into(),
                };
                stay.stayed.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    asking
}

/// # Panics
///
/// If a client has ended, with its failure.
fn check_no_failure(asking: &mut JoinSet<Fault>) {
    if let Some(fault) = asking.try_join_next() {
        panic!("{}", fault.unwrap());
    }
}

/// Returns the addresses of the service from the log: gRPC and JSON.
fn routes(node: &Node) -> Option<(SocketAddr, SocketAddr)> {
    let log = node.log();
    let line = log
        .lines()
        .find(|line| line.contains("serving rate limits"))?;
    let address = |field: &str| {
        let (_, value) = line.split_once(field)?;
        let value = value.trim_start_matches(['"', ':', '=']);
        let is_over = |c: char| !(c.is_ascii_digit() || c == '.' || c == ':');
        let (value, _) = value.split_at(value.find(is_over).unwrap_or(value.len()));
        value.parse().ok()
    };
    Some((address("grpc")?, address("http")?))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rate_limit_service_responds_through_two_replacements() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("node/rate-limits");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("limits.yaml"), FILE).unwrap();
    let unused = SocketAddr::from(([127, 0, 0, 1], 9));
    let service = "[rate_limit_service]\ngrpc = \"127.0.0.1:0\"\nhttp = \"127.0.0.1:0\"\n\
                   config_dir = \"rate-limits\"\n";
    let mut node = node(&temp, &(config(unused, 10, "") + service)).await;
    let (grpc, http) = routes(&node).unwrap();
    let responses = Arc::new(Responses::default());
    let mut asking = start_clients(&responses, grpc, http);
    let mut newest: Option<Successor> = None;
    for times in 1..=2 {
        responses.go_on().await;
        let connected = responses.connected.load(Ordering::Relaxed);
        match &newest {
            None => node.replace(),
            Some(successor) => successor.signal(Signal::USR2),
        }
        eventually("there is a successor", async || {
            count(&node, SERVES) == times
        })
        .await;
        responses.go_on().await;
        let before = newest.replace(Successor::of(&node));
        match before {
            None => assert!(node.ends().await, "{}", node.log()),
            Some(before) => eventually("the one before ends", async || before.has_ended()).await,
        }
        eventually("each who stayed is sent to the successor", || {
            check_no_failure(&mut asking);
            let are_all = responses.connected.load(Ordering::Relaxed) >= connected + CALLERS;
            std::future::ready(are_all)
        })
        .await;
    }
    responses.go_on().await;
    check_no_failure(&mut asking);
    asking.abort_all();
    println!("responses: {:?}", responses.all());
    let last = newest.expect("it was replaced");
    last.signal(Signal::TERM);
    eventually("the last one ends", async || last.has_ended()).await;
}
