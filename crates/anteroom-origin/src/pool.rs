//! All connections to one origin, and a request sent over one of them.
//!
//! It knows what no pool that hides its connections tells: whether a connection was used before, and that
//! nothing of a request was sent; the request comes back then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HOST, TE};
use http::uri::{Authority, PathAndQuery};
use http::{HeaderValue, Request, Response, Uri, Version};
use hyper::body::Incoming;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::connect::{ConnectError, Connected, Either, Target};
use crate::failure::{self, Failure};
use crate::http1::{self, Connection, Idle};
use crate::http2::{self, Line, Lines};
use crate::lease::Lease;

/// A body that can be sent to an origin; its default is none.
pub trait RequestBody:
    http_body::Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
    + Default
    + Send
    + Unpin
    + 'static
{
}

impl<T> RequestBody for T where
    T: http_body::Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
        + Default
        + Send
        + Unpin
        + 'static
{
}

/// What connections to origins may cost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// For a connection, TLS included.
    pub connect: Duration,
    /// How long a connection is kept that nobody uses.
    pub idle: Duration,
    /// Bytes of the head of an answer.
    pub head_bytes: usize,
    /// Headers of an answer.
    pub headers: usize,
}

/// The connections to one origin.
#[derive(Debug)]
pub(crate) struct Pool<B> {
    target: Target,
    limits: Limits,
    idle: Arc<Idle<B>>,
    lines: Lines<B>,
    /// Held while a connection is made that others may share.
    connecting: Mutex<()>,
    /// Whether the origin has chosen HTTP/1.1 where it had a choice.
    prefers_http1: AtomicBool,
}

/// How a request is to be sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct How {
    /// It may leave HTTP, which HTTP/2 does in another way.
    pub(crate) needs_http1: bool,
    /// Not over a connection that was used before; only over one that was made after this moment.
    pub(crate) fresh_since: Option<Instant>,
    /// It has no body and may be sent twice: a copy is to be kept.
    pub(crate) is_repeatable: bool,
}

/// An answer, and what is held of its connection.
pub(crate) struct Sent {
    pub(crate) response: Response<Incoming>,
    pub(crate) held: Lease,
}

/// No answer.
pub(crate) struct NotSent<B> {
    pub(crate) failure: Failure,
    pub(crate) again: Option<Again<B>>,
}

/// What may be sent again.
pub(crate) enum Again<B> {
    /// Nothing of it was sent.
    Unsent(Request<B>),
    /// It may be sent twice, and met a connection that was just being closed.
    Copy(Request<B>),
}

/// A connection that takes a request.
enum Taken<B> {
    Http1(Connection<B>, bool),
    Http2(Line<B>),
}

impl<B> Taken<B> {
    fn was_used(&self) -> bool {
        match self {
            Self::Http1(_, was_used) => *was_used,
            Self::Http2(line) => line.has_answered(),
        }
    }
}

impl<B: RequestBody> Pool<B> {
    pub(crate) fn new(target: Target, limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            target,
            limits,
            idle: Idle::new(limits.idle),
            lines: Lines::new(),
            connecting: Mutex::new(()),
            prefers_http1: AtomicBool::new(false),
        })
    }

    pub(crate) const fn may_speak_http2(&self) -> bool {
        self.target.may_speak_http2()
    }

    /// Sends a request with a path as its target and a `Host`, and waits for the head of its answer.
    pub(crate) async fn send(
        &self,
        mut request: Request<B>,
        mut how: How,
    ) -> Result<Sent, Box<NotSent<B>>> {
        loop {
            let began = Instant::now();
            let taken = match self.take(how).await {
                Ok(taken) => taken,
                Err(error) => {
                    return Err(Box::new(NotSent {
                        failure: Failure::Connect(error),
                        again: Some(Again::Unsent(request)),
                    }));
                }
            };
            let was_used = taken.was_used();
            let spare = (was_used && how.is_repeatable).then(|| copy(&request));
            let error = match self.send_over(taken, request).await {
                Ok(sent) if sent.response.headers().len() > self.limits.headers => {
                    return Err(Box::new(NotSent {
                        failure: Failure::TooLarge,
                        again: None,
                    }));
                }
                Ok(sent) => return Ok(sent),
                Err(error) => error,
            };
            let mut error = *error;
            let unsent = error.take_message();
            let error = error.into_error();
            let again = match (unsent, spare) {
                (Some(unsent), _) if was_used => {
                    // The connection had gone before the request came: another one. Each that was
                    // used before is taken once, so this ends; HTTP/2 goes on with a new one.
                    if unsent.version() == Version::HTTP_2 {
                        how.fresh_since.get_or_insert(began);
                    }
                    request = unsent;
                    continue;
                }
                (Some(unsent), _) => Some(Again::Unsent(unsent)),
                (None, Some(spare)) if failure::is_closing(&error) => Some(Again::Copy(spare)),
                _ => None,
            };
            return Err(Box::new(NotSent {
                failure: failure::of(error),
                again,
            }));
        }
    }

    /// Asks over a connection of its own; the body of the answer is not read.
    pub(crate) async fn ask(&self, request: Request<B>) -> Result<Response<Incoming>, Failure> {
        let connected = self.connect(false).await;
        let fresh = match connected.map_err(Failure::Connect)? {
            Fresh::Http1(connection) => Taken::Http1(connection, false),
            Fresh::Http2(sender) => Taken::Http2(Lines::new().put(sender)),
        };
        let sent = match fresh {
            Taken::Http1(mut connection, _) => connection.sender.send_request(request).await,
            Taken::Http2(mut line) => line.sender.send_request(self.as_http2(request)).await,
        };
        sent.map_err(failure::of)
    }

    async fn send_over(
        &self,
        taken: Taken<B>,
        request: Request<B>,
    ) -> Result<Sent, Box<hyper::client::conn::TrySendError<Request<B>>>> {
        match taken {
            Taken::Http1(mut connection, _) => {
                let request = as_http1(request);
                // Whoever stops waiting ends the connection, also while it waits to write.
                let held = Lease::of_task(connection.task.clone(), &connection.turn);
                let sent = connection.sender.try_send_request(request).await;
                let response = sent.map_err(Box::new)?;
                self.idle.keep_when_ready(connection);
                Ok(Sent { response, held })
            }
            Taken::Http2(mut line) => {
                let held = Lease::of_stream(line.hold());
                let request = self.as_http2(request);
                match line.sender.try_send_request(request).await {
                    Ok(response) => {
                        line.note_answer();
                        Ok(Sent { response, held })
                    }
                    Err(error) => {
                        if failure::is_closing(error.error()) {
                            self.lines.remove(&line);
                        }
                        Err(Box::new(error))
                    }
                }
            }
        }
    }

    async fn take(&self, how: How) -> Result<Taken<B>, ConnectError> {
        let may_share = !how.needs_http1 && self.target.may_speak_http2();
        if let Some(taken) = self.take_used(how, may_share) {
            return Ok(taken);
        }
        let is_shared = || may_share && !self.prefers_http1.load(Relaxed);
        let _alone = if is_shared() {
            let waited = timeout(self.limits.connect, self.connecting.lock()).await;
            let alone = waited.map_err(|_| self.timed_out())?;
            // Whoever was first may have made the connection that this one waited for.
            if let Some(taken) = self.take_used(how, may_share) {
                return Ok(taken);
            }
            is_shared().then_some(alone)
        } else {
            None
        };
        Ok(match self.connect(how.needs_http1).await? {
            Fresh::Http1(connection) => {
                // An upgrade says nothing of what the origin would rather speak.
                if may_share {
                    self.prefers_http1.store(true, Relaxed);
                }
                Taken::Http1(connection, false)
            }
            Fresh::Http2(sender) => {
                self.prefers_http1.store(false, Relaxed);
                Taken::Http2(self.lines.put(sender))
            }
        })
    }

    fn take_used(&self, how: How, may_share: bool) -> Option<Taken<B>> {
        let shared = if may_share {
            self.lines.take(how.fresh_since)
        } else {
            None
        };
        if how.fresh_since.is_some() {
            return shared.map(Taken::Http2);
        }
        shared
            .map(Taken::Http2)
            .or_else(|| Some(Taken::Http1(self.idle.take()?, true)))
    }

    async fn connect(&self, needs_http1: bool) -> Result<Fresh<B>, ConnectError> {
        let begun = async {
            let Connected { stream, is_http2 } = self.target.connect(needs_http1).await?;
            Ok(match (stream, is_http2) {
                (Either::Plain(stream), false) => {
                    Fresh::Http1(http1::begin(stream, &self.limits).await?)
                }
                (Either::Plain(stream), true) => {
                    Fresh::Http2(http2::begin(stream, &self.limits).await?)
                }
                (Either::Tls(stream), false) => {
                    Fresh::Http1(http1::begin(stream, &self.limits).await?)
                }
                (Either::Tls(stream), true) => {
                    Fresh::Http2(http2::begin(stream, &self.limits).await?)
                }
            })
        };
        let waited = timeout(self.limits.connect, begun).await;
        waited.unwrap_or_else(|_| Err(self.timed_out()))
    }

    const fn timed_out(&self) -> ConnectError {
        ConnectError::TimedOut {
            after: self.limits.connect,
        }
    }

    /// RFC 9113, section 8.3.1: what `Host` says is said by `:authority`; nothing concerns the
    /// connection alone.
    fn as_http2(&self, mut request: Request<B>) -> Request<B> {
        if request.version() == Version::HTTP_2 {
            return request;
        }
        let host = request.headers_mut().remove(HOST);
        request.headers_mut().remove(CONNECTION);
        let authority = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
        let mut parts = http::uri::Parts::default();
        parts.path_and_query = Some(target_of(&request));
        parts.scheme = Some(self.target.scheme());
        parts.authority = authority;
        if let Ok(uri) = Uri::from_parts(parts) {
            *request.uri_mut() = uri;
        }
        *request.version_mut() = Version::HTTP_2;
        request
    }
}

/// A connection on which HTTP has begun.
enum Fresh<B> {
    Http1(Connection<B>),
    Http2(hyper::client::conn::http2::SendRequest<B>),
}

/// Takes back what was done for HTTP/2, and says what HTTP/1.1 wants to hear.
fn as_http1<B>(mut request: Request<B>) -> Request<B> {
    if request.version() == Version::HTTP_2 {
        if let Some(authority) = request.uri().authority()
            && let Ok(host) = HeaderValue::from_str(authority.as_str())
        {
            request.headers_mut().insert(HOST, host);
        }
        *request.uri_mut() = Uri::from(target_of(&request));
    }
    if request.headers().contains_key(TE) && !request.headers().contains_key(CONNECTION) {
        // RFC 9110, section 10.1.4: whoever sends TE names it in Connection.
        let te = HeaderValue::from_static("te");
        request.headers_mut().insert(CONNECTION, te);
    }
    *request.version_mut() = Version::HTTP_11;
    request
}

fn target_of<B>(request: &Request<B>) -> PathAndQuery {
    let target = request.uri().path_and_query().cloned();
    target.unwrap_or_else(|| PathAndQuery::from_static("/"))
}

/// The same request once more, without body and extensions.
fn copy<B: Default>(request: &Request<B>) -> Request<B> {
    let mut copy = Request::new(B::default());
    copy.method_mut().clone_from(request.method());
    copy.uri_mut().clone_from(request.uri());
    copy.headers_mut().clone_from(request.headers());
    copy
}
