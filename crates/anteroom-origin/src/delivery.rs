//! One request on its way: to an origin, and to another one where that does no harm.
//!
//! - A request of which nothing was sent goes to another origin, whatever its method.
//! - One that met a connection that was just being closed is sent once more, on a new connection, if
//!   it is idempotent and has no body: GET, HEAD, OPTIONS, PUT, DELETE. What was closed after so
//!   little as an answer's head is told as it is.
//!
//! A request is never sent twice in any other case: an origin may have done what it says.

use std::sync::Arc;

use http::{Method, Request, Response};
use hyper::body::Incoming;
use tokio::time::Instant;
use tracing::debug;

use crate::failure::Failure;
use crate::group::Group;
use crate::lease::Lease;
use crate::origin::{Origin, Outcome};
use crate::pool::{Again, How, NotSent, RequestBody, Sent};

/// Most origins that one request is brought to: where so many do not take connections, the rest
/// will hardly, and somebody waits.
const ORIGINS_MAX: usize = 3;

/// The head of an answer, with what belongs to it until its body has ended.
#[derive(Debug)]
pub struct Answer {
    /// As the origin said it.
    pub response: Response<Incoming>,
    /// To be kept as long as the body is read.
    pub lease: Lease,
}

/// One request on its way.
#[derive(Debug)]
pub struct Delivery<B> {
    group: Arc<Group<B>>,
    needs_http1: bool,
    tried: Vec<usize>,
    at: Option<Attempt<B>>,
}

#[derive(Debug)]
struct Attempt<B> {
    index: usize,
    origin: Arc<Origin<B>>,
    began: Instant,
    lease: Lease,
}

impl<B: RequestBody> Delivery<B> {
    /// A request to one of `group`; `needs_http1` if it asks to leave HTTP.
    #[must_use]
    pub const fn new(group: Arc<Group<B>>, needs_http1: bool) -> Self {
        Self {
            group,
            needs_http1,
            tried: Vec::new(),
            at: None,
        }
    }

    /// Sends the request, whose target is a path and which has a `Host`, and waits for the head of
    /// the answer; for how long is for the caller to say.
    ///
    /// # Errors
    ///
    /// [`Failure`] of the last try. The caller says with [`Delivery::settle`] what it means for the
    /// origin, which is not to blame for a body that broke.
    pub async fn send(&mut self, mut request: Request<B>) -> Result<Answer, Failure> {
        let is_idempotent = matches!(
            *request.method(),
            Method::GET | Method::HEAD | Method::OPTIONS | Method::PUT | Method::DELETE
        );
        let mut how = How {
            needs_http1: self.needs_http1,
            fresh_since: None,
            is_repeatable: is_idempotent && request.body().is_end_stream(),
        };
        loop {
            let origin = self.begin();
            let not_sent = match origin.pool.send(request, how).await {
                Ok(sent) => return self.answered(sent),
                Err(not_sent) => *not_sent,
            };
            let NotSent { failure, again } = not_sent;
            debug!(
                room = %self.group.room,
                origin = origin.url,
                error = &failure as &dyn std::error::Error,
                "no answer"
            );
            *origin.complaint.lock() = Some(crate::check::chain(&failure));
            request = match again {
                Some(Again::Unsent(request)) if self.may_go_elsewhere() => {
                    self.settle(failure.outcome());
                    self.group.retries.count_elsewhere();
                    request
                }
                Some(Again::Copy(request)) if how.fresh_since.is_none() => {
                    how.fresh_since = self.at.as_ref().map(|attempt| attempt.began);
                    how.is_repeatable = false;
                    self.group.retries.count_stale();
                    // The same origin again: it is well, it only had enough of that connection.
                    self.at = self.at.take().map(|attempt| Attempt {
                        began: Instant::now(),
                        ..attempt
                    });
                    request
                }
                _ => return Err(failure),
            };
        }
    }

    /// Says what became of the request at the origin that it was brought to last.
    pub fn settle(&mut self, outcome: Outcome) {
        if let Some(attempt) = self.at.take() {
            let after = attempt.began.elapsed();
            self.group.settle(attempt.index, outcome, after);
            self.tried.push(attempt.index);
        }
    }

    /// The origin that this goes to now.
    fn begin(&mut self) -> Arc<Origin<B>> {
        if let Some(attempt) = &self.at {
            return Arc::clone(&attempt.origin);
        }
        let index = self.group.pick(&self.tried);
        let origin = self.group.origin(index);
        self.at = Some(Attempt {
            index,
            lease: Lease::on(&origin.counts),
            began: Instant::now(),
            origin: Arc::clone(&origin),
        });
        origin
    }

    fn may_go_elsewhere(&self) -> bool {
        let tried = self.tried.len() + 1;
        tried < self.group.len().min(ORIGINS_MAX)
    }

    fn answered(&mut self, sent: Sent) -> Result<Answer, Failure> {
        let Sent { response, held } = sent;
        // There is one: `begin` put it there before the request was sent.
        let mut lease = match self.at.as_mut() {
            Some(attempt) => std::mem::take(&mut attempt.lease),
            None => Lease::default(),
        };
        lease.join(held);
        self.settle(Outcome::Answered(response.status()));
        Ok(Answer { response, lease })
    }
}
