//! Decisions without a wait, for requests on the fast path of the proxy.

use std::time::Duration;

use anteroom_proxy::body::Body;
use anteroom_proxy::request_view::RequestView;
use http::{Extensions, HeaderMap, Response};

use crate::RateLimitLayer;
use crate::layer::reject;
use crate::limited_request::{LimitedRequest, RequestAction};
use crate::rate_limit_headers::HeaderValues;

/// Decision of [`RateLimitLayer::decide_at_once`].
#[derive(Debug)]
pub enum LimitDecision {
    /// All limits allow the request, and have counted it.
    Allowed(AllowedRequest),
    /// A limit rejects the request; the client gets this response.
    Rejected(Box<Response<Body>>),
    /// Nothing has happened: the layer decides.
    Later,
}

/// Request that all its limits allow.
#[derive(Clone, Debug, Default)]
pub struct AllowedRequest(Option<Box<HeaderValues>>);

impl RateLimitLayer {
    /// Decides about a request if no store must be reached and no limit may delay it.
    #[must_use]
    pub fn decide_at_once(&self, request: &RequestView<'_>) -> LimitDecision {
        let limiter = &self.limiter;
        let plan = limiter.plan();
        if plan.limits.is_empty() {
            return LimitDecision::Allowed(AllowedRequest::default());
        }
        let Some(mut limited) = LimitedRequest::of_view(limiter, &plan, request) else {
            return LimitDecision::Later;
        };
        match limited.decide_now(limiter) {
            Some(RequestAction::Allow(_)) => {
                limited.count_allowed(limiter, Duration::ZERO);
                let headers = HeaderValues::of(&limited.outcomes(), || limiter.wall_seconds());
                LimitDecision::Allowed(AllowedRequest(Some(Box::new(headers))))
            }
            Some(_) => LimitDecision::Rejected(Box::new(reject(&limited, limiter, request))),
            None => LimitDecision::Later,
        }
    }
}

impl AllowedRequest {
    /// Marks a request that goes to the layers as allowed. Its limits do not count it again.
    pub fn mark(self, extensions: &mut Extensions) {
        extensions.insert(self);
    }

    /// Appends the state of the limits to the head of a response, as lines. The head must have
    /// none of the older headers, `X-RateLimit-*`.
    pub fn write_headers(&self, lines: &mut Vec<u8>) {
        if let Some(headers) = &self.0 {
            headers.write(lines);
        }
    }

    /// Adds the state of the limits to a response.
    pub fn add_headers(&mut self, headers: &mut HeaderMap) {
        if let Some(own) = self.0.take() {
            own.add_to(headers);
        }
    }

    pub(crate) fn into_headers(self) -> HeaderValues {
        self.0.map(|headers| *headers).unwrap_or_default()
    }
}
