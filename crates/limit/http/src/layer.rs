//! A `tower` layer that lets calls through as often as their limits say.
//!
//! All limits that count a call are charged, or none: one that rejects it costs nothing at the
//! others. Those that only look are charged by themselves.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use anteroom_proxy::body::{AnswerBody, Body};
use anteroom_proxy::request_context::{CannotWait, RequestContext};
use arc_swap::Guard;
use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, SET_COOKIE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use pin_project_lite::pin_project;

use crate::call::{Fate, LimitedRequest, Refusal};
use crate::counters::Event;
use crate::meter::Limiter;
use crate::plan::Plan;
use crate::rate_limit_headers::{self, HeaderValues};
use crate::too_many_requests;

/// Puts limits in front of a service.
///
/// Requests carry who sent them, in a [`RequestContext`]; one that does not is refused, as nobody
/// could say whom to count it to.
#[derive(Clone, Debug)]
pub struct RateLimitLayer {
    meter: Arc<Limiter>,
}

impl RateLimitLayer {
    /// A layer that asks this meter.
    #[must_use]
    pub const fn new(meter: Arc<Limiter>) -> Self {
        Self { meter }
    }
}

impl<S> tower::Layer<S> for RateLimitLayer {
    type Service = RateLimited<S>;

    fn layer(&self, inner: S) -> RateLimited<S> {
        let meter = Arc::clone(&self.meter);
        RateLimited { meter, inner }
    }
}

pin_project! {
    /// An answer that limits have a say in.
    pub struct Limited<F, R> {
        #[pin]
        stage: Stage<F, R>,
    }
}

pin_project! {
    #[project = StageProjected]
    enum Stage<F, R> {
        // No limit counts it, or they let it go on at once: nearly always.
        On { #[pin] going: F, told: HeaderValues },
        // It was sent away at once.
        Away { answer: Option<Response<R>> },
        // It is held, may have to wait, or is counted elsewhere.
        Later { serving: Pin<Box<dyn Future<Output = Response<R>> + Send>> },
    }
}

impl<F, R> Future for Limited<F, R>
where
    F: Future<Output = Result<Response<R>, Infallible>>,
{
    type Output = Result<Response<R>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(Ok(match self.project().stage.project() {
            StageProjected::On { going, told } => {
                let Ok(mut answer) = ready!(going.poll(context));
                std::mem::take(told).add_to(answer.headers_mut());
                answer
            }
            StageProjected::Away { answer } => match answer.take() {
                Some(answer) => answer,
                // Whoever asks once more after the answer waits for ever.
                None => return Poll::Pending,
            },
            StageProjected::Later { serving } => ready!(serving.as_mut().poll(context)),
        }))
    }
}

impl<F, R> Limited<F, R> {
    const fn on(going: F, told: HeaderValues) -> Self {
        let stage = Stage::On { going, told };
        Self { stage }
    }

    const fn away(answer: Response<R>) -> Self {
        let answer = Some(answer);
        let stage = Stage::Away { answer };
        Self { stage }
    }
}

impl<F, R> fmt::Debug for Limited<F, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Limited")
    }
}

/// A service with limits in front.
#[derive(Clone)]
pub struct RateLimited<S> {
    meter: Arc<Limiter>,
    inner: S,
}

impl<S> fmt::Debug for RateLimited<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RateLimited({:?})", self.meter)
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
    R: AnswerBody,
{
    type Response = Response<R>;
    type Error = Infallible;
    type Future = Limited<S::Future, R>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let plan = self.meter.plan();
        if plan.limits.is_empty() {
            return Limited::on(self.inner.call(request), HeaderValues::default());
        }
        let mut call = match LimitedRequest::of(&self.meter, &plan, &request) {
            Ok(call) => call,
            Err(status) => return Limited::away(bare(status)),
        };
        match call.settle_now(&self.meter) {
            Some(Fate::Go(_)) => {
                call.note_passed(&self.meter, Duration::ZERO);
                let told = HeaderValues::of(&call.said(), || self.meter.wall_seconds());
                Limited::on(self.inner.call(request), told)
            }
            Some(_) => Limited::away(send_away(&call, &self.meter, &request)),
            None => {
                drop(call);
                self.later(Guard::into_inner(plan), request)
            }
        }
    }
}

impl<S: Clone> RateLimited<S> {
    /// Serves a request that is held, may have to wait, or is counted elsewhere.
    fn later<B, R>(&mut self, plan: Arc<Plan>, request: Request<B>) -> Limited<S::Future, R>
    where
        S: tower::Service<Request<B>, Response = Response<R>, Error = Infallible> + Send + 'static,
        S::Future: Send + 'static,
        B: Send + 'static,
        R: AnswerBody,
    {
        // The service that was found ready serves this request; the clone waits for its turn.
        let next = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, next);
        let serving = serve(Arc::clone(&self.meter), plan, request, inner);
        let serving: Pin<Box<dyn Future<Output = Response<R>> + Send>> = Box::pin(serving);
        let stage = Stage::Later { serving };
        Limited { stage }
    }
}

async fn serve<S, B, R>(
    meter: Arc<Limiter>,
    plan: Arc<Plan>,
    mut request: Request<B>,
    mut inner: S,
) -> Response<R>
where
    S: tower::Service<Request<B>, Response = Response<R>, Error = Infallible>,
    R: AnswerBody,
{
    let mut call = match LimitedRequest::of(&meter, &plan, &request) {
        Ok(call) => call,
        Err(status) => return bare(status),
    };
    match call.settle(&meter).await {
        Fate::Refuse => send_away(&call, &meter, &request),
        Fate::Go(after) => {
            if !after.is_zero() {
                tokio::time::sleep(after).await;
            }
            call.note_passed(&meter, after);
            let Ok(mut response) = inner.call(request).await;
            rate_limit_headers::tell(response.headers_mut(), &call.said(), || {
                meter.wall_seconds()
            });
            response
        }
        Fate::Wait => {
            let accept = request.headers().get(ACCEPT).cloned();
            let is_head = request.method() == Method::HEAD;
            if let Some(context) = RequestContext::of_mut(&mut request) {
                context.is_over_limit = true;
            }
            let Ok(mut response) = inner.call(request).await;
            if response.extensions_mut().remove::<CannotWait>().is_none() {
                call.note_over(Event::Wait);
                return response;
            }
            let mut refused = refuse(&call, &meter, accept.as_ref());
            for cookie in response.headers().get_all(SET_COOKIE) {
                refused.headers_mut().append(SET_COOKIE, cookie.clone());
            }
            own(refused, is_head)
        }
    }
}

/// The answer to a call that is refused.
fn send_away<B, R: AnswerBody>(
    call: &LimitedRequest<'_>,
    meter: &Limiter,
    request: &Request<B>,
) -> Response<R> {
    let accept = request.headers().get(ACCEPT);
    let answer = match call.refusal {
        Some(Refusal::Incomplete(limit)) => {
            call.note_over(Event::Reject);
            call.log(request, StatusCode::BAD_REQUEST);
            too_many_requests::incomplete(&limit.name)
        }
        Some(Refusal::Away(limit)) => {
            call.note_over(Event::Unavailable);
            call.log(request, StatusCode::SERVICE_UNAVAILABLE);
            too_many_requests::unavailable(&limit.name, accept, rand::random())
        }
        None => {
            call.log(request, StatusCode::TOO_MANY_REQUESTS);
            refuse(call, meter, accept)
        }
    };
    own(answer, request.method() == Method::HEAD)
}

/// Sends a call away.
fn refuse(
    call: &LimitedRequest<'_>,
    meter: &Limiter,
    accept: Option<&HeaderValue>,
) -> Response<Bytes> {
    call.note_over(Event::Reject);
    let mut response = too_many_requests::refuse(&call.said(), accept, rand::random());
    rate_limit_headers::tell(response.headers_mut(), &call.said(), || {
        meter.wall_seconds()
    });
    response
}

/// An answer of the limits; to HEAD without its body, which hyper 1.12 would send over HTTP/2.
fn own<R: AnswerBody>(response: Response<Bytes>, is_head: bool) -> Response<R> {
    let body = |bytes| {
        if is_head {
            Body::empty()
        } else {
            Body::full(bytes)
        }
    };
    response.map(|bytes| R::from_own(body(bytes)))
}

/// An answer with nothing to read; for requests that no client should send.
fn bare<R: AnswerBody>(status: StatusCode) -> Response<R> {
    let mut response = Response::new(R::from_own(Body::empty()));
    *response.status_mut() = status;
    let no_store = HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, no_store);
    response
}

#[cfg(test)]
mod tests;
