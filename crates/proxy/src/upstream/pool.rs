//! Connections to one origin, and sending a request over one of them.
//!
//! Unlike pools that hide their connections, it knows whether a connection was used before, and
//! whether a request was not sent at all; then the request is returned.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use http::{Request, Response, Version};
use hyper::body::Incoming;
use tokio::net::TcpStream;
use tokio::task;
use tokio::time::{Instant, timeout};

use crate::fast_path::response_head::HEADERS_MAX;
use crate::upstream::connect::{ConnectError, Connected, Either, Target};
use crate::upstream::dialect::{as_http1, as_http2, copy};
use crate::upstream::failure::{self, Closing, Failure};
use crate::upstream::http1::{self, Connection};
use crate::upstream::http2::{self, Http2Connection, Http2Connections, StreamHold};
use crate::upstream::lease::Lease;
use crate::upstream::limits::Limits;
use crate::upstream::open_connections::Idle;
use crate::upstream::request::{RequestBody, SendOptions};

/// Connections to one origin.
#[derive(Debug)]
pub(crate) struct Pool<B> {
    target: Target,
    limits: Limits,
    idle: Arc<Idle<Connection<B>>>,
    http2_connections: Arc<Http2Connections<B>>,
    /// Connections of the fast path.
    fast: Arc<Idle<TcpStream>>,
    /// Whether the origin chose HTTP/1.1 when it could choose.
    prefers_http1: AtomicBool,
}

/// Response, and the hold on its connection.
pub(crate) struct Sent {
    pub(crate) response: Response<Incoming>,
    pub(crate) connection_lease: Lease,
}

/// Failed request.
pub(crate) struct NotSent<B> {
    pub(crate) failure: Failure,
    pub(crate) retry: Option<Retry<B>>,
    /// Whether this is the first report of the event: a broken connection fails all of its
    /// requests, and is one event.
    pub(crate) is_first_report: bool,
}

/// Request without a response of its connection.
struct Unanswered<B> {
    error: Box<hyper::client::conn::TrySendError<Request<B>>>,
    /// End of the connection.
    closing: Option<Closing>,
    /// Id of the connection, if others share it.
    connection: Option<task::Id>,
    is_first_report: bool,
}

/// Request that may be sent again.
pub(crate) enum Retry<B> {
    /// The request was not sent.
    Unsent(Request<B>),
    /// The request is repeatable. The origin did not process it, or its connection was just being
    /// closed.
    Copy(Request<B>),
    /// The request is repeatable, and the origin refused it on this connection, which stays open.
    Refused(Request<B>, task::Id),
}

/// Connection for a request.
enum Taken<B> {
    Http1(Connection<B>, bool),
    Http2(Http2Connection<B>, StreamHold),
}

impl<B> Taken<B> {
    fn was_used(&self) -> bool {
        match self {
            Self::Http1(_, was_used) => *was_used,
            Self::Http2(connection, _) => connection.has_responded(),
        }
    }

    /// Whether a request may fail on this connection for a reason that allows a retry. With HTTP/2
    /// an origin may refuse even the first request.
    fn may_fail_harmlessly(&self) -> bool {
        matches!(self, Self::Http2(..)) || self.was_used()
    }
}

impl<B: RequestBody> Pool<B> {
    pub(crate) fn new(target: Target, limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            target,
            limits,
            idle: Idle::new(limits.idle),
            http2_connections: Http2Connections::new(limits.idle),
            fast: Idle::new(limits.idle),
            prefers_http1: AtomicBool::new(false),
        })
    }

    pub(crate) const fn may_speak_http2(&self) -> bool {
        self.target.may_speak_http2()
    }

    /// Whether requests reach the origin over HTTP/1.1 without TLS, with limits of responses that
    /// the fast path keeps.
    pub(crate) const fn takes_plain_http1(&self) -> bool {
        self.target.is_plain_http1() && self.limits.headers <= HEADERS_MAX
    }

    /// Returns the connections of the fast path.
    pub(crate) const fn fast(&self) -> &Arc<Idle<TcpStream>> {
        &self.fast
    }

    pub(crate) const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Opens a connection for the fast path.
    pub(crate) async fn connect_plain(&self) -> Result<TcpStream, ConnectError> {
        let connected = timeout(self.limits.connect, self.target.connect_tcp()).await;
        connected.unwrap_or_else(|_| Err(self.timed_out()))
    }

    /// Sends a request with a path as its target and a `Host`, and waits for the head of its
    /// response.
    pub(crate) async fn send(
        &self,
        mut request: Request<B>,
        mut options: SendOptions,
    ) -> Result<Sent, Box<NotSent<B>>> {
        loop {
            let began = Instant::now();
            let taken = match self.take(options).await {
                Ok(taken) => taken,
                Err(error) => {
                    return Err(Box::new(NotSent {
                        failure: Failure::Connect(error),
                        retry: Some(Retry::Unsent(request)),
                        is_first_report: true,
                    }));
                }
            };
            let was_used = taken.was_used();
            let needs_spare = options.is_repeatable && taken.may_fail_harmlessly();
            // Copied now, because a failed request is not returned.
            let spare = needs_spare.then(|| copy(&request));
            let sent_at = Instant::now();
            let error = match self.send_over(taken, request).await {
                Ok(sent) if sent.response.headers().len() > self.limits.headers => {
                    return Err(Box::new(NotSent {
                        failure: Failure::TooLarge,
                        retry: None,
                        is_first_report: true,
                    }));
                }
                Ok(sent) => return Ok(sent),
                Err(error) => error,
            };
            let Unanswered {
                mut error,
                closing,
                connection,
                is_first_report,
            } = error;
            let unsent = error.take_message();
            let retry = match (unsent, spare) {
                (Some(unsent), _) if was_used => {
                    // The connection was closed before the request was sent: use another one. Each
                    // used connection is taken once, so this ends; HTTP/2 continues with a new one.
                    if unsent.version() == Version::HTTP_2 {
                        options.fresh_since.get_or_insert(began);
                    }
                    request = unsent;
                    continue;
                }
                (Some(unsent), _) => Some(Retry::Unsent(unsent)),
                (None, Some(spare)) => {
                    let is_stale = may_repeat(closing, was_used, sent_at.elapsed());
                    let refused_by = connection.filter(|_| closing == Some(Closing::Refused));
                    match refused_by {
                        Some(connection) => Some(Retry::Refused(spare, connection)),
                        None => is_stale.then_some(Retry::Copy(spare)),
                    }
                }
                _ => None,
            };
            return Err(Box::new(NotSent {
                failure: failure::of(error.into_error()),
                retry,
                is_first_report,
            }));
        }
    }

    /// Sends a health check over its own connection; the body of the response is not read.
    pub(crate) async fn probe(&self, request: Request<B>) -> Result<Response<Incoming>, Failure> {
        let connected = self.connect(false).await;
        let fresh = match connected.map_err(Failure::Connect)? {
            Fresh::Http1(connection) => Taken::Http1(connection, false),
            Fresh::Http2(connection) => {
                let hold = connection.hold();
                Taken::Http2(connection, hold)
            }
        };
        let sent = match fresh {
            Taken::Http1(mut connection, _) => connection.sender.send_request(request).await,
            Taken::Http2(mut connection, _hold) => {
                connection
                    .sender
                    .send_request(as_http2(request, self.target.scheme()))
                    .await
            }
        };
        sent.map_err(failure::of)
    }

    async fn send_over(&self, taken: Taken<B>, request: Request<B>) -> Result<Sent, Unanswered<B>> {
        match taken {
            Taken::Http1(mut connection, _) => {
                let request = as_http1(request);
                // Dropping the lease ends the connection, even while the request waits to be
                // written.
                let connection_lease = Lease::of_task(connection.task.clone(), &connection.turn);
                let sent = connection.sender.try_send_request(request).await;
                let response = sent.map_err(|error| Unanswered {
                    closing: failure::closing(error.error()),
                    error: Box::new(error),
                    connection: None,
                    is_first_report: true,
                })?;
                http1::keep_when_ready(&self.idle, connection);
                Ok(Sent {
                    response,
                    connection_lease,
                })
            }
            Taken::Http2(mut connection, hold) => {
                let connection_lease = Lease::of_stream(hold);
                let request = as_http2(request, self.target.scheme());
                match connection.sender.try_send_request(request).await {
                    Ok(response) => {
                        connection.note_response();
                        Ok(Sent {
                            response,
                            connection_lease,
                        })
                    }
                    Err(error) => {
                        let closing = failure::closing_under_stream(error.error());
                        let is_over = !matches!(closing, None | Some(Closing::Refused));
                        if is_over {
                            self.http2_connections.remove(&connection);
                        }
                        Err(Unanswered {
                            error: Box::new(error),
                            closing,
                            connection: Some(connection.task),
                            is_first_report: connection.note_end(closing),
                        })
                    }
                }
            }
        }
    }

    async fn take(&self, options: SendOptions) -> Result<Taken<B>, ConnectError> {
        let may_share = !options.needs_http1 && self.target.may_speak_http2();
        if let Some(taken) = self.take_used(options, may_share) {
            return Ok(taken);
        }
        let is_shared = || may_share && !self.prefers_http1.load(Relaxed);
        let _guard = if is_shared() {
            let lock = self.http2_connections.lock_connecting();
            let waited = timeout(self.limits.connect, lock).await;
            let guard = waited.map_err(|_| self.timed_out())?;
            // Another request may have made the connection while this one waited.
            if let Some(taken) = self.take_used(options, may_share) {
                return Ok(taken);
            }
            is_shared().then_some(guard)
        } else {
            None
        };
        Ok(match self.connect(options.needs_http1).await? {
            Fresh::Http1(connection) => {
                // A connection for an upgrade does not show the origin's preference.
                if may_share {
                    self.prefers_http1.store(true, Relaxed);
                }
                Taken::Http1(connection, false)
            }
            Fresh::Http2(connection) => {
                self.prefers_http1.store(false, Relaxed);
                // Before others see the connection, so that its first request has a stream.
                let hold = connection.hold();
                self.http2_connections.put(connection.clone());
                Taken::Http2(connection, hold)
            }
        })
    }

    fn take_used(&self, options: SendOptions, may_share: bool) -> Option<Taken<B>> {
        let shared = if may_share {
            let taken = self.http2_connections.take(options);
            taken.map(|(connection, hold)| Taken::Http2(connection, hold))
        } else {
            None
        };
        if !options.is_first() {
            return shared;
        }
        shared.or_else(|| Some(Taken::Http1(self.idle.take()?, true)))
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
}

/// Connection on which HTTP has started.
enum Fresh<B> {
    Http1(Connection<B>),
    Http2(Http2Connection<B>),
}

/// Time after sending a request within which a closed connection counts as *just being closed*: a
/// round trip to the origin, with some losses. An origin that closes it later has most likely
/// processed the request and failed. A second one would fail as well, or do harm.
pub(crate) const STALE_WITHIN: Duration = Duration::from_secs(1);

/// Whether a repeatable request is sent again, after its connection ended `after` it was sent.
fn may_repeat(closing: Option<Closing>, was_used: bool, after: Duration) -> bool {
    match closing {
        Some(Closing::Refused | Closing::Unseen | Closing::Unknown | Closing::PingTimeout) => true,
        Some(Closing::Closed) => was_used && after < STALE_WITHIN,
        None => false,
    }
}
