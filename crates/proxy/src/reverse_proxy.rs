//! Forwarding of a request to the origin, and of the response to the client.
//!
//! This module decides what requests and responses look like on either side.
//! [`upstream`](crate::upstream) chooses the origin and the connection, and whether a request is
//! sent again. Bodies stream.
//!
//! A layer above chooses the room, puts [`Upstream`] into the [`RequestContext`], and decides
//! whether the request may pass. Interim responses other than `100 Continue` (103) are dropped.

pub mod expect;
pub(crate) mod hop;
mod upgrade;
mod wait;

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::upstream::{Delivery, Failure, UpstreamResponse};
use anteroom_config::Timeouts;
use http::header::{ACCEPT, ACCEPT_LANGUAGE};
use http::{HeaderValue, Request, Response, StatusCode, Uri, Version};
use hyper::body::Incoming;

use crate::body::{Attached, Body};
use crate::error_page::{self, Format};
use crate::forwarded::{self, Client};
use crate::header_view::HeaderView;
use crate::language;
use crate::loops;
use crate::request_context::{RequestContext, Upstream, VisitorLanguage};
use crate::status::RequestError;
use crate::timeouts::wait_of;

/// Outcome of a request at its origin; an extension of every response of the proxy.
///
/// It is absent if the origin is not to blame: for a request without [`Upstream`], and for one
/// whose own body failed.
pub use crate::upstream::Outcome as OriginOutcome;

/// Builder of error responses for one request. Used if there is no response of an origin, which is
/// rare.
#[derive(Debug)]
pub(crate) struct ErrorResponder {
    accept: Option<HeaderValue>,
    accept_language: Option<HeaderValue>,
    speech: VisitorLanguage,
}

impl ErrorResponder {
    fn of(request: &Request<Body>) -> Self {
        let header = |name| request.headers().get(name).cloned();
        Self {
            accept: header(ACCEPT),
            accept_language: header(ACCEPT_LANGUAGE),
            speech: VisitorLanguage::default(),
        }
    }

    /// Creates the builder for a request that the fast path forwards.
    pub(crate) fn of_view(headers: HeaderView<'_>, language: VisitorLanguage) -> Self {
        let header = |name| HeaderValue::from_bytes(headers.get(&name)?).ok();
        Self {
            accept: header(ACCEPT),
            accept_language: header(ACCEPT_LANGUAGE),
            speech: VisitorLanguage {
                chosen: language::chosen(headers),
                ..language
            },
        }
    }

    fn respond(&self, refusal: RequestError) -> Response<Body> {
        let language = language::choose(self.speech.chosen, text(self.accept_language.as_ref()));
        let language = language.unwrap_or(self.speech.default);
        error_page::response_in(language, refusal, Format::of(text(self.accept.as_ref())))
    }

    /// Returns the error page for an origin that did not respond.
    pub(crate) fn respond_to_outcome(&self, outcome: OriginOutcome) -> Response<Body> {
        let refusal = match outcome {
            OriginOutcome::TimedOut => RequestError::GatewayTimeOut,
            _ => RequestError::BadGateway,
        };
        let mut response = self.respond(refusal);
        response.extensions_mut().insert(outcome);
        response
    }
}

/// Returns a header's value as text, if it is visible ASCII.
fn text(value: Option<&HeaderValue>) -> Option<&str> {
    value?.to_str().ok()
}

/// Reverse proxy that forwards requests to their origins.
#[derive(Clone, Copy, Debug)]
pub struct ReverseProxy {
    response_wait: Duration,
    body_idle: Duration,
}

impl ReverseProxy {
    /// Creates a proxy with these timeouts.
    #[must_use]
    pub fn new(timeouts: &Timeouts) -> Self {
        Self {
            response_wait: wait_of(timeouts.origin_response),
            body_idle: wait_of(timeouts.body_idle),
        }
    }

    /// Forwards one request to its [`Upstream`] and returns the response, or an error page.
    ///
    /// The path and query are forwarded byte for byte, and `Host` as it is in the request.
    pub async fn forward(&self, mut request: Request<Body>) -> Response<Body> {
        let mut responder = ErrorResponder::of(&request);
        let Some(RequestContext {
            client,
            hold,
            upstream: Some(upstream),
            ..
        }) = request.extensions_mut().remove()
        else {
            return responder.respond(RequestError::NotFound);
        };
        let Upstream { group, language } = upstream;
        responder.speech = language;
        let Ok(expected) = expect::take(&mut request) else {
            return responder.respond(RequestError::ExpectationFailed);
        };
        let upgrade = upgrade::UpgradeRequest::by(&mut request, hold);
        let Some(mut request) = prepare(request, &client, upgrade.as_ref()) else {
            return responder.respond(RequestError::BadRequest);
        };
        let permission = match expected {
            // hyper does not report interim responses over HTTP/2 (hyper 1.12,
            // `ext::on_informational`), so the client does not wait for one.
            Some(_) if group.may_speak_http2() => None,
            Some(expected) => Some(expected.defer_body(&mut request)),
            None => None,
        };
        let progress = request.body_mut().watch();
        let mut delivery = Delivery::new(group, upgrade.is_some(), self.response_wait);
        let waiting = wait::Waiting {
            limit: self.response_wait,
            progress: progress.as_ref(),
            permission: permission.as_ref(),
        };
        let result = waiting.for_head(pin!(delivery.send(request))).await;
        match result {
            Ok(UpstreamResponse {
                mut response,
                lease,
            }) => {
                let outcome = outcome_of(&mut response, upgrade.as_ref());
                delivery.settle(outcome);
                let attached = Attached {
                    lease,
                    ungranted: permission.and_then(expect::Permission::close),
                    request: progress,
                };
                if matches!(outcome, OriginOutcome::Answered(_)) {
                    self.pass_back(response, attached, upgrade)
                } else {
                    responder.respond_to_outcome(outcome)
                }
            }
            Err(error) => {
                let broken = progress.as_ref().and_then(|progress| progress.failure());
                if let Some(progress) = progress {
                    progress.abandon();
                }
                let outcome = match error {
                    wait::NoResponse::TimedOut => OriginOutcome::TimedOut,
                    wait::NoResponse::Failed(failure) => match (broken, failure) {
                        (_, failure @ Failure::Connect(_)) => failure.outcome(),
                        (Some(refusal), _) => return responder.respond(refusal),
                        (None, failure) => failure.outcome(),
                    },
                };
                delivery.settle(outcome);
                responder.respond_to_outcome(outcome)
            }
        }
    }

    /// Converts a valid response of an origin to the client's.
    fn pass_back(
        &self,
        mut response: Response<Incoming>,
        attached: Attached,
        upgrade: Option<upgrade::UpgradeRequest>,
    ) -> Response<Body> {
        let status = response.status();
        let granted = upgrade.filter(|_| status == StatusCode::SWITCHING_PROTOCOLS);
        let origin = granted.is_some().then(|| hyper::upgrade::on(&mut response));
        let (mut head, body) = response.into_parts();
        hop::clean_response(&mut head.headers);
        hop::via(&mut head.headers, head.version);
        if let (Some(requested), Some(origin)) = (granted, origin) {
            requested.write(&mut head.headers);
            requested.splice(origin, attached, self.body_idle);
            let body = Body::incoming(body, self.body_idle);
            head.extensions.insert(OriginOutcome::Answered(status));
            return Response::from_parts(head, body);
        }
        // The version of the origin must not reach the client.
        head.version = Version::HTTP_11;
        head.extensions.insert(OriginOutcome::Answered(status));
        let body = Body::incoming(body, self.body_idle).attach(attached);
        Response::from_parts(head, body)
    }
}

/// Classifies a response by its head: one that cannot be passed on counts as broken.
fn outcome_of(
    response: &mut Response<Incoming>,
    upgrade: Option<&upgrade::UpgradeRequest>,
) -> OriginOutcome {
    let status = response.status();
    let is_granted = |upgrade: &upgrade::UpgradeRequest| upgrade.is_granted_by(response.headers());
    let is_unrequested =
        status == StatusCode::SWITCHING_PROTOCOLS && !upgrade.is_some_and(is_granted);
    let is_unclear = hop::unify_length(response.headers_mut()).is_err();
    if is_unrequested || is_unclear || hop::has_foreign_coding(response.headers()) {
        return OriginOutcome::Broken;
    }
    OriginOutcome::Answered(status)
}

/// Converts a request for the origin; `None` if it has no path.
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
    fn the_future_of_a_request_has_one_copy_of_it() {
        let proxy = ReverseProxy {
            response_wait: Duration::ZERO,
            body_idle: Duration::ZERO,
        };
        let size = size_of_val(&proxy.forward(Request::new(Body::empty())));
        // It was 8,224 with two copies, and each request is moved in memory.
        assert!(size < 6_000, "{size} bytes");
    }
}
