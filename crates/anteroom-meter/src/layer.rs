//! A `tower` layer that lets calls through as often as their limits say.
//!
//! All limits that count a call are charged, or none: one that rejects it costs nothing at the others.
//! Those that only look are charged by themselves.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anteroom_gateway::body::{AnswerBody, Body};
use anteroom_gateway::layer::{CannotWait, OverLimit};
use bytes::Bytes;
use futures_util::future::Either;
use http::header::{ACCEPT, CACHE_CONTROL, SET_COOKIE};
use http::{HeaderValue, Method, Request, Response, StatusCode};

use crate::answer;
use crate::call::{Call, Fate, Refusal};
use crate::meter::{Meter, Plan};
use crate::tally::Event;

/// Puts limits in front of a service.
///
/// Requests carry who sent them, as
/// [`Client`](anteroom_gateway::forwarded::Client); one that does not is refused, as nobody could say whom to count
/// it to.
#[derive(Clone, Debug)]
pub struct RateLimitLayer {
    meter: Arc<Meter>,
}

impl RateLimitLayer {
    /// A layer that asks this meter.
    #[must_use]
    pub const fn new(meter: Arc<Meter>) -> Self {
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

/// An answer that limits have a say in.
pub type Limited<R> = Pin<Box<dyn Future<Output = Result<Response<R>, Infallible>> + Send>>;

/// A service with limits in front.
#[derive(Clone)]
pub struct RateLimited<S> {
    meter: Arc<Meter>,
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
    type Future = Either<S::Future, Limited<R>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let plan = self.meter.plan();
        if plan.limits.is_empty() {
            return Either::Left(self.inner.call(request));
        }
        // The service that was found ready serves this request; the clone waits for its turn.
        let next = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, next);
        let meter = Arc::clone(&self.meter);
        Either::Right(Box::pin(async move {
            Ok(serve(&meter, &plan, request, inner).await)
        }))
    }
}

async fn serve<S, B, R>(
    meter: &Meter,
    plan: &Plan,
    mut request: Request<B>,
    mut inner: S,
) -> Response<R>
where
    S: tower::Service<Request<B>, Response = Response<R>, Error = Infallible>,
    R: AnswerBody,
{
    let accept = request.headers().get(ACCEPT).cloned();
    let is_head = request.method() == Method::HEAD;
    let mut call = match Call::of(meter, plan, &request) {
        Ok(call) => call,
        Err(status) => return bare(status),
    };
    match call.settle(meter).await {
        Fate::Refuse => match call.refusal {
            Some(Refusal::Incomplete(limit)) => {
                call.note_over(Event::Reject);
                call.log(&request, StatusCode::BAD_REQUEST);
                own(answer::incomplete(&limit.name), is_head)
            }
            Some(Refusal::Away(limit)) => {
                call.note_over(Event::Unavailable);
                call.log(&request, StatusCode::SERVICE_UNAVAILABLE);
                let answer = answer::unavailable(&limit.name, accept.as_ref(), rand::random());
                own(answer, is_head)
            }
            None => {
                call.log(&request, StatusCode::TOO_MANY_REQUESTS);
                own(refuse(&call, meter, accept.as_ref()), is_head)
            }
        },
        Fate::Go(after) => {
            if !after.is_zero() {
                tokio::time::sleep(after).await;
            }
            call.note_passed(meter, after);
            let Ok(mut response) = inner.call(request).await;
            answer::tell(response.headers_mut(), &call.said(), meter.wall_seconds());
            response
        }
        Fate::Wait => {
            request.extensions_mut().insert(OverLimit);
            let Ok(mut response) = inner.call(request).await;
            if response.extensions_mut().remove::<CannotWait>().is_none() {
                call.note_over(Event::Wait);
                return response;
            }
            let mut refused = refuse(&call, meter, accept.as_ref());
            for cookie in response.headers().get_all(SET_COOKIE) {
                refused.headers_mut().append(SET_COOKIE, cookie.clone());
            }
            own(refused, is_head)
        }
    }
}

/// Sends a call away.
fn refuse(call: &Call<'_>, meter: &Meter, accept: Option<&HeaderValue>) -> Response<Bytes> {
    call.note_over(Event::Reject);
    let mut response = answer::refuse(&call.said(), accept, rand::random());
    answer::tell(response.headers_mut(), &call.said(), meter.wall_seconds());
    response
}

/// An answer of the limits; to HEAD without its body, which HTTP/2 would send.
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
