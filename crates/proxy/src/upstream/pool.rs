//! All connections to one origin, and a request sent over one of them.
//!
//! It knows what no pool that hides its connections tells: whether a connection was used before,
//! and that nothing of a request was sent; the request comes back then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use http::{Request, Response, Version};
use hyper::body::Incoming;
use tokio::task;
use tokio::time::{Instant, timeout};

use crate::upstream::connect::{ConnectError, Connected, Either, Target};
use crate::upstream::dialect::{as_http1, as_http2, copy};
use crate::upstream::failure::{self, Closing, Failure};
use crate::upstream::http1::{self, Connection, Idle};
use crate::upstream::http2::{self, Http2Connection, Http2Connections, StreamHold};
use crate::upstream::lease::Lease;
use crate::upstream::limits::Limits;
use crate::upstream::request::{How, RequestBody};

/// The connections to one origin.
#[derive(Debug)]
pub(crate) struct Pool<B> {
    target: Target,
    limits: Limits,
    idle: Arc<Idle<B>>,
    lines: Arc<Http2Connections<B>>,
    /// Whether the origin has chosen HTTP/1.1 where it had a choice.
    prefers_http1: AtomicBool,
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
    /// Whether it is the first that is heard of this: a connection that breaks fails all of its
    /// requests, and is one event.
    pub(crate) is_news: bool,
}

/// A request that a connection brought no answer to.
struct Unanswered<B> {
    error: Box<hyper::client::conn::TrySendError<Request<B>>>,
    /// What became of the connection.
    closing: Option<Closing>,
    /// The connection, where others share it.
    line: Option<task::Id>,
    is_news: bool,
}

/// What may be sent again.
pub(crate) enum Again<B> {
    /// Nothing of it was sent.
    Unsent(Request<B>),
    /// It may be sent twice, and either the origin did not look at it, or it met a connection that
    /// was just being closed.
    Copy(Request<B>),
    /// The same, where the origin did not look at it, and at others on this connection it does.
    Refused(Request<B>, task::Id),
}

/// A connection that takes a request.
enum Taken<B> {
    Http1(Connection<B>, bool),
    Http2(Http2Connection<B>, StreamHold),
}

impl<B> Taken<B> {
    fn was_used(&self) -> bool {
        match self {
            Self::Http1(_, was_used) => *was_used,
            Self::Http2(line, _) => line.has_answered(),
        }
    }

    /// Whether a request may fail on it for a reason that lets it be sent again. By HTTP/2 an
    /// origin may refuse to look at it, also at the first.
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
            lines: Http2Connections::new(limits.idle),
            prefers_http1: AtomicBool::new(false),
        })
    }

    pub(crate) const fn may_speak_http2(&self) -> bool {
        self.target.may_speak_http2()
    }

    /// Sends a request with a path as its target and a `Host`, and waits for the head of its
    /// answer.
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
                        is_news: true,
                    }));
                }
            };
            let was_used = taken.was_used();
            let needs_spare = how.is_repeatable && taken.may_fail_harmlessly();
            // There is no later moment for it: what failed does not come back.
            let spare = needs_spare.then(|| copy(&request));
            let sent_at = Instant::now();
            let error = match self.send_over(taken, request).await {
                Ok(sent) if sent.response.headers().len() > self.limits.headers => {
                    return Err(Box::new(NotSent {
                        failure: Failure::TooLarge,
                        again: None,
                        is_news: true,
                    }));
                }
                Ok(sent) => return Ok(sent),
                Err(error) => error,
            };
            let Unanswered {
                mut error,
                closing,
                line,
                is_news,
            } = error;
            let unsent = error.take_message();
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
                (None, Some(spare)) => {
                    let is_stale = may_repeat(closing, was_used, sent_at.elapsed());
                    let refused_by = line.filter(|_| closing == Some(Closing::Refused));
                    match refused_by {
                        Some(line) => Some(Again::Refused(spare, line)),
                        None => is_stale.then_some(Again::Copy(spare)),
                    }
                }
                _ => None,
            };
            return Err(Box::new(NotSent {
                failure: failure::of(error.into_error()),
                again,
                is_news,
            }));
        }
    }

    /// Asks over a connection of its own; the body of the answer is not read.
    pub(crate) async fn ask(&self, request: Request<B>) -> Result<Response<Incoming>, Failure> {
        let connected = self.connect(false).await;
        let fresh = match connected.map_err(Failure::Connect)? {
            Fresh::Http1(connection) => Taken::Http1(connection, false),
            Fresh::Http2(line) => {
                let hold = line.hold();
                Taken::Http2(line, hold)
            }
        };
        let sent = match fresh {
            Taken::Http1(mut connection, _) => connection.sender.send_request(request).await,
            Taken::Http2(mut line, _hold) => {
                line.sender
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
                // Whoever stops waiting ends the connection, also while it waits to write.
                let held = Lease::of_task(connection.task.clone(), &connection.turn);
                let sent = connection.sender.try_send_request(request).await;
                let response = sent.map_err(|error| Unanswered {
                    closing: failure::closing(error.error()),
                    error: Box::new(error),
                    line: None,
                    is_news: true,
                })?;
                self.idle.keep_when_ready(connection);
                Ok(Sent { response, held })
            }
            Taken::Http2(mut line, hold) => {
                let held = Lease::of_stream(hold);
                let request = as_http2(request, self.target.scheme());
                match line.sender.try_send_request(request).await {
                    Ok(response) => {
                        line.note_answer();
                        Ok(Sent { response, held })
                    }
                    Err(error) => {
                        let closing = failure::closing_under_stream(error.error());
                        let is_over = !matches!(closing, None | Some(Closing::Refused));
                        if is_over {
                            self.lines.remove(&line);
                        }
                        Err(Unanswered {
                            error: Box::new(error),
                            closing,
                            line: Some(line.task),
                            is_news: line.note_end(closing),
                        })
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
            let waited = timeout(self.limits.connect, self.lines.alone()).await;
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
            Fresh::Http2(line) => {
                self.prefers_http1.store(false, Relaxed);
                // Before others see it: whoever made it has its place on it.
                let hold = line.hold();
                self.lines.put(line.clone());
                Taken::Http2(line, hold)
            }
        })
    }

    fn take_used(&self, how: How, may_share: bool) -> Option<Taken<B>> {
        let shared = if may_share {
            let taken = self.lines.take(how);
            taken.map(|(line, hold)| Taken::Http2(line, hold))
        } else {
            None
        };
        if !how.is_first() {
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

/// A connection on which HTTP has begun.
enum Fresh<B> {
    Http1(Connection<B>),
    Http2(Http2Connection<B>),
}

/// How soon a connection must be closed after a request was sent on it to have been *just being
/// closed*: the time that a packet may need to an origin and back, with some losses. An origin that
/// closes it later has most likely read the request, worked on it, and failed; one more would fail
/// there too, or do harm.
const STALE_WITHIN: Duration = Duration::from_secs(1);

/// Whether a request that may be sent twice is to be sent again, after its connection ended so long
/// after it was sent.
fn may_repeat(closing: Option<Closing>, was_used: bool, after: Duration) -> bool {
    match closing {
        Some(Closing::Refused | Closing::Unseen | Closing::Unknown | Closing::Dead) => true,
        Some(Closing::Closed) => was_used && after < STALE_WITHIN,
        None => false,
    }
}
