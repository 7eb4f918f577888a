//! How does a request get to the origin, and the answer back?
//!
//! What a request and an answer look like on either side is decided here; which of the room's
//! origins gets it, over which connection, and whether it is sent again, in
//! [`upstream`](crate::upstream). Bodies stream.
//!
//! Deliberately absent: which room (a layer above puts [`Upstream`] into the [`RequestContext`]),
//! whether the request may pass at all. Interim answers other than `100 Continue` (103) are
//! dropped.

pub mod expect;
pub(crate) mod hop;
mod upgrade;
mod wait;

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::upstream::{Answer, Delivery, Failure};
use anteroom_config::Timeouts;
use http::header::{ACCEPT, ACCEPT_LANGUAGE};
use http::{HeaderValue, Request, Response, StatusCode, Uri, Version};
use hyper::body::Incoming;

use crate::body::{Attached, Body};
use crate::error_page::{self, Format};
use crate::forwarded::{self, Client};
use crate::language;
use crate::loops;
use crate::request_context::{RequestContext, Upstream, VisitorLanguage};
use crate::status::Refusal;
use crate::timeouts::wait_of;

/// What the origin did with a request; an extension of every response that the proxy gives back.
///
/// It is absent where the origin is not to blame: a request without [`Upstream`], and one whose
/// own body failed.
pub use crate::upstream::Outcome as OriginOutcome;

/// How a visitor is told that there is no answer. Read if there is none, which is rare.
struct Reader {
    accept: Option<HeaderValue>,
    wishes: Option<HeaderValue>,
    speech: VisitorLanguage,
}

impl Reader {
    fn of(request: &Request<Body>) -> Self {
        let header = |name| request.headers().get(name).cloned();
        Self {
            accept: header(ACCEPT),
            wishes: header(ACCEPT_LANGUAGE),
            speech: VisitorLanguage::default(),
        }
    }

    fn tell(&self, refusal: Refusal) -> Response<Body> {
        let language = language::of_wishes(self.speech.chosen, self.wishes.as_ref());
        let language = language.unwrap_or(self.speech.default);
        error_page::answer_in(language, refusal, Format::of(self.accept.as_ref()))
    }

    fn tell_outcome(&self, outcome: OriginOutcome) -> Response<Body> {
        let refusal = match outcome {
            OriginOutcome::TimedOut => Refusal::GatewayTimeOut,
            _ => Refusal::BadGateway,
        };
        let mut response = self.tell(refusal);
        response.extensions_mut().insert(outcome);
        response
    }
}

/// Takes requests to their origins.
#[derive(Clone, Copy, Debug)]
pub struct ReverseProxy {
    response_wait: Duration,
    body_idle: Duration,
}

impl ReverseProxy {
    /// A proxy that waits so long.
    #[must_use]
    pub fn new(timeouts: &Timeouts) -> Self {
        Self {
            response_wait: wait_of(timeouts.origin_response),
            body_idle: wait_of(timeouts.body_idle),
        }
    }

    /// Takes one request to its [`Upstream`] and returns the answer, or a page that says why there
    /// is none.
    ///
    /// The path and query go on byte for byte; `Host` as it is in the request.
    pub async fn forward(&self, mut request: Request<Body>) -> Response<Body> {
        let mut reader = Reader::of(&request);
        let Some(RequestContext {
            client,
            hold,
            upstream: Some(upstream),
            ..
        }) = request.extensions_mut().remove()
        else {
            return reader.tell(Refusal::NotFound);
        };
        let Upstream { group, speech } = upstream;
        reader.speech = speech;
        let Ok(expected) = expect::take(&mut request) else {
            return reader.tell(Refusal::ExpectationFailed);
        };
        let upgrade = upgrade::UpgradeRequest::by(&mut request, hold);
        let Some(mut request) = prepare(request, &client, upgrade.as_ref()) else {
            return reader.tell(Refusal::BadRequest);
        };
        let permission = match expected {
            // What an origin says in between is not told over HTTP/2 (hyper 1.12,
            // `ext::on_informational`); the client is not kept waiting.
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
            Ok(Answer {
                mut response,
                lease,
            }) => {
                let outcome = judge(&mut response, upgrade.as_ref());
                delivery.settle(outcome);
                let attached = Attached {
                    lease,
                    unasked: permission.and_then(expect::Permission::close),
                    request: progress,
                };
                if matches!(outcome, OriginOutcome::Answered(_)) {
                    self.pass_back(response, attached, upgrade)
                } else {
                    reader.tell_outcome(outcome)
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
                        (Some(refusal), _) => return reader.tell(refusal),
                        (None, failure) => failure.outcome(),
                    },
                };
                delivery.settle(outcome);
                reader.tell_outcome(outcome)
            }
        }
    }

    /// The answer as the client gets it, which may be passed on.
    fn pass_back(
        &self,
        mut answer: Response<Incoming>,
        attached: Attached,
        upgrade: Option<upgrade::UpgradeRequest>,
    ) -> Response<Body> {
        let status = answer.status();
        let granted = upgrade.filter(|_| status == StatusCode::SWITCHING_PROTOCOLS);
        let origin = granted.is_some().then(|| hyper::upgrade::on(&mut answer));
        let (mut head, body) = answer.into_parts();
        hop::clean_response(&mut head.headers);
        hop::via(&mut head.headers, head.version);
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
fn judge(
    answer: &mut Response<Incoming>,
    asked: Option<&upgrade::UpgradeRequest>,
) -> OriginOutcome {
    let status = answer.status();
    let is_granted = |asked: &upgrade::UpgradeRequest| asked.is_granted_by(answer.headers());
    let is_unasked = status == StatusCode::SWITCHING_PROTOCOLS && !asked.is_some_and(is_granted);
    let is_unclear = hop::unify_length(answer.headers_mut()).is_err();
    if is_unasked || is_unclear || hop::has_foreign_coding(answer.headers()) {
        return OriginOutcome::Broken;
    }
    OriginOutcome::Answered(status)
}

/// The request as the origin gets it; `None` if it has no path.
fn prepare(
    request: Request<Body>,
    client: &Client,
    upgrade: Option<&upgrade::UpgradeRequest>,
) -> Option<Request<Body>> {
    let (mut head, body) = request.into_parts();
    hop::clean_request(&mut head.headers);
    if let Some(upgrade) = upgrade {
        upgrade.write(&mut head.headers);
    }
    forwarded::write(&mut head.headers, client);
    hop::via(&mut head.headers, head.version);
    loops::mark(&mut head.headers);
    let target = head.uri.path_and_query();
    let target = target.filter(|target| target.as_str().starts_with('/'))?;
    head.uri = Uri::from(target.clone());
    head.version = Version::HTTP_11;
    Some(Request::from_parts(head, body))
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
