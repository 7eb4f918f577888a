//! Tests of whole connections on real sockets, with a trivial handler.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail the test, like the tests themselves"
)]

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::sync::Arc;

use anteroom_config::Config;
use anteroom_proxy::downstream::connection_table::ConnectionTable;
use anteroom_proxy::downstream::drain::{DrainTrigger, drain};
use anteroom_proxy::downstream::listener::listen;
use anteroom_proxy::downstream::observer::Unobserved;
use anteroom_proxy::downstream::server::Server;
use anteroom_proxy::downstream::{Arrival, Handler};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// Handler that responds with "hello".
#[derive(Clone)]
struct Hello;

impl Handler for Hello {
    type Body = Full<Bytes>;
    type Decider = anteroom_proxy::fast_path::Never;
    type Future = Ready<Result<Response<Self::Body>, Infallible>>;

    fn handle(&self, arrival: &Arrival, _: Request<anteroom_proxy::body::Body>) -> Self::Future {
        assert!(!arrival.is_encrypted && arrival.peer.ip().is_loopback());
        ready(Ok(Response::new(Full::from("hello"))))
    }
}

struct Running {
    address: SocketAddr,
    trigger: DrainTrigger,
    ended: JoinHandle<()>,
}

/// Starts a server with more lines of `[server]`.
fn start(more: &str) -> Running {
    let text = format!("[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n{more}\n");
    let config = Config::parse("test.toml", &(text + ROOM))
        .unwrap()
        .config
        .server;
    let listener = listen(config.listen, false).unwrap();
    let address = listener.local_addr().unwrap();
    let (trigger, signal) = drain();
    let server = Server::new(
        &config.timeouts,
        &config.size_limits,
        ConnectionTable::with_limit(10),
        Arc::new(Unobserved),
    );
    let ended = tokio::spawn(server.serve(listener, Hello, signal));
    Running {
        address,
        trigger,
        ended,
    }
}

const ROOM: &str = "[[room]]\nname = \"shop\"\norigin = \"http://127.0.0.1:3000\"\n\
    total_active_users = 200\nnew_users_per_minute = 200\nbypass = []\n";

/// Sends a request and reads the response, in lower case.
async fn get(stream: &mut TcpStream) -> String {
    stream.write_all(GET).await.unwrap();
    let mut response = String::new();
    while !response.ends_with("\r\n\r\nhello") {
        let mut bytes = [0; 1000];
        let read = stream.read(&mut bytes).await.unwrap();
        assert!(read > 0, "{response}");
        response += std::str::from_utf8(&bytes[..read]).unwrap();
    }
    response.to_lowercase()
}

async fn has_ended(stream: &mut TcpStream) -> bool {
    matches!(stream.read(&mut [0; 10]).await, Ok(0))
}

#[tokio::test]
async fn the_last_response_of_a_connection_closes_it() {
    let running = start("[server.size_limits]\nrequests_per_connection = 3");
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    for _ in 0..2 {
        assert!(!get(&mut stream).await.contains("connection: close"));
    }
    assert!(get(&mut stream).await.contains("connection: close"));
    assert!(has_ended(&mut stream).await);
}

#[tokio::test]
async fn an_idle_connection_ends() {
    let running = start("[server.timeouts]\nkeep_alive = \"100ms\"");
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    get(&mut stream).await;
    assert!(has_ended(&mut stream).await);
}

#[tokio::test]
async fn a_leaving_node_serves_one_more_request_per_connection() {
    let running = start("");
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(running.address).await.unwrap();
        assert!(!get(&mut stream).await.contains("connection: close"));
        streams.push(stream);
    }
    running.trigger.leave();
    while TcpStream::connect(running.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let mut idle = streams.pop().unwrap();
    for stream in &mut streams {
        assert!(get(stream).await.contains("connection: close"));
        assert!(has_ended(stream).await);
    }
    assert!(
        !running.ended.is_finished(),
        "one client could still send a request"
    );
    running.trigger.start();
    assert!(has_ended(&mut idle).await);
    running.ended.await.unwrap();
}
