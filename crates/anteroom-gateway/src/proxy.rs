//! How does a request get to the origin, and the answer back?
//!
//! What a request and an answer look like on either side is decided here; which of the room's origins
//! gets it, over which connection, and whether it is sent again, in `anteroom-origin`. Bodies stream.
//!
//! Deliberately absent: which room (a layer above puts [`Upstream`] into the request), whether the
//! request may pass at all, `Via`. Interim answers other than `100 Continue` (103) are dropped.

pub(crate) mod expect;
pub(crate) mod hop;
mod upgrade;
mod wait;

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use anteroom_config::TimeOuts;
use anteroom_core::time::Span;
use anteroom_origin::{Answer, Delivery, Failure, Group};
use http::header::ACCEPT;
use http::{Request, Response, StatusCode, Uri, Version};
use hyper::body::Incoming;

use crate::body::{Attached, Body};
use crate::error_page::{self, Format};
use crate::forwarded::{self, Client};
use crate::status::Refusal;

/// The longest time that is waited for anything: longer spans overflow timers and mean "for ever".
const WAIT_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// What the origin did with a request; an extension of every response that the proxy gives back.
///
/// It is absent where the origin is not to blame: a request without [`Upstream`], and one whose
/// own body failed.
pub use anteroom_origin::Outcome as OriginOutcome;

/// Where a request is to go; an extension that a layer above puts into it.
#[derive(Clone, Debug)]
pub struct Upstream(pub Arc<Group<Body>>);

/// Takes requests to their origins.
#[derive(Clone, Copy, Debug)]
pub struct ReverseProxy {
    response_wait: Duration,
    body_idle: Duration,
}

impl ReverseProxy {
    /// A proxy that waits so long.
    #[must_use]
    pub fn new(time_outs: &TimeOuts) -> Self {
        Self {
            response_wait: wait_of(time_outs.origin_response),
            body_idle: wait_of(time_outs.body_idle),
        }
    }

    /// Takes one request to its [`Upstream`] and returns the answer, or a page that says why there
    /// is none.
    ///
    /// The path and query go on byte for byte; `Host` as it is in the request.
    pub async fn forward(&self, mut request: Request<Body>) -> Response<Body> {
        // Read if there is no answer, which is rare.
        let accept = request.headers().get(ACCEPT).cloned();
        let format = || Format::of(accept.as_ref());
        let Some(Upstream(group)) = request.extensions_mut().remove::<Upstream>() else {
            return error_page::answer(Refusal::NotFound, format());
        };
        let Ok(expected) = expect::take(&mut request) else {
            return error_page::answer(Refusal::ExpectationFailed, format());
        };
        let upgrade = upgrade::Asked::by(&mut request);
        let Some(mut request) = prepare(request, upgrade.as_ref()) else {
            return error_page::answer(Refusal::BadRequest, format());
        };
        let permission = match expected {
            // What an origin says in between is not told over HTTP/2; the client is not kept waiting.
            Some(_) if group.may_speak_http2() => None,
            Some(expected) => Some(expected.ask(&mut request)),
            None => None,
        };
        let progress = request.body_mut().watch();
        let mut delivery = Delivery::new(group, upgrade.is_some(), self.response_wait);
        let waiting = wait::Waiting {
            limit: self.response_wait,
            progress: progress.as_ref(),
            permission: permission.as_ref(),
        };
        let answered = waiting.for_head(pin!(delivery.send(request))).await;
        match answered {
            Ok(Answer { response, lease }) => {
                let outcome = judge(&response, upgrade.as_ref());
                delivery.settle(outcome);
                let attached = Attached {
                    lease,
                    unasked: permission.and_then(expect::Permission::close),
                    request: progress,
                };
                if matches!(outcome, OriginOutcome::Answered(_)) {
                    self.pass_back(response, attached, upgrade)
                } else {
                    failed(outcome, format())
                }
            }
            Err(no_answer) => {
                let broken = progress.as_ref().and_then(|progress| progress.failure());
                if let Some(progress) = progress {
                    progress.abandon();
                }
                let outcome = match no_answer {
                    wait::NoAnswer::TimedOut => OriginOutcome::TimedOut,
                    wait::NoAnswer::Failed(failure) => match (broken, failure) {
                        (_, failure @ Failure::Connect(_)) => failure.outcome(),
                        (Some(refusal), _) => return error_page::answer(refusal, format()),
                        (None, failure) => failure.outcome(),
                    },
                };
                delivery.settle(outcome);
                failed(outcome, format())
            }
        }
    }

    /// The answer as the client gets it, which may be passed on.
    fn pass_back(
        &self,
        mut answer: Response<Incoming>,
        attached: Attached,
        upgrade: Option<upgrade::Asked>,
    ) -> Response<Body> {
        let status = answer.status();
        let granted = upgrade.filter(|_| status == StatusCode::SWITCHING_PROTOCOLS);
        let origin = granted.is_some().then(|| hyper::upgrade::on(&mut answer));
        let (mut head, body) = answer.into_parts();
        hop::clean_response(&mut head.headers);
        if let (Some(asked), Some(origin)) = (granted, origin) {
            asked.write(&mut head.headers);
            asked.splice(origin, attached, self.body_idle);
            let body = Body::incoming(body, self.body_idle);
            head.extensions.insert(OriginOutcome::Answered(status));
            return Response::from_parts(head, body);
        }
        // An origin that speaks HTTP/1.0 is no reason to speak it to the client.
        head.version = Version::HTTP_11;
        head.extensions.insert(OriginOutcome::Answered(status));
        let body = Body::incoming(body, self.body_idle).attach(attached);
        Response::from_parts(head, body)
    }
}

/// What the head of an answer says of the origin: an answer that cannot be passed on is none.
fn judge(answer: &Response<Incoming>, asked: Option<&upgrade::Asked>) -> OriginOutcome {
    let status = answer.status();
    let is_granted = |asked: &upgrade::Asked| asked.is_granted_by(answer.headers());
    let is_unasked = status == StatusCode::SWITCHING_PROTOCOLS && !asked.is_some_and(is_granted);
    if is_unasked || hop::has_foreign_coding(answer.headers()) {
        return OriginOutcome::Broken;
    }
    OriginOutcome::Answered(status)
}

/// The request as the origin gets it; `None` if it has no path.
fn prepare(request: Request<Body>, upgrade: Option<&upgrade::Asked>) -> Option<Request<Body>> {
    let (mut head, body) = request.into_parts();
    hop::clean_request(&mut head.headers);
    if let Some(upgrade) = upgrade {
        upgrade.write(&mut head.headers);
    }
    match head.extensions.get::<Client>() {
        Some(client) => forwarded::write(&mut head.headers, client),
        None => forwarded::strip_hearsay(&mut head.headers),
    }
    let target = head.uri.path_and_query();
    let target = target.filter(|target| target.as_str().starts_with('/'))?;
    head.uri = Uri::from(target.clone());
    head.version = Version::HTTP_11;
    Some(Request::from_parts(head, body))
}

fn failed(outcome: OriginOutcome, format: Format) -> Response<Body> {
    let refusal = match outcome {
        OriginOutcome::TimedOut => Refusal::GatewayTimeOut,
        _ => Refusal::BadGateway,
    };
    let mut response = error_page::answer(refusal, format);
    response.extensions_mut().insert(outcome);
    response
}

/// A configured span as a timer takes it.
pub(crate) fn wait_of(span: Span) -> Duration {
    Duration::from_millis(span.0).min(WAIT_MAX)
}

impl tower::Service<Request<Body>> for ReverseProxy {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let proxy = *self;
        Box::pin(async move { Ok(proxy.forward(request).await) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_on_its_way_is_not_held_twice() {
        let proxy = ReverseProxy {
            response_wait: Duration::ZERO,
            body_idle: Duration::ZERO,
        };
        let size = size_of_val(&proxy.forward(Request::new(Body::empty())));
        // It was 8,224 when it was; each request is moved with all of it.
        assert!(size < 6_000, "{size} bytes");
    }
}
