//! An origin of two small pages with a form and a single-page shop, which writes down who came and
//! lets a judge count.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anteroom::demo::judge::{Checker, OriginRequest, Verdict};
use anteroom_room::rules::Limits;
use anteroom_room::time::{DurationMs, Timestamp};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::{ROOM, single_page};

/// A running shop; gone when dropped.
pub(super) struct Shop {
    pub(super) address: SocketAddr,
    book: Arc<Mutex<Book>>,
    accepting: JoinHandle<()>,
}

/// Somebody asked for something.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) target: String,
    pub(super) body: String,
    pub(super) is_browser: bool,
    pub(super) sighting: Option<OriginRequest>,
}

struct Book {
    is_closed: bool,
    judge: Checker,
    calls: Vec<Call>,
}

impl Shop {
    pub(super) async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let book = Arc::new(Mutex::new(Book {
            is_closed: false,
            judge: Checker::new(DurationMs::from_secs(1)),
            calls: Vec::new(),
        }));
        let accepting = tokio::spawn(accept(listener, Arc::clone(&book)));
        Self {
            address,
            book,
            accepting,
        }
    }

    /// From now on connections are cut without a word, or answered again.
    pub(super) fn set_closed(&self, is_closed: bool) {
        self.book.lock().is_closed = is_closed;
    }

    /// What the browser asked for, in order.
    pub(super) fn calls_of_browser(&self) -> Vec<Call> {
        let calls = self.book.lock().calls.clone();
        calls.into_iter().filter(|call| call.is_browser).collect()
    }

    /// What the judge counted.
    pub(super) fn verdict(&self, total: u32) -> Verdict {
        let limits = Limits {
            total_active_users: total,
            new_users_per_minute: u32::MAX,
        };
        self.book.lock().judge.verdict(limits, now())
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, book: Arc<Mutex<Book>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let book = Arc::clone(&book);
        let service = service_fn(move |request| answer(request, Arc::clone(&book)));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn answer(
    request: Request<Incoming>,
    book: Arc<Mutex<Book>>,
) -> io::Result<Response<Full<Bytes>>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let agent = head.headers.get("user-agent").map(HeaderValue::as_bytes);
    let call = Call {
        is_browser: agent.is_some_and(|agent| agent.starts_with(b"Mozilla/")),
        sighting: OriginRequest::from_headers(&head.headers, ROOM),
        body: String::from_utf8_lossy(&body).into_owned(),
        target: head.uri.to_string(),
        method: head.method,
    };
    let is_log_out = call.target == "/logout";
    let is_worker = head.uri.path() == "/worker.js";
    let page = match (&call.method, head.uri.path()) {
        (&Method::POST, "/order") => page("Thank you", ""),
        (_, "/app") => single_page::app(),
        (_, "/worker.js") => single_page::WORKER.to_owned(),
        _ => page("The shop", FORM),
    };
    note(call, is_log_out, &book)?;
    let mut response = Response::new(Full::from(page));
    *response.status_mut() = StatusCode::OK;
    let mut set = |name, value| {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    };
    if is_worker {
        set("content-type", "text/javascript");
    } else {
        set("content-type", "text/html; charset=utf-8");
    }
    set("cache-control", "no-store");
    if is_log_out {
        set("anteroom-command", "revoke");
    }
    Ok(response)
}

/// Writes the call down, unless the shop is closed.
fn note(call: Call, is_log_out: bool, book: &Mutex<Book>) -> io::Result<()> {
    let mut book = book.lock();
    if book.is_closed {
        return Err(io::Error::other("the shop is closed"));
    }
    let now = now();
    match &call.sighting {
        Some(sighting) => book.judge.observe(sighting, now),
        None => book.judge.observe_unjudged(now),
    }
    if let Some(sighting) = call.sighting.filter(|_| is_log_out) {
        // Before the answer leaves: the gateway may give the seat away as soon as it has it.
        book.judge.revoke(sighting.visitor, now);
    }
    book.calls.push(call);
    Ok(())
}

const FORM: &str = "<form method=\"post\" action=\"/order\">\
                    <input name=\"item\" value=\"lamp\"><button>Order</button></form>";

/// Without an icon to fetch: each request prolongs a session.
pub(super) fn page(heading: &str, content: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <link rel=\"icon\" href=\"data:,\"><title>{heading}</title></head>\
         <body><h1 id=\"shop\">{heading}</h1>{content}</body></html>"
    )
}

#[expect(
    clippy::disallowed_methods,
    reason = "a judge needs the clock by which seats end"
)]
fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp(u64::try_from(since_epoch.as_millis()).unwrap())
}
