//! A `tower` layer that enforces rate limits.
//!
//! All limits that cover a request are acquired, or none: a rejected request costs nothing at the
//! other limits. Limits in shadow mode count on their own.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use anteroom_proxy::access_log::{self, AccessLine};
use anteroom_proxy::body::{Body, ResponseBody};
use anteroom_proxy::request_context::{CannotQueue, RequestContext};
use anteroom_proxy::request_view::RequestView;
use arc_swap::Guard;
use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, SET_COOKIE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use pin_project_lite::pin_project;
use tracing::error;

use crate::at_once::AllowedRequest;
use crate::counters::Event;
use crate::limited_request::{EarlyRejection, LimitedRequest, RequestAction};
use crate::limiter::Limiter;
use crate::plan::Plan;
use crate::rate_limit_headers::{self, HeaderValues};
use crate::too_many_requests;

/// Layer that puts limits in front of a service.
///
/// Requests carry their client in a [`RequestContext`]. One without it is rejected, because there
/// is no client to count it for.
#[derive(Clone, Debug)]
pub struct RateLimitLayer {
    pub(crate) limiter: Arc<Limiter>,
}

impl RateLimitLayer {
    /// Creates a layer with these limits.
    #[must_use]
    pub const fn new(limiter: Arc<Limiter>) -> Self {
        Self { limiter }
    }
}

impl<S> tower::Layer<S> for RateLimitLayer {
    type Service = RateLimited<S>;

    fn layer(&self, inner: S) -> RateLimited<S> {
        let limiter = Arc::clone(&self.limiter);
        RateLimited { limiter, inner }
    }
}

pin_project! {
    /// Response of a service with limits in front.
    pub struct Limited<F, R> {
        #[pin]
        stage: Stage<F, R>,
    }
}

pin_project! {
    #[project = StageProjected]
    enum Stage<F, R> {
        // No limit covers the request, or all allow it at once: the usual case.
        Passing { #[pin] inner: F, headers: HeaderValues },
        // Rejected at once.
        Rejected { response: Option<Response<R>> },
        // May be delayed or queued, or has a limit in a shared store.
        Deferred { serving: Pin<Box<dyn Future<Output = Response<R>> + Send>> },
    }
}

impl<F, R> Future for Limited<F, R>
where
    F: Future<Output = Result<Response<R>, Infallible>>,
{
    type Output = Result<Response<R>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(Ok(match self.project().stage.project() {
            StageProjected::Passing { inner, headers } => {
                let Ok(mut response) = ready!(inner.poll(context));
                std::mem::take(headers).add_to(response.headers_mut());
                response
            }
            StageProjected::Rejected { response } => match response.take() {
                Some(response) => response,
                // Polled again after the response: pends for ever.
                None => return Poll::Pending,
            },
            StageProjected::Deferred { serving } => ready!(serving.as_mut().poll(context)),
        }))
    }
}

impl<F, R> Limited<F, R> {
    const fn passing(inner: F, headers: HeaderValues) -> Self {
        let stage = Stage::Passing { inner, headers };
        Self { stage }
    }

    const fn rejected(response: Response<R>) -> Self {
        let response = Some(response);
        let stage = Stage::Rejected { response };
        Self { stage }
    }
}

impl<F, R> fmt::Debug for Limited<F, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Limited")
    }
}

/// Service with limits in front.
#[derive(Clone)]
pub struct RateLimited<S> {
    limiter: Arc<Limiter>,
    inner: S,
}

impl<S> fmt::Debug for RateLimited<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RateLimited({:?})", self.limiter)
    }
}

impl<S, B, R> tower::Service<Request<B>> for RateLimited<S>
where
    S: tower::Service<Request<B>, Response = Response<R>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send + 'static,
    B: Send + 'static,
    R: ResponseBody,
{
    type Response = Response<R>;
    type Error = Infallible;
    type Future = Limited<S::Future, R>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        // Decided about on the fast path.
        if let Some(allowed) = request.extensions_mut().remove::<AllowedRequest>() {
            return Limited::passing(self.inner.call(request), allowed.into_headers());
        }
        let plan = self.limiter.plan();
        if plan.limits.is_empty() {
            return Limited::passing(self.inner.call(request), HeaderValues::default());
        }
        let view = match view_of(&request) {
            Ok(view) => view,
            Err(status) => return Limited::rejected(bare(status)),
        };
        let Some(mut limited) = LimitedRequest::of_view(&self.limiter, &plan, &view) else {
            return Limited::rejected(bare(StatusCode::BAD_REQUEST));
        };
        match limited.decide_now(&self.limiter) {
            Some(RequestAction::Allow(_)) => {
                limited.count_allowed(&self.limiter, Duration::ZERO);
                let headers = HeaderValues::of(&limited.outcomes(), || self.limiter.wall_seconds());
                Limited::passing(self.inner.call(request), headers)
            }
            Some(_) => Limited::rejected(reject(&limited, &self.limiter, &view)),
            None => {
                drop(limited);
                self.defer(Guard::into_inner(plan), request)
            }
        }
    }
}

impl<S: Clone> RateLimited<S> {
    /// Serves a request that may be delayed or queued, or has a limit in a shared store.
    fn defer<B, R>(&mut self, plan: Arc<Plan>, request: Request<B>) -> Limited<S::Future, R>
    where
        S: tower::Service<Request<B>, Response = Response<R>, Error = Infallible> + Send + 'static,
        S::Future: Send + 'static,
        B: Send + 'static,
        R: ResponseBody,
    {
        // The service that was polled ready serves this request; the clone is polled later.
        let next = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, next);
        let serving = serve(Arc::clone(&self.limiter), plan, request, inner);
        let serving: Pin<Box<dyn Future<Output = Response<R>> + Send>> = Box::pin(serving);
        let stage = Stage::Deferred { serving };
        Limited { stage }
    }
}

async fn serve<S, B, R>(
    limiter: Arc<Limiter>,
    plan: Arc<Plan>,
    request: Request<B>,
    mut inner: S,
) -> Response<R>
where
    S: tower::Service<Request<B>, Response = Response<R>, Error = Infallible>,
    R: ResponseBody,
{
    // The body need not be `Sync`, so no reference to it may cross an await point.
    let (head, body) = request.into_parts();
    let head = Request::from_parts(head, ());
    let view = match view_of(&head) {
        Ok(view) => view,
        Err(status) => return bare(status),
    };
    let Some(mut limited) = LimitedRequest::of_view(&limiter, &plan, &view) else {
        return bare(StatusCode::BAD_REQUEST);
    };
    let mut delayed = DelayedRequest::of(&view);
    let action = limited.decide(&limiter).await;
    if let RequestAction::Allow(after) = action
        && !after.is_zero()
    {
        tokio::time::sleep(after).await;
    }
    delayed.end();
    match action {
        RequestAction::Reject => reject(&limited, &limiter, &view),
        RequestAction::Allow(after) => {
            limited.count_allowed(&limiter, after);
            let request = head.map(|()| body);
            let Ok(mut response) = inner.call(request).await;
            rate_limit_headers::add(response.headers_mut(), &limited.outcomes(), || {
                limiter.wall_seconds()
            });
            response
        }
        RequestAction::Queue => {
            let mut request = head.map(|()| body);
            let accept = request.headers().get(ACCEPT).cloned();
            let accept = accept.as_ref().and_then(|accept| accept.to_str().ok());
            let is_head = request.method() == Method::HEAD;
            if let Some(context) = RequestContext::of_mut(&mut request) {
                context.is_over_limit = true;
            }
            let Ok(mut response) = inner.call(request).await;
            if response.extensions_mut().remove::<CannotQueue>().is_none() {
                limited.count_over_limit(Event::Wait);
                return response;
            }
            let mut rejected = over_limit(&limited, &limiter, accept);
            for cookie in response.headers().get_all(SET_COOKIE) {
                rejected.headers_mut().append(SET_COOKIE, cookie.clone());
            }
            own(rejected, is_head)
        }
    }
}

/// Request that may be delayed. If its client leaves meanwhile, it gets its line in the access log
/// here: no other layer sees it.
struct DelayedRequest(Option<LeftClient>);

struct LeftClient {
    client: IpAddr,
    method: Method,
    path: String,
}

impl DelayedRequest {
    fn of(request: &RequestView<'_>) -> Self {
        Self(access_log::is_enabled().then(|| LeftClient {
            client: request.client.address,
            method: request.method.clone(),
            path: access_log::printable(request.path).into_owned(),
        }))
    }

    /// Ends the delay: from now on, others write the line.
    fn end(&mut self) {
        self.0 = None;
    }
}

impl Drop for DelayedRequest {
    fn drop(&mut self) {
        if let Some(left) = &self.0 {
            access_log::write(&AccessLine {
                client: Some(left.client),
                is_client_gone: Some(true),
                ..AccessLine::new(left.method.as_str(), &left.path, "over_limit")
            });
        }
    }
}

/// Returns the response to a rejected request.
pub(crate) fn reject<R: ResponseBody>(
    limited: &LimitedRequest<'_>,
    limiter: &Limiter,
    request: &RequestView<'_>,
) -> Response<R> {
    let accept = request.headers.text(&ACCEPT);
    let response = match limited.early_rejection {
        Some(EarlyRejection::MissingKey(limit)) => {
            limited.count_over_limit(Event::Reject);
            limited.log(request, StatusCode::BAD_REQUEST);
            too_many_requests::missing_key(&limit.name)
        }
        Some(EarlyRejection::Unavailable(limit)) => {
            limited.count_over_limit(Event::Unavailable);
            limited.log(request, StatusCode::SERVICE_UNAVAILABLE);
            too_many_requests::unavailable(&limit.name, accept, rand::random())
        }
        None => {
            limited.log(request, StatusCode::TOO_MANY_REQUESTS);
            over_limit(limited, limiter, accept)
        }
    };
    own(response, *request.method == Method::HEAD)
}

/// Returns the response to a request that is over its limits.
fn over_limit(
    limited: &LimitedRequest<'_>,
    limiter: &Limiter,
    accept: Option<&str>,
) -> Response<Bytes> {
    limited.count_over_limit(Event::Reject);
    let mut response = too_many_requests::over_limit(&limited.outcomes(), accept, rand::random());
    rate_limit_headers::add(response.headers_mut(), &limited.outcomes(), || {
        limiter.wall_seconds()
    });
    response
}

/// Returns a response of the limits; to HEAD without its body, which hyper 1.12 would send over
/// HTTP/2.
fn own<R: ResponseBody>(response: Response<Bytes>, is_head: bool) -> Response<R> {
    let body = |bytes| {
        if is_head {
            Body::empty()
        } else {
            Body::full(bytes)
        }
    };
    response.map(|bytes| R::from_own(body(bytes)))
}

/// Returns the view of a request.
///
/// # Errors
///
/// The status of the response to a request without a context.
fn view_of<B>(request: &Request<B>) -> Result<RequestView<'_>, StatusCode> {
    RequestView::of(request).ok_or_else(|| {
        error!("request rejected: it carries no client address");
        StatusCode::INTERNAL_SERVER_ERROR
    })
}

/// Returns a response without a body, for malformed requests.
fn bare<R: ResponseBody>(status: StatusCode) -> Response<R> {
    let mut response = Response::new(R::from_own(Body::empty()));
    *response.status_mut() = status;
    let no_store = HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, no_store);
    response
}

#[cfg(test)]
mod tests;
