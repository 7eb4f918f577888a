//! The gRPC door: `ShouldRateLimit`, the streams of quotas, and whether the service is well.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tonic::body::Body;
use tonic::server::{Grpc, UnaryService};
use tonic::{Code, Status};
use tonic_health::pb::health_server::{Health, HealthServer};
use tower::Service as _;

use crate::asking::{RequestFailure, RequestHandler};
use crate::budget::{Budget, Counted, REQUEST_BYTES_MAX};
use crate::quota::Quotas;
use crate::weighed::{BoundedRequest, Reader};
use crate::wire::{RateLimitResponse, SHOULD_RATE_LIMIT, STREAM_RATE_LIMIT_QUOTAS};

/// For a whole call, from its head to its answer, at either door: longer than the line of any leaky
/// bucket, and than a store may take.
pub(crate) const CALL_TIME_MAX: Duration = Duration::from_secs(10);
/// Calls that are decided about at once, over all connections. A store that is slow makes more of
/// them wait: what those hold is within the budget of all requests, and what is made of a question
/// is made of so many at most.
pub(crate) const CALLS_MAX: usize = 1_024;
/// Longest question of whether the service is well: it is one name.
const HEALTH_REQUEST_BYTES_MAX: usize = 1 << 10;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Answers calls. Clones share all they have.
pub(crate) struct GrpcEndpoint<H> {
    pub(crate) asking: Arc<RequestHandler>,
    pub(crate) health: HealthServer<H>,
    pub(crate) budget: Budget,
    pub(crate) calls: Arc<Semaphore>,
    pub(crate) quotas: Quotas,
}

impl<H> Clone for GrpcEndpoint<H> {
    fn clone(&self) -> Self {
        Self {
            asking: Arc::clone(&self.asking),
            health: self.health.clone(),
            budget: self.budget.clone(),
            calls: Arc::clone(&self.calls),
            quotas: self.quotas.clone(),
        }
    }
}

impl<H: Health> GrpcEndpoint<H> {
    /// Answers one call.
    pub(crate) async fn call<B>(self, request: Request<B>) -> Result<Response<Body>, Infallible>
    where
        B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Unpin + Send + 'static,
    {
        let path = request.uri().path();
        if path == STREAM_RATE_LIMIT_QUOTAS {
            // For as long as the client is connected, and with bounds of its own.
            return Ok(self.quotas.serve(request).await);
        }
        let is_question = path == SHOULD_RATE_LIMIT;
        if !is_question && !path.starts_with("/grpc.health.v1.Health/") {
            return Ok(Status::new(Code::Unimplemented, "no such method here").into_http());
        }
        let request = request.map(|body| self.budget.count(body));
        if is_question {
            // On the heap at once: all that an answer needs on its way is large, and would be moved
            // several times.
            let answered = timeout(CALL_TIME_MAX, Box::pin(self.ask(request)));
            return Ok(answered.await.unwrap_or_else(|_| late()));
        }
        let answered = timeout(CALL_TIME_MAX, async {
            // Whoever watches is told for as long as the connection lasts; this is until the first
            // word.
            let mut health = self
                .health
                .max_decoding_message_size(HEALTH_REQUEST_BYTES_MAX);
            health.call(request).await
        });
        answered.await.unwrap_or_else(|_| Ok(late()))
    }

    async fn ask<B>(self, request: Request<Counted<B>>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Unpin + Send + 'static,
    {
        let reader = Reader {
            asking: Arc::clone(&self.asking),
            budget: self.budget,
        };
        let asked = Asked {
            asking: self.asking,
            calls: self.calls,
        };
        let mut grpc = Grpc::new(reader).max_decoding_message_size(REQUEST_BYTES_MAX);
        grpc.unary(asked, request).await
    }
}

fn late() -> Response<Body> {
    Status::deadline_exceeded("the call took too long").into_http()
}

struct Asked {
    asking: Arc<RequestHandler>,
    calls: Arc<Semaphore>,
}

impl UnaryService<BoundedRequest> for Asked {
    type Response = RateLimitResponse;
    type Future =
        Pin<Box<dyn Future<Output = Result<tonic::Response<RateLimitResponse>, Status>> + Send>>;

    fn call(&mut self, request: tonic::Request<BoundedRequest>) -> Self::Future {
        let (asking, calls) = (Arc::clone(&self.asking), Arc::clone(&self.calls));
        Box::pin(async move {
            let BoundedRequest { request, held } = request.into_inner();
            let asked = {
                let _permit = calls.acquire().await;
                asking.ask(&request).await
            };
            drop(request);
            let answered = asked.map_err(|error| status(&error))?;
            if !answered.hold.is_zero() {
                sleep(answered.hold).await;
            }
            // What is held back counts, too: an answer is as long as its question.
            drop(held);
            Ok(tonic::Response::new(answered.response))
        })
    }
}

pub(crate) fn status(error: &RequestFailure) -> Status {
    let code = match error {
        RequestFailure::Wrong(_) => Code::InvalidArgument,
        RequestFailure::Unfit(_) => Code::Internal,
        RequestFailure::OverBudget(_) => Code::ResourceExhausted,
        RequestFailure::StoreAway(_) => Code::Unavailable,
    };
    Status::new(code, error.to_string())
}

#[cfg(test)]
mod tests;
