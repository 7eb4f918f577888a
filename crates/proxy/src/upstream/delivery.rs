//! Delivery of one request to an origin, and to another one where that is safe.
//!
//! - A request of which nothing was sent goes to another origin, whatever its method.
//! - One that is idempotent and has no body (GET, HEAD, OPTIONS, PUT, DELETE) is sent once more, on
//!   a new connection, if the connection was just being closed: no part of a response arrived, the
//!   connection had served responses before, and it closed within a second after the request was
//!   sent.
//! - Such a request is also sent again if the origin reports that it did not process it (HTTP/2:
//!   `REFUSED_STREAM`, or a `GOAWAY` that excludes it), if a ping got no reply, or if the
//!   connection ended before the request was sent on it. A refused request uses another open
//!   connection, if there is one, so that occasional refusals do not open new ones.
//!
//! A request is never sent twice in any other case, because an origin may have executed it.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response};
use hyper::body::Incoming;
use tokio::time::Instant;
use tracing::debug;

use crate::upstream::failure::Failure;
use crate::upstream::group::Group;
use crate::upstream::lease::Lease;
use crate::upstream::origin::Origin;
use crate::upstream::outcome::Outcome;
use crate::upstream::pool::{NotSent, Retry, Sent};
use crate::upstream::request::{RequestBody, SendOptions};

/// Maximum origins for one request: if so many refuse connections, the rest will most likely do so
/// as well, and the visitor waits.
const ORIGINS_MAX: usize = 3;

/// Fraction of the timeout after which a visitor who leaves counts against the origin, if it sent
/// no responses to any client in that time: 15 s with the usual timeout. Few visitors wait so long,
/// so it should not be much more; and pages that take some seconds are no hang.
const HANG_PART: u32 = 4;

/// Head of a response, with the lease that must be held until its body has ended.
#[derive(Debug)]
pub struct UpstreamResponse {
    /// Response of the origin.
    pub response: Response<Incoming>,
    /// Lease to hold until the body is read.
    pub lease: Lease,
}

/// Delivery of one request.
///
/// If it is dropped while it waits for the origin, and has waited for long, it counts as
/// [`Outcome::Abandoned`].
#[derive(Debug)]
pub struct Delivery<B: RequestBody> {
    group: Arc<Group<B>>,
    needs_http1: bool,
    hangs_after: Duration,
    tried: Vec<usize>,
    at: Option<Attempt<B>>,
}

#[derive(Debug)]
struct Attempt<B> {
    index: usize,
    origin: Arc<Origin<B>>,
    began: Instant,
    /// Responses of the origin to all clients before this attempt.
    answers_before: u64,
    lease: Lease,
    /// Error of the attempt; the caller decides whether the origin is to blame.
    last_error: Option<String>,
    /// Whether the attempt waits for the origin, and not for the client.
    is_waiting: bool,
    /// Whether the error counts for the origin's health; not if other requests have reported it.
    is_first_report: bool,
}

impl<B: RequestBody> Delivery<B> {
    /// Creates a delivery to one of `group`. `needs_http1` is for upgrades. `wait` is the caller's
    /// timeout for a response.
    #[must_use]
    pub fn new(group: Arc<Group<B>>, needs_http1: bool, wait: Duration) -> Self {
        Self {
            group,
            needs_http1,
            hangs_after: wait / HANG_PART,
            tried: Vec::new(),
            at: None,
        }
    }

    /// Sends the request and waits for the head of the response. The target must be a path, and the
    /// request must have a `Host`. The caller sets the timeout, and reports the outcome with
    /// [`Delivery::settle`].
    ///
    /// # Errors
    ///
    /// [`Failure`] of the last attempt. The caller reports its meaning for the origin, which is not
    /// to blame for a broken request body, with [`Delivery::settle`].
    pub async fn send(&mut self, mut request: Request<B>) -> Result<UpstreamResponse, Failure> {
        let is_idempotent = matches!(
            *request.method(),
            Method::GET | Method::HEAD | Method::OPTIONS | Method::PUT | Method::DELETE
        );
        let has_no_body = request.body().is_end_stream();
        let mut options = SendOptions {
            needs_http1: self.needs_http1,
            fresh_since: None,
            refused_by: None,
            is_repeatable: is_idempotent && has_no_body,
        };
        loop {
            // With a body, the client may be the slow side.
            let origin = self.begin(has_no_body);
            let not_sent = match origin.pool.send(request, options).await {
                Ok(sent) => return Ok(self.answered(sent)),
                Err(not_sent) => *not_sent,
            };
            let NotSent {
                failure,
                retry,
                is_first_report,
            } = not_sent;
            self.note_failure(&failure, is_first_report);
            request = match retry {
                Some(Retry::Unsent(request)) if self.may_go_elsewhere() => {
                    self.leave(failure.outcome());
                    request
                }
                Some(retry) if options.is_first() && !matches!(failure, Failure::Connect(_)) => {
                    self.retry_once(&mut options, retry)
                }
                _ => return Err(failure),
            };
        }
    }

    /// Prepares a second attempt at the same origin, which is healthy: only the connection was
    /// closed or full.
    fn retry_once(&mut self, options: &mut SendOptions, retry: Retry<B>) -> Request<B> {
        let began = self.at.as_ref().map(|attempt| attempt.began);
        let request = match retry {
            // An unsent request waited on a connection that ended before it was sent.
            Retry::Unsent(request) | Retry::Copy(request) => {
                options.fresh_since = began;
                request
            }
            Retry::Refused(request, connection) => {
                options.refused_by = Some(connection);
                request
            }
        };
        options.is_repeatable = false;
        self.repeat();
        request
    }

    /// Reports the outcome of the request at its last origin.
    pub fn settle(&mut self, outcome: Outcome) {
        if let Some(attempt) = self.at.take() {
            let after = attempt.began.elapsed();
            if let Some(words) = outcome.description() {
                let last_error = attempt.last_error.unwrap_or_else(|| words.to_owned());
                *attempt.origin.last_error.lock() = Some(last_error);
            }
            if attempt.is_first_report {
                self.group.settle(attempt.index, outcome, after);
            } else {
                self.group.count(attempt.index, outcome, after);
            }
        }
    }

    /// Ends the present attempt, of which nothing was sent. The next one goes to another origin.
    pub(crate) fn leave(&mut self, outcome: Outcome) {
        // Only then, so that a delivery at the first attempt allocates nothing.
        self.tried
            .extend(self.at.as_ref().map(|attempt| attempt.index));
        self.settle(outcome);
        self.group.retries.count_elsewhere();
    }

    /// Begins the present attempt anew, at the same origin: only the connection was closed.
    pub(crate) fn repeat(&mut self) {
        self.group.retries.count_stale();
        self.at = self.at.take().map(|attempt| Attempt {
            began: Instant::now(),
            last_error: None,
            is_first_report: true,
            ..attempt
        });
    }

    /// Returns the hold on the origin, after the head of its response.
    pub(crate) fn take_lease(&mut self) -> Lease {
        let lease = self.at.as_mut().map(|attempt| {
            attempt.is_waiting = false;
            std::mem::take(&mut attempt.lease)
        });
        lease.unwrap_or_default()
    }

    /// Returns the origin of the present attempt.
    pub(crate) fn begin(&mut self, is_waiting: bool) -> Arc<Origin<B>> {
        if let Some(attempt) = &mut self.at {
            attempt.is_waiting = is_waiting;
            return Arc::clone(&attempt.origin);
        }
        let index = self.group.pick(&self.tried);
        let origin = self.group.origin(index);
        self.at = Some(Attempt {
            index,
            lease: Lease::on(&origin.counts),
            answers_before: origin.counts.answers(),
            began: Instant::now(),
            origin: Arc::clone(&origin),
            last_error: None,
            is_waiting,
            is_first_report: true,
        });
        origin
    }

    /// Records why the present attempt failed.
    pub(crate) fn note_failure(&mut self, failure: &Failure, is_first_report: bool) {
        let Some(attempt) = &mut self.at else { return };
        attempt.is_waiting = false;
        attempt.is_first_report = is_first_report;
        attempt.last_error = Some(crate::upstream::check::chain(failure));
        debug!(
            room = self.group.owner.room(),
            site = self.group.owner.site(),
            origin = attempt.origin.url,
            error = failure as &dyn std::error::Error,
            "no response"
        );
    }

    /// Whether another origin may get the request.
    pub(crate) fn may_go_elsewhere(&self) -> bool {
        let tried = self.tried.len() + 1;
        tried < self.group.len().min(ORIGINS_MAX)
    }

    fn answered(&mut self, sent: Sent) -> UpstreamResponse {
        let Sent {
            response,
            connection_lease,
        } = sent;
        let mut lease = self.take_lease();
        lease.join(connection_lease);
        UpstreamResponse { response, lease }
    }
}

impl<B: RequestBody> Drop for Delivery<B> {
    fn drop(&mut self) {
        let hangs = |attempt: &Attempt<B>| {
            attempt.is_waiting
                && attempt.began.elapsed() >= self.hangs_after
                && attempt.origin.counts.answers() == attempt.answers_before
        };
        if self.at.as_ref().is_some_and(hangs) {
            self.settle(Outcome::Abandoned);
        }
    }
}
