//! One request on its way: to an origin, and to another one where that does no harm.
//!
//! - A request of which nothing was sent goes to another origin, whatever its method.
//! - One that is idempotent and has no body (GET, HEAD, OPTIONS, PUT, DELETE) is sent once more, on
//!   a new connection, if it met one that was just being closed: nothing came of an answer, it had
//!   answered before, and it was closed within a second of the request's being sent.
//! - The same if the origin says that it did not look at it (HTTP/2: `REFUSED_STREAM`, or a
//!   `GOAWAY` that leaves it out), if nobody is there any more who answers a ping, or if the
//!   connection ended before the request had its turn on it. What was refused goes by another
//!   connection that is there, if there is one: an origin that refuses now and then is not brought
//!   one more each time.
//!
//! A request is never sent twice in any other case: an origin may have done what it says.

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
use crate::upstream::pool::{Again, NotSent, Sent};
use crate::upstream::request::{How, RequestBody};

/// Most origins that one request is brought to: where so many do not take connections, the rest
/// will hardly, and somebody waits.
const ORIGINS_MAX: usize = 3;

/// The part of the longest wait after which a visitor who leaves speaks against the origin, if that
/// answered nobody meanwhile: 15 s with the usual time-out. Few wait so long, so it should not be
/// much more; and pages that take some seconds are no hang.
const HANG_PART: u32 = 4;

/// The head of an answer, with what belongs to it until its body has ended.
#[derive(Debug)]
pub struct Answer {
    /// As the origin said it.
    pub response: Response<Incoming>,
    /// To be kept as long as the body is read.
    pub lease: Lease,
}

/// One request on its way.
///
/// Dropped while the origin is waited for, it counts as [`Outcome::Abandoned`] if it had waited for
/// long.
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
    /// Answers that the origin had given, also to others, when it began.
    answers_before: u64,
    lease: Lease,
    /// What went wrong; whether the origin is to blame is for the caller to say.
    complaint: Option<String>,
    /// Whether it is the origin, and nobody else, that is waited for.
    is_waiting: bool,
    /// Whether what went wrong is to be judged; it is not when others have told of it.
    is_news: bool,
}

impl<B: RequestBody> Delivery<B> {
    /// A request to one of `group`; `needs_http1` if it asks to leave HTTP. `wait` is how long the
    /// caller waits for an answer at most.
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

    /// Sends the request, whose target is a path and which has a `Host`, and waits for the head of
    /// the answer; for how long is for the caller to say. So is, with [`Delivery::settle`], what
    /// the answer is worth.
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
        let has_no_body = request.body().is_end_stream();
        let mut how = How {
            needs_http1: self.needs_http1,
            fresh_since: None,
            refused_by: None,
            is_repeatable: is_idempotent && has_no_body,
        };
        loop {
            // With a body, it may be the visitor that everybody waits for.
            let origin = self.begin(has_no_body);
            let not_sent = match origin.pool.send(request, how).await {
                Ok(sent) => return Ok(self.answered(sent)),
                Err(not_sent) => *not_sent,
            };
            let NotSent {
                failure,
                again,
                is_news,
            } = not_sent;
            self.note_failure(&failure, is_news);
            request = match again {
                Some(Again::Unsent(request)) if self.may_go_elsewhere() => {
                    self.settle(failure.outcome());
                    self.group.retries.count_elsewhere();
                    request
                }
                Some(again) if how.is_first() && !matches!(failure, Failure::Connect(_)) => {
                    self.once_more(&mut how, again)
                }
                _ => return Err(failure),
            };
        }
    }

    /// Has a request brought to the same origin again: it is well, it only had enough of a
    /// connection, or of requests on it.
    fn once_more(&mut self, how: &mut How, again: Again<B>) -> Request<B> {
        let began = self.at.as_ref().map(|attempt| attempt.began);
        let request = match again {
            // The former waited, unsent, on a connection that ended before it began.
            Again::Unsent(request) | Again::Copy(request) => {
                how.fresh_since = began;
                request
            }
            Again::Refused(request, line) => {
                how.refused_by = Some(line);
                request
            }
        };
        how.is_repeatable = false;
        self.group.retries.count_stale();
        self.at = self.at.take().map(|attempt| Attempt {
            began: Instant::now(),
            complaint: None,
            is_news: true,
            ..attempt
        });
        request
    }

    /// Says what became of the request at the origin that it was brought to last.
    pub fn settle(&mut self, outcome: Outcome) {
        if let Some(attempt) = self.at.take() {
            let after = attempt.began.elapsed();
            if let Some(words) = outcome.complaint() {
                let complaint = attempt.complaint.unwrap_or_else(|| words.to_owned());
                *attempt.origin.complaint.lock() = Some(complaint);
            }
            if attempt.is_news {
                self.group.settle(attempt.index, outcome, after);
            } else {
                self.group.count(attempt.index, outcome, after);
            }
            self.tried.push(attempt.index);
        }
    }

    /// The origin that this goes to now.
    fn begin(&mut self, is_waiting: bool) -> Arc<Origin<B>> {
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
            complaint: None,
            is_waiting,
            is_news: true,
        });
        origin
    }

    fn note_failure(&mut self, failure: &Failure, is_news: bool) {
        let Some(attempt) = &mut self.at else { return };
        attempt.is_waiting = false;
        attempt.is_news = is_news;
        attempt.complaint = Some(crate::upstream::check::chain(failure));
        debug!(
            room = %self.group.room,
            origin = attempt.origin.url,
            error = failure as &dyn std::error::Error,
            "no answer"
        );
    }

    fn may_go_elsewhere(&self) -> bool {
        let tried = self.tried.len() + 1;
        tried < self.group.len().min(ORIGINS_MAX)
    }

    fn answered(&mut self, sent: Sent) -> Answer {
        let Sent { response, held } = sent;
        let mut lease = Lease::default();
        // There is one: `begin` put it there before the request was sent.
        if let Some(attempt) = &mut self.at {
            attempt.is_waiting = false;
            lease = std::mem::take(&mut attempt.lease);
        }
        lease.join(held);
        Answer { response, lease }
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
