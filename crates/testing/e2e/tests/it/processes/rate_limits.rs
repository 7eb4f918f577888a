//! Envoy's rate limit service answers all the time while the process that serves it is replaced.

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
/// The same question in JSON and as a message of gRPC: domain `d`, one descriptor, `k` is `v`.
const JSON: &str = r#"{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}"#;
const MESSAGE: &[u8] = b"\0\0\0\0\x0d\x0a\x01d\x12\x08\x0a\x06\x0a\x01k\x12\x01v";
const PATH: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
/// Of each kind: so many that some wait in the kernel at every moment.
const CALLERS: usize = 8;

type Fault = Box<dyn std::error::Error + Send + Sync>;

/// Asks once, on a connection of its own.
async fn ask_in_json(door: SocketAddr) -> Result<(), Fault> {
    let mut stream = TcpStream::connect(door).await?;
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

async fn connect(door: SocketAddr) -> Result<Connection, Fault> {
    let stream = TokioIo::new(TcpStream::connect(door).await?);
    let (connection, driver) = http2::handshake(TokioExecutor::new(), stream).await?;
    tokio::spawn(driver);
    Ok(connection)
}

/// Asks once. `false` if the server said before the question was sent that it takes no more on this
/// connection.
async fn ask_on(connection: &mut Connection, door: SocketAddr) -> Result<bool, Fault> {
    let request = Request::post(format!("http://{door}{PATH}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::from(MESSAGE))?;
    let response = match connection.send_request(request).await {
        Err(fault) if is_taken_elsewhere(&fault) => return Ok(false),
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

/// Was nothing asked, since the server had said without an error that it is about to go? Between a
/// client's look at its connection and its question there is always time for those words to arrive.
/// What the server has not seen then is never answered (RFC 9113, 6.8), and a client asks on
/// another connection.
fn is_taken_elsewhere(fault: &hyper::Error) -> bool {
    let reason = fault.source().and_then(|source| source.downcast_ref());
    let is_told = reason.is_some_and(|reason: &h2::Error| {
        reason.is_go_away() && reason.is_remote() && reason.reason() == Some(h2::Reason::NO_ERROR)
    });
    // Cancelled is what never left the client's own queue.
    is_told || fault.is_canceled()
}

/// Asks by gRPC, on a connection of its own.
async fn ask_in_grpc(door: SocketAddr) -> Result<(), Fault> {
    // Who is about to go accepts nobody any more: the second connection is the successor's.
    for _ in 0..2 {
        if ask_on(&mut connect(door).await?, door).await? {
            return Ok(());
        }
    }
    Err("sent elsewhere twice".into())
}

/// Keeps its connection until that ends, as Envoy does. Returns how often it had to connect.
async fn ask_and_stay(
    connection: &mut Option<Connection>,
    door: SocketAddr,
) -> Result<usize, Fault> {
    let mut times = 0;
    loop {
        let there = match connection {
            Some(there) => there,
            None => {
                times += 1;
                connection.insert(connect(door).await?)
            }
        };
        // Whoever was told that it ends asks elsewhere.
        if there.ready().await.is_ok() && ask_on(there, door).await? {
            return Ok(times);
        }
        if times == 2 {
            return Err("sent elsewhere twice".into());
        }
        *connection = None;
    }
}

/// All who ask, for ever; how often each kind was answered, and how often those who stay connected.
#[derive(Default)]
struct Asked {
    json: AtomicUsize,
    grpc: AtomicUsize,
    stayed: AtomicUsize,
    connected: AtomicUsize,
}

impl Asked {
    fn all(&self) -> [usize; 3] {
        [&self.json, &self.grpc, &self.stayed].map(|count| count.load(Ordering::Relaxed))
    }

    /// Waits until each kind was answered again, many times.
    async fn go_on(&self) {
        let before = self.all();
        eventually("all are answered", async || {
            let now = self.all();
            now.iter()
                .zip(before)
                .all(|(now, before)| *now >= before + 50)
        })
        .await;
    }
}

/// Begins to ask; each task says what went wrong, if something did.
fn ask_all(asked: &Arc<Asked>, grpc: SocketAddr, http: SocketAddr) -> JoinSet<Fault> {
    let mut asking = JoinSet::new();
    for _ in 0..CALLERS {
        let (here, there, stay) = (Arc::clone(asked), Arc::clone(asked), Arc::clone(asked));
        asking.spawn(async move {
            loop {
                if let Err(fault) = ask_in_json(http).await {
                    return format!("JSON: {fault}").into();
                }
                here.json.fetch_add(1, Ordering::Relaxed);
            }
        });
        asking.spawn(async move {
            loop {
                if let Err(fault) = ask_in_grpc(grpc).await {
                    return format!("gRPC: {fault:?}").into();
                }
                there.grpc.fetch_add(1, Ordering::Relaxed);
            }
        });
        asking.spawn(async move {
            let mut connection = None;
            loop {
                match ask_and_stay(&mut connection, grpc).await {
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
/// If one of those who ask has ended, with what went wrong.
fn nobody_failed(asking: &mut JoinSet<Fault>) {
    if let Some(fault) = asking.try_join_next() {
        panic!("{}", fault.unwrap());
    }
}

/// Where the service listens, by the log: gRPC and JSON.
fn doors(node: &Node) -> Option<(SocketAddr, SocketAddr)> {
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
async fn replaced_twice_the_rate_limit_service_answers_all_the_time() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("node/rate-limits");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("limits.yaml"), FILE).unwrap();
    let nobody = SocketAddr::from(([127, 0, 0, 1], 9));
    let service = "[rate_limit_service]\ngrpc = \"127.0.0.1:0\"\nhttp = \"127.0.0.1:0\"\n\
                   config_dir = \"rate-limits\"\n";
    let mut node = node(&temp, &(config(nobody, 10, "") + service)).await;
    let (grpc, http) = doors(&node).unwrap();
    let asked = Arc::new(Asked::default());
    let mut asking = ask_all(&asked, grpc, http);
    let mut newest: Option<Successor> = None;
    for times in 1..=2 {
        asked.go_on().await;
        let connected = asked.connected.load(Ordering::Relaxed);
        match &newest {
            None => node.replace(),
            Some(successor) => successor.signal(Signal::USR2),
        }
        eventually("there is a successor", async || {
            count(&node, SERVES) == times
        })
        .await;
        asked.go_on().await;
        let before = newest.replace(Successor::of(&node));
        match before {
            None => assert!(node.ends().await, "{}", node.log()),
            Some(before) => eventually("the one before ends", async || before.has_ended()).await,
        }
        eventually("each who stayed is sent to the successor", || {
            nobody_failed(&mut asking);
            let are_all = asked.connected.load(Ordering::Relaxed) >= connected + CALLERS;
            std::future::ready(are_all)
        })
        .await;
    }
    asked.go_on().await;
    nobody_failed(&mut asking);
    asking.abort_all();
    println!("answered: {:?}", asked.all());
    let last = newest.expect("it was replaced");
    last.signal(Signal::TERM);
    eventually("the last one ends", async || last.has_ended()).await;
}
