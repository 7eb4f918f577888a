//! An origin that records its requests, and responds as the last segment of the path says.
//!
//! | last segment | response |
//! | --- | --- |
//! | `echo` | the request's body, piece by piece, and its trailers |
//! | `sse` | what [`RecordingOrigin::emit`] sends, while the connection is open |
//! | `ws` | switches protocols, then echoes what it receives |
//! | `logout`, `cf-logout` | a command that ends the session |
//! | `cached` | a page that caches may keep |
//! | `error` | 500 |
//!
//! Anything else is a page. With `?held` it is sent once [`RecordingOrigin::release`] was called.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

type OriginBody = BoxBody<Bytes, hyper::Error>;

/// Running origin; stops when dropped.
pub(crate) struct RecordingOrigin {
    pub(crate) address: SocketAddr,
    memory: Arc<Memory>,
    accepting: JoinHandle<()>,
}

/// A request as it arrived, without its body.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) method: Method,
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) arrived_at: Instant,
}

#[derive(Default)]
struct Memory {
    heads: Mutex<Vec<Head>>,
    is_released: watch::Sender<bool>,
    listeners: Mutex<Vec<mpsc::UnboundedSender<Bytes>>>,
}

impl Head {
    /// Returns the only value of a header, or `None`; panics on two.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next().map(|it| it.to_str().unwrap().to_owned());
        assert!(values.next().is_none(), "{name} came twice: {self:?}");
        value
    }

    /// Returns a header that is a number.
    pub(crate) fn number(&self, name: &str) -> u64 {
        let value = self.header(name);
        value.unwrap_or_default().parse().expect("a number")
    }
}

impl RecordingOrigin {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let memory = Arc::new(Memory::default());
        let accepting = tokio::spawn(accept(listener, Arc::clone(&memory)));
        Self {
            address,
            memory,
            accepting,
        }
    }

    /// Returns all requests so far.
    pub(crate) fn heads(&self) -> Vec<Head> {
        self.memory.heads.lock().clone()
    }

    /// Returns the number of requests.
    pub(crate) fn count(&self) -> usize {
        self.memory.heads.lock().len()
    }

    /// Returns the newest request.
    pub(crate) fn last(&self) -> Head {
        self.heads().pop().expect("somebody came")
    }

    /// Responds to all held requests, and holds no more.
    pub(crate) fn release(&self) {
        self.memory.is_released.send_replace(true);
    }

    /// Sends a piece to every listener.
    pub(crate) fn emit(&self, piece: &str) {
        let piece = Bytes::copy_from_slice(piece.as_bytes());
        let mut listeners = self.memory.listeners.lock();
        listeners.retain(|listener| listener.send(piece.clone()).is_ok());
    }
}

impl Drop for RecordingOrigin {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, memory: Arc<Memory>) {
    while let Ok((stream, _)) = listener.accept().await {
        let memory = Arc::clone(&memory);
        let service = service_fn(move |request| handle(request, Arc::clone(&memory)));
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        tokio::spawn(connection.with_upgrades());
    }
}

async fn handle(
    request: Request<Incoming>,
    memory: Arc<Memory>,
) -> Result<Response<OriginBody>, Infallible> {
    memory.heads.lock().push(Head {
        method: request.method().clone(),
        target: request.uri().to_string(),
        headers: request.headers().clone(),
        arrived_at: Instant::now(),
    });
    if request.uri().query() == Some("held") {
        let mut released = memory.is_released.subscribe();
        let _ = released.wait_for(|is_released| *is_released).await;
    }
    let path = request.uri().path().to_owned();
    let mut response = Response::new(text(format!("the origin, at {path}")));
    let mut set = |name, value| {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    };
    match path.rsplit('/').next().unwrap_or_default() {
        "echo" => {
            if let Some(trailer) = request.headers().get("trailer") {
                response.headers_mut().insert("trailer", trailer.clone());
            }
            *response.body_mut() = request.into_body().boxed();
        }
        "sse" => {
            set("content-type", "text/event-stream");
            let (sender, listener) = mpsc::unbounded_channel();
            memory.listeners.lock().push(sender);
            *response.body_mut() = Pieces(listener).map_err(|never| match never {}).boxed();
        }
        "ws" => {
            set("connection", "upgrade");
            set("upgrade", "websocket");
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            *response.body_mut() = text(String::new());
            tokio::spawn(echo(request));
        }
        "logout" => set("anteroom-command", "revoke"),
        "cf-logout" => set("cf-waiting-room-command", "revoke"),
        "cached" => set("cache-control", "public, max-age=60"),
        "error" => *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR,
        _ => {}
    }
    Ok(response)
}

async fn echo(request: Request<Incoming>) {
    let stream = TokioIo::new(hyper::upgrade::on(request).await.unwrap());
    let (mut reader, mut writer) = tokio::io::split(stream);
    // The other side may close before everything is sent.
    let _ = tokio::io::copy(&mut reader, &mut writer).await;
}

fn text(text: String) -> OriginBody {
    let body = Full::new(Bytes::from(text));
    body.map_err(|never| match never {}).boxed()
}

/// Body of pieces that are sent as they come.
struct Pieces(mpsc::UnboundedReceiver<Bytes>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.0.poll_recv(context);
        piece.map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}
