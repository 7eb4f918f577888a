//! Decisions without a wait, for requests on the fast path of the proxy.

use std::time::Duration;

use anteroom_proxy::request_view::RequestView;
use http::HeaderMap;

use crate::RateLimitLayer;
use crate::limited_request::{self, LimitedRequest, RequestAction};
use crate::rate_limit_headers::HeaderValues;

/// Request that all its limits allow.
#[derive(Debug, Default)]
pub struct AllowedRequest(Option<Box<HeaderValues>>);

impl RateLimitLayer {
    /// Whether no limit covers a request, so that [`RateLimitLayer::allow_at_once`] would allow it.
    #[must_use]
    pub fn covers_none(&self, request: &RequestView<'_>) -> bool {
        let limiter = &self.limiter;
        let plan = limiter.plan();
        plan.limits.is_empty() || limited_request::is_uncovered(limiter, &plan, request)
    }

    /// Decides about a request that all its limits allow at once, and counts it. With `None`
    /// nothing has happened, and the layer decides.
    #[must_use]
    pub fn allow_at_once(&self, request: &RequestView<'_>) -> Option<AllowedRequest> {
        let limiter = &self.limiter;
        let plan = limiter.plan();
        if plan.limits.is_empty() {
            return Some(AllowedRequest::default());
        }
        let mut limited = LimitedRequest::of_view(limiter, &plan, request)?;
        let Some(RequestAction::Allow(_)) = limited.decide_now(limiter) else {
            return None;
        };
        limited.count_allowed(limiter, Duration::ZERO);
        let headers = HeaderValues::of(&limited.outcomes(), || limiter.wall_seconds());
        Some(AllowedRequest(Some(Box::new(headers))))
    }
}

impl AllowedRequest {
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
}
