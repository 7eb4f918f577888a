//! gRPC endpoint: `ShouldRateLimit`, quota streams, and health checks.

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

use crate::bounded_request::{BoundedRequest, Reader};
use crate::budget::{Budget, Counted, REQUEST_BYTES_MAX};
use crate::quota::Quotas;
use crate::request_handler::RequestHandler;
use crate::wire::{RateLimitResponse, SHOULD_RATE_LIMIT, STREAM_RATE_LIMIT_QUOTAS};

/// Longest time of a request at either endpoint, from its head to its response. Longer than the
/// queue of any leaky bucket, and than a store may take.
pub(crate) const REQUEST_TIME_MAX: Duration = Duration::from_secs(10);
/// Requests decided at once, over all connections. A slow store makes more of them wait. The
/// waiting ones are within the byte budget, and what is derived from a request exists at most this
/// many times.
pub(crate) const REQUESTS_MAX: usize = 1_024;
/// Longest health check request: it has one name.
const HEALTH_REQUEST_BYTES_MAX: usize = 1 << 10;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// gRPC endpoint. Clones share all state.
pub(crate) struct GrpcEndpoint<H> {
    pub(crate) handler: Arc<RequestHandler>,
    pub(crate) health: HealthServer<H>,
    pub(crate) budget: Budget,
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) quotas: Quotas,
}

impl<H> Clone for GrpcEndpoint<H> {
    fn clone(&self) -> Self {
        Self {
            handler: Arc::clone(&self.handler),
            health: self.health.clone(),
            budget: self.budget.clone(),
            permits: Arc::clone(&self.permits),
            quotas: self.quotas.clone(),
        }
    }
}

impl<H: Health> GrpcEndpoint<H> {
    /// Serves one request.
    pub(crate) async fn call<B>(self, request: Request<B>) -> Result<Response<Body>, Infallible>
    where
        B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Unpin + Send + 'static,
    {
        let path = request.uri().path();
        if path == STREAM_RATE_LIMIT_QUOTAS {
            // A stream lasts as long as the client is connected, and has bounds of its own.
            return Ok(self.quotas.serve(request).await);
        }
        let is_rate_limit = path == SHOULD_RATE_LIMIT;
        if !is_rate_limit && !path.starts_with("/grpc.health.v1.Health/") {
            return Ok(Status::new(Code::Unimplemented, "no such method").into_http());
        }
        let request = request.map(|body| self.budget.count(body));
        if is_rate_limit {
            // On the heap at once: the future is large, and would be moved several times.
            let response = timeout(REQUEST_TIME_MAX, Box::pin(self.should_rate_limit(request)));
            return Ok(response.await.unwrap_or_else(|_| late()));
        }
        let response = timeout(REQUEST_TIME_MAX, async {
            // A watch lasts as long as the connection; the timeout covers its first message only.
            let mut health = self
                .health
                .max_decoding_message_size(HEALTH_REQUEST_BYTES_MAX);
            health.call(request).await
        });
        response.await.unwrap_or_else(|_| Ok(late()))
    }

    async fn should_rate_limit<B>(self, request: Request<Counted<B>>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Unpin + Send + 'static,
    {
        let reader = Reader {
            handler: Arc::clone(&self.handler),
            budget: self.budget,
        };
        let unary = UnaryHandler {
            handler: self.handler,
            permits: self.permits,
        };
        let mut grpc = Grpc::new(reader).max_decoding_message_size(REQUEST_BYTES_MAX);
        grpc.unary(unary, request).await
    }
}

fn late() -> Response<Body> {
    Status::deadline_exceeded("the request took too long").into_http()
}

struct UnaryHandler {
    handler: Arc<RequestHandler>,
    permits: Arc<Semaphore>,
}

impl UnaryService<BoundedRequest> for UnaryHandler {
    type Response = RateLimitResponse;
    type Future =
        Pin<Box<dyn Future<Output = Result<tonic::Response<RateLimitResponse>, Status>> + Send>>;

    fn call(&mut self, request: tonic::Request<BoundedRequest>) -> Self::Future {
        let (handler, permits) = (Arc::clone(&self.handler), Arc::clone(&self.permits));
        Box::pin(async move {
            let BoundedRequest { request, permit } = request.into_inner();
            let result = {
                let _permit = permits.acquire().await;
                handler.handle(&request).await
            };
            drop(request);
            let delayed = result.map_err(|error| error.status())?;
            if !delayed.delay.is_zero() {
                sleep(delayed.delay).await;
            }
            // A delayed response counts, too: it is as long as its request.
            drop(permit);
            Ok(tonic::Response::new(delayed.response))
        })
    }
}

#[cfg(test)]
mod tests;
