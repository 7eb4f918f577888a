//! Comparison of two gateways that get the same bytes, one with the fast path and one without.
//!
//! Each case is a request with mutations, a second request behind it, and the response of the
//! origin, in pieces. What the origin sees and what the client gets must be the same either way:
//! each header, each byte of a body, and whether the body ended.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anteroom_testkit::wire::{Origin, Wire};
use parking_lot::Mutex;
use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};
use tokio::runtime::Runtime;

use crate::fast_path::MAPPED;
use crate::raw_http::support::{Gateway, Setup, gateway};

/// Request that follows each case on the same connection.
const NEXT: &str = "GET /next HTTP/1.1\r\nHost: next.example\r\n\r\n";
/// Number of cases of each property.
const CASES: u32 = 400;

/// Response of an origin: pieces, and whether it closes the connection after them.
#[derive(Clone, Debug, Default)]
struct Scripted {
    pieces: Vec<Vec<u8>>,
    closes: bool,
}

/// Origin that responds to the first request as a case says, and to others with 200.
struct Stage {
    seen: Arc<Mutex<Vec<String>>>,
    scripted: Arc<Mutex<Scripted>>,
    gateway: Gateway,
}

impl Stage {
    async fn start(fast_path: bool, trusts_peers: bool) -> Self {
        let origin = Origin::new().await;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let scripted = Arc::new(Mutex::new(Scripted::default()));
        let setup = Setup {
            fast_path,
            trusts_peers,
            ..Setup::default()
        };
        let gateway = gateway(setup, origin.address).await;
        let (kept, script) = (Arc::clone(&seen), Arc::clone(&scripted));
        tokio::spawn(async move {
            loop {
                let wire = origin.accept().await;
                tokio::spawn(serve(wire, Arc::clone(&kept), Arc::clone(&script)));
            }
        });
        Self {
            seen,
            scripted,
            gateway,
        }
    }

    /// Sends a request and [`NEXT`]. Returns what the origin saw, and what the client got.
    async fn run(&self, request: &[u8], response: &Scripted) -> (Vec<Message>, Transcript) {
        *self.scripted.lock() = response.clone();
        let mut client = Wire::connect(self.gateway.address).await;
        client.try_send(request).await;
        client.try_send(NEXT.as_bytes()).await;
        client.try_finish().await;
        let bytes = client.rest_bytes().await;
        let seen = std::mem::take(&mut *self.seen.lock());
        let seen = seen.iter().map(|head| Message::of_head(head)).collect();
        (seen, transcript(&bytes))
    }
}

async fn serve(mut wire: Wire, seen: Arc<Mutex<Vec<String>>>, scripted: Arc<Mutex<Scripted>>) {
    while let Some(head) = wire.try_read_until("\r\n\r\n").await {
        let is_next = head.contains(" /next ");
        // The body, as a message of its own.
        let message = Message::of_head(&head);
        let length = message.value("content-length");
        let length = length.and_then(|length| length.parse().ok());
        let body = match (message.value("transfer-encoding"), length) {
            (Some(_), _) => wire.try_read_until("0\r\n\r\n").await,
            (None, Some(length)) => wire.try_read(length).await,
            (None, None) => Some(String::new()),
        };
        // A request whose body breaks off may get here or not, and even after its case.
        let Some(body) = body else { return };
        seen.lock().extend([head, format!("body {body:?}\r\n\r\n")]);
        if is_next {
            // The next case begins on a new connection, so that no request is sent again.
            wire.send(
                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\nDate: now\r\n\r\nhi",
            )
            .await;
            return;
        }
        let Scripted { pieces, closes } = scripted.lock().clone();
        for piece in pieces {
            if !wire.try_send(&piece).await {
                return;
            }
            // Lets the gateway read each piece on its own; whether it does changes no result.
            tokio::task::yield_now().await;
        }
        if closes {
            return;
        }
    }
}

/// First line of a message, and its headers in alphabetical order.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Message {
    start: String,
    headers: Vec<(String, String)>,
}

impl Message {
    fn of_head(head: &str) -> Self {
        let mut lines = head.lines();
        let start = lines.next().unwrap_or_default().to_owned();
        let mut headers: Vec<_> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            // The gateway's own date differs by the second.
            .filter(|(name, _)| name != "date")
            .collect();
        headers.sort();
        Self { start, headers }
    }

    fn value(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Responses that a client got, each with its body.
type Transcript = Vec<(Message, Vec<u8>)>;

/// Reads all complete responses of a connection. How much a client gets of a response that breaks
/// off depends on what the gateway had read by then.
fn transcript(mut bytes: &[u8]) -> Transcript {
    let mut all = Transcript::new();
    while let Some(at) = find(bytes, b"\r\n\r\n") {
        let head = String::from_utf8_lossy(&bytes[..at + 4]).into_owned();
        bytes = &bytes[at + 4..];
        let message = Message::of_head(&head);
        let (body, has_ended, rest) = body_of(&message, bytes);
        bytes = rest;
        if has_ended {
            all.push((message, body));
        }
    }
    all
}

fn body_of<'a>(message: &Message, bytes: &'a [u8]) -> (Vec<u8>, bool, &'a [u8]) {
    if bytes.starts_with(b"HTTP/1.1 ") {
        // A response to HEAD, or one without a body: the next head follows at once.
        return (Vec::new(), true, bytes);
    }
    if let Some(length) = message.value("content-length") {
        let length: usize = length.parse().unwrap();
        let count = length.min(bytes.len());
        return (bytes[..count].to_vec(), count == length, &bytes[count..]);
    }
    if message.value("transfer-encoding").is_none() {
        return (Vec::new(), true, bytes);
    }
    let (mut data, mut rest) = (Vec::new(), bytes);
    while let Some(end) = find(rest, b"\r\n") {
        let size = String::from_utf8_lossy(&rest[..end]).into_owned();
        let size = usize::from_str_radix(&size, 16).unwrap();
        rest = &rest[end + 2..];
        let count = size.min(rest.len());
        data.extend_from_slice(&rest[..count]);
        rest = rest.get(count + 2..).unwrap_or_default();
        if size == 0 {
            return (data, true, rest);
        }
    }
    (data, false, &[])
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

/// Two gateways, and the runtime that runs them.
struct Pair {
    runtime: Runtime,
    fast: Stage,
    usual: Stage,
}

impl Pair {
    fn start(trusts_peers: bool) -> Self {
        let runtime = Runtime::new().unwrap();
        let fast = runtime.block_on(Stage::start(true, trusts_peers));
        let usual = runtime.block_on(Stage::start(false, trusts_peers));
        Self {
            runtime,
            fast,
            usual,
        }
    }

    /// Compares both gateways in one case.
    fn compare(&self, request: &[u8], response: &Scripted) -> Result<(), TestCaseError> {
        let run = async {
            let both = async {
                tokio::join!(
                    self.fast.run(request, response),
                    self.usual.run(request, response)
                )
            };
            tokio::time::timeout(Duration::from_secs(30), both).await
        };
        let shown = String::from_utf8_lossy(request).into_owned();
        let (fast, usual) = self
            .runtime
            .block_on(run)
            .map_err(|_| TestCaseError::fail(format!("no end: {shown:?} {response:?}")))?;
        prop_assert_eq!(&fast.0, &usual.0, "seen by the origin: {:?}", shown);
        prop_assert_eq!(
            &fast.1,
            &usual.1,
            "got by the client: {:?} {:?}",
            shown,
            response
        );
        Ok(())
    }
}

fn run_cases<S: Strategy>(strategy: S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let cases = Cases {
        cases: CASES,
        failure_persistence: None,
        // Requests of a case that failed may reach the origin in a later one: a smaller case would
        // show those instead.
        max_shrink_iters: 0,
        ..Cases::default()
    };
    if let Err(error) = TestRunner::new(cases).run(&strategy, test) {
        panic!("{error}");
    }
}

/// Lines of requests: such that many are plain, and some are not.
const LINES: &[&str] = &[
    "Accept: text/html",
    "accept-language: de;q=0.5",
    "User-Agent: test",
    "Cookie: a=1; __anteroom_shop=ticket; b=2",
    "Cookie: __anteroom_shop=ticket",
    "cookie: c=3",
    "X-Forwarded-For: 203.0.113.9",
    "x-forwarded-for: 198.51.100.4, 127.0.0.1",
    "X-Forwarded-Proto: https",
    "X-Forwarded-Host: front.example",
    "Forwarded: for=203.0.113.9",
    "X-Real-IP: 203.0.113.9",
    "x_forwarded_for: 203.0.113.9",
    "Anteroom-Visitor: 1",
    "anteroom_visitor: 1",
    "Anteroom-Loop: 0123456789abcdef",
    "Via: 1.1 other",
    "Connection: keep-alive",
    "Connection: close",
    "Connection: close, x-gone",
    "Connection: x-gone",
    "X-Gone: 1",
    "Keep-Alive: timeout=5",
    "TE: trailers",
    "Proxy-Connection: keep-alive",
    "Proxy: http://evil.example",
    "Upgrade-Insecure-Requests: 1",
    "Sec-Fetch-Mode: navigate",
    "If-None-Match: \"a\"",
    "Range: bytes=0-5",
    "Content-Length: 0",
    "content_length: 5",
    "X-Empty:",
    "X-Tab:\ta\tb",
    "X-Bytes: \u{e4}\u{20ac}",
    "Host: other.example",
];

const STARTS: &[&str] = &[
    "GET / HTTP/1.1",
    "GET /a/b?c=d&e[]=f HTTP/1.1",
    "HEAD /a HTTP/1.1",
    "GET /%2e%2e/a HTTP/1.1",
    "GET /a;b=c HTTP/1.1",
    "GET /?<a>\"b\" HTTP/1.1",
    "GET /a{b} HTTP/1.1",
    "GET //a HTTP/1.1",
    "POST /form HTTP/1.1",
    "PUT /a HTTP/1.1",
    "DELETE /a HTTP/1.1",
    "OPTIONS * HTTP/1.1",
    "GET http://shop.example/a HTTP/1.1",
    "GET / HTTP/1.0",
    "get / HTTP/1.1",
];

/// Lines about a body, and what follows the head.
const BODIES: &[(&str, &str)] = &[
    ("", ""),
    ("", ""),
    ("Content-Length: 5\r\n", "hello"),
    ("content-length: 26\r\n", "GET /a HTTP/1.1\r\nHost: a\r\n"),
    ("Content-Length: 0\r\n", ""),
    ("Content-Length: 05\r\n", "hello"),
    ("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"),
    ("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"),
];

/// Small changes of a head: what is put in, and where, in parts of its length.
const CHANGES: &[&str] = &[
    "\t", " ", "\r", "\n", "\r\n", "\0", ":", "+", ",", "\r\n ", "\x7f", "#", "%", "\u{e4}", "a",
];

fn requests() -> impl Strategy<Value = Vec<u8>> {
    let start = prop::sample::select(STARTS);
    let lines = prop::collection::vec(prop::sample::select(LINES), 0..6);
    let change = (prop::sample::select(CHANGES), 0_usize..1_000);
    let changes = prop::collection::vec(change, 0..3);
    // Half of all requests are well-formed.
    let changes = prop_oneof![Just(Vec::new()), changes];
    let body = prop::sample::select(BODIES);
    (start, lines, body, changes).prop_map(|(start, lines, body, changes)| {
        let mut head = format!("{start}\r\nHost: shop.example\r\n");
        for line in lines {
            head.push_str(line);
            head.push_str("\r\n");
        }
        let (line, body) = body;
        head.push_str(line);
        head.push_str("\r\n");
        head.push_str(body);
        let mut bytes = head.into_bytes();
        for (text, at) in changes {
            let at = at % bytes.len();
            bytes.splice(at..at, text.bytes());
        }
        bytes
    })
}

/// Heads of responses, with the body that follows.
const RESPONSES: &[(&str, &str)] = &[
    ("200 OK|Content-Length: 5", "hello"),
    ("200 OK|Content-Length: 5, 5", "hello"),
    ("200 OK|Content-Length: 5|Content-Length: 5", "hello"),
    ("200 OK|Content-Length: 5|Content-Length: 6", "hello!"),
    ("200 OK|Content-Length: +5", "hello"),
    ("200 OK|Content-Length: 5", "hel"),
    ("200 OK|Content-Length: 0", ""),
    ("404 Not Here|Content-Length: 5", "hello"),
    ("200 |Content-Length: 5", "hello"),
    ("599 Odd|Content-Length: 5", "hello"),
    ("600 Odder|Content-Length: 5", "hello"),
    ("204 No Content", ""),
    ("304 Not Modified|Content-Length: 5", ""),
    ("200 OK|Transfer-Encoding: chunked", "5|hello|0||"),
    (
        "200 OK|Transfer-Encoding: chunked",
        "2;x=y|he|3|llo|0|T: 1||",
    ),
    ("200 OK|Transfer-Encoding: chunked", "5|hel"),
    ("200 OK|Transfer-Encoding: chunked", "x|hello|0||"),
    (
        "200 OK|Transfer-Encoding: chunked|Content-Length: 3",
        "5|hello|0||",
    ),
    ("200 OK|Transfer-Encoding: gzip", "hello"),
    ("200 OK|Transfer-Encoding: gzip, chunked", "5|hello|0||"),
    ("200 OK", "until the end"),
    ("200 OK|Connection: close|Content-Length: 5", "hello"),
    (
        "200 OK|Connection: x-gone|X-Gone: 1|Content-Length: 5",
        "hello",
    ),
    ("200 OK|Keep-Alive: timeout=5|Content-Length: 5", "hello"),
    (
        "200 OK|Set-Cookie: a=1|Set-Cookie: __anteroom_shop=1|Content-Length: 5",
        "hello",
    ),
    (
        "200 OK|Set-Cookie: a=1|Set-Cookie: b=2|Content-Length: 5",
        "hello",
    ),
    ("200 OK|Upgrade: h2|Content-Length: 5", "hello"),
    ("200 OK|Proxy-Authenticate: x|Content-Length: 5", "hello"),
    ("101 Switching Protocols|Upgrade: x|Connection: upgrade", ""),
    (
        "103 Early Hints|Link: a||HTTP/1.1 200 OK|Content-Length: 5",
        "hello",
    ),
    ("100 Continue||HTTP/1.1 200 OK|Content-Length: 5", "hello"),
    ("200 OK|X-Empty:|X-Tab: a\tb|Content-Length: 5", "hello"),
    ("200 OK|no colon|Content-Length: 5", "hello"),
    ("200 OK| folded: 1|Content-Length: 5", "hello"),
    ("200 OK|Content-Length : 5", "hello"),
    ("abc OK|Content-Length: 5", "hello"),
];

fn responses() -> impl Strategy<Value = (Scripted, bool)> {
    let message = prop::sample::select(RESPONSES);
    let cuts = prop::collection::vec(1_usize..60, 0..4);
    (message, cuts, any::<bool>(), any::<bool>()).prop_map(
        |((head, body), cuts, is_old, is_head)| {
            let version = if is_old { "HTTP/1.0" } else { "HTTP/1.1" };
            // A body where none is allowed may or may not be there when the next request is sent.
            let body = if is_head { "" } else { body };
            let text = format!("{version} {head}|Date: now||{body}").replace('|', "\r\n");
            let mut rest = text.into_bytes();
            let mut pieces = Vec::new();
            for cut in cuts {
                if cut >= rest.len() {
                    break;
                }
                let later = rest.split_off(cut);
                pieces.push(std::mem::replace(&mut rest, later));
            }
            pieces.push(rest);
            // What follows is clear only if the origin closes.
            let scripted = Scripted {
                pieces,
                closes: true,
            };
            (scripted, is_head)
        },
    )
}

#[test]
fn both_paths_read_requests_alike() {
    compare_requests(false);
}

/// Compares what such a proxy says about the client, which is continued.
#[test]
fn both_paths_read_requests_of_a_trusted_proxy_alike() {
    compare_requests(true);
}

fn compare_requests(are_trusted: bool) {
    let pair = Pair::start(are_trusted);
    let plain = Scripted {
        pieces: vec![b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nDate: now\r\n\r\nok".to_vec()],
        closes: false,
    };
    run_cases(requests(), |request| pair.compare(&request, &plain));
}

#[test]
fn both_paths_read_responses_alike() {
    let pair = Pair::start(false);
    let cases = (responses(), prop::sample::select(&["/a", MAPPED]));
    run_cases(cases, |((response, is_head), path)| {
        let method = if is_head { "HEAD" } else { "GET" };
        let request = format!("{method} {path} HTTP/1.1\r\nHost: shop.example\r\n\r\n");
        pair.compare(request.as_bytes(), &response)
    });
}

/// The list of a plain gateway's requests, to see that the fast path is taken at all.
#[test]
fn a_plain_request_keeps_its_case_only_on_the_fast_path() {
    let pair = Pair::start(false);
    let request = b"GET / HTTP/1.1\r\nHost: a\r\nX-Case: 1\r\n\r\n";
    let plain = Scripted {
        pieces: vec![b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()],
        closes: false,
    };
    let cases = HashMap::from([(true, "X-Case"), (false, "x-case")]);
    for (is_fast, expected) in cases {
        let stage = if is_fast { &pair.fast } else { &pair.usual };
        *stage.scripted.lock() = plain.clone();
        let head = pair.runtime.block_on(async {
            let mut client = Wire::connect(stage.gateway.address).await;
            client.try_send(request).await;
            client.head().await;
            stage.seen.lock().remove(0)
        });
        assert!(head.contains(expected), "{head}");
    }
}
