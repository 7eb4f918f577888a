//! An origin with two small pages, a form and a single-page shop. It records requests and counts
//! visitors with the checker.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anteroom::demo::checker::{Checker, OriginRequest, Verdict};
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

/// Running shop; stops when dropped.
pub(super) struct Shop {
    pub(super) address: SocketAddr,
    state: Arc<Mutex<State>>,
    accepting: JoinHandle<()>,
}

/// A request to the shop.
#[derive(Clone, Debug)]
pub(super) struct ShopRequest {
    pub(super) method: Method,
    pub(super) target: String,
    pub(super) body: String,
    pub(super) is_browser: bool,
    pub(super) sighting: Option<OriginRequest>,
}

struct State {
    is_closed: bool,
    checker: Checker,
    requests: Vec<ShopRequest>,
}

impl Shop {
    pub(super) async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State {
            is_closed: false,
            checker: Checker::new(DurationMs::from_secs(1)),
            requests: Vec::new(),
        }));
        let accepting = tokio::spawn(accept(listener, Arc::clone(&state)));
        Self {
            address,
            state,
            accepting,
        }
    }

    /// Closes or reopens the shop. A closed one closes connections without a response.
    pub(super) fn set_closed(&self, is_closed: bool) {
        self.state.lock().is_closed = is_closed;
    }

    /// Returns the requests of the browser, in order.
    pub(super) fn requests_of_browser(&self) -> Vec<ShopRequest> {
        let requests = self.state.lock().requests.clone();
        requests.into_iter().filter(|r| r.is_browser).collect()
    }

    /// Returns the counts of the checker.
    pub(super) fn verdict(&self, total: u32) -> Verdict {
        let limits = Limits {
            total_active_users: total,
            new_users_per_minute: u32::MAX,
        };
        self.state.lock().checker.verdict(limits, now())
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, state: Arc<Mutex<State>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        let service = service_fn(move |request| handle(request, Arc::clone(&state)));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn handle(
    request: Request<Incoming>,
    state: Arc<Mutex<State>>,
) -> io::Result<Response<Full<Bytes>>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let agent = head.headers.get("user-agent").map(HeaderValue::as_bytes);
    let shop_request = ShopRequest {
        is_browser: agent.is_some_and(|agent| agent.starts_with(b"Mozilla/")),
        sighting: OriginRequest::from_headers(&head.headers, ROOM),
        body: String::from_utf8_lossy(&body).into_owned(),
        target: head.uri.to_string(),
        method: head.method,
    };
    let is_log_out = shop_request.target == "/logout";
    let is_worker = head.uri.path() == "/worker.js";
    let page = match (&shop_request.method, head.uri.path()) {
        (&Method::POST, "/order") => page("Thank you", ""),
        (_, "/app") => single_page::app(),
        (_, "/worker.js") => single_page::WORKER.to_owned(),
        _ => page("The shop", FORM),
    };
    note(shop_request, is_log_out, &state)?;
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

/// Records the request, unless the shop is closed.
fn note(shop_request: ShopRequest, is_log_out: bool, state: &Mutex<State>) -> io::Result<()> {
    let mut state = state.lock();
    if state.is_closed {
        return Err(io::Error::other("the shop is closed"));
    }
    let now = now();
    match &shop_request.sighting {
        Some(sighting) => state.checker.observe(sighting, None, now),
        None => state.checker.observe_without_headers(now),
    }
    if let Some(sighting) = shop_request.sighting.filter(|_| is_log_out) {
        // Before the response is sent: the gateway may grant the seat to another as soon as it has
        // it.
        state.checker.revoke(sighting.visitor, now);
    }
    state.requests.push(shop_request);
    Ok(())
}

const FORM: &str = "<form method=\"post\" action=\"/order\">\
                    <input name=\"item\" value=\"lamp\"><button>Order</button></form>";

/// Returns a page without an icon, because every request extends a session.
pub(super) fn page(heading: &str, content: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <link rel=\"icon\" href=\"data:,\"><title>{heading}</title></head>\
         <body><h1 id=\"shop\">{heading}</h1>{content}</body></html>"
    )
}

#[expect(
    clippy::disallowed_methods,
    reason = "the checker needs the clock by which seats end"
)]
fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp(u64::try_from(since_epoch.as_millis()).unwrap())
}
