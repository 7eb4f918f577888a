//! The gRPC door: `ShouldRateLimit`, and whether the service is well.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tonic::body::Body;
use tonic::server::{Grpc, UnaryService};
use tonic::{Code, Status};
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_prost::ProstCodec;
use tower::Service as _;

use crate::asking::{AskError, Asking};
use crate::budget::{Budget, REQUEST_BYTES_MAX};
use crate::wire::{RateLimitRequest, RateLimitResponse, SHOULD_RATE_LIMIT};

/// For a whole call, from its head to its answer: longer than the line of any leaky bucket, and than a store may take.
const CALL_TIME_MAX: Duration = Duration::from_secs(10);
/// Calls that are decided about at once, over all connections. A store that is slow makes more of them wait, and
/// no memory grows with how slow it is.
pub(crate) const CALLS_MAX: usize = 1_024;

/// Answers calls. Clones share all they have.
pub(crate) struct GrpcDoor<H> {
    pub(crate) asking: Arc<Asking>,
    pub(crate) health: HealthServer<H>,
    pub(crate) budget: Budget,
    pub(crate) calls: Arc<Semaphore>,
}

impl<H> Clone for GrpcDoor<H> {
    fn clone(&self) -> Self {
        Self {
            asking: Arc::clone(&self.asking),
            health: self.health.clone(),
            budget: self.budget.clone(),
            calls: Arc::clone(&self.calls),
        }
    }
}

impl<H: Health> GrpcDoor<H> {
    /// Answers one call.
    pub(crate) async fn call(
        mut self,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Infallible> {
        let path = request.uri().path();
        if path == SHOULD_RATE_LIMIT {
            let request = request.map(|body| self.budget.count(body));
            let calls = self.calls;
            let asked = Asked {
                asking: self.asking,
                calls,
            };
            let mut grpc =
                Grpc::new(ProstCodec::default()).max_decoding_message_size(REQUEST_BYTES_MAX);
            let answer = timeout(CALL_TIME_MAX, grpc.unary(asked, request)).await;
            return Ok(answer.unwrap_or_else(|_| {
                Status::deadline_exceeded("the call took too long").into_http()
            }));
        }
        if path.starts_with("/grpc.health.v1.Health/") {
            return self.health.call(request).await;
        }
        Ok(Status::new(Code::Unimplemented, "no such method here").into_http())
    }
}

struct Asked {
    asking: Arc<Asking>,
    calls: Arc<Semaphore>,
}

impl UnaryService<RateLimitRequest> for Asked {
    type Response = RateLimitResponse;
    type Future =
        Pin<Box<dyn Future<Output = Result<tonic::Response<RateLimitResponse>, Status>> + Send>>;

    fn call(&mut self, request: tonic::Request<RateLimitRequest>) -> Self::Future {
        let (asking, calls) = (Arc::clone(&self.asking), Arc::clone(&self.calls));
        Box::pin(async move {
            let asked = {
                let _permit = calls.acquire().await;
                asking.ask(request.get_ref()).await
            };
            let answered = asked.map_err(|error| status(&error))?;
            if !answered.hold.is_zero() {
                sleep(answered.hold).await;
            }
            Ok(tonic::Response::new(answered.response))
        })
    }
}

fn status(error: &AskError) -> Status {
    let code = match error {
        AskError::Wrong(_) => Code::InvalidArgument,
        AskError::Unfit(_) => Code::Internal,
        AskError::StoreAway(_) => Code::Unavailable,
    };
    Status::new(code, error.to_string())
}
