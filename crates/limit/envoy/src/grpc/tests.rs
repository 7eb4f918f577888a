//! Memory and time bounds of waiting requests.

use futures_util::FutureExt as _;
use http_body_util::{Full, StreamBody};
use prost::Message as _;
use tokio::time::Instant;
use tonic_health::server::health_reporter;

use super::*;
use crate::request_handler::tests::{handler, request_of};
use crate::wire::RateLimitRequest;

const FILE: &str = "
domain: d
descriptors:
- {key: k, rate_limit: {unit: hour, requests_per_unit: 9}}
";

const CHECK: &str = "/grpc.health.v1.Health/Check";

/// Returns an endpoint that decides `requests` requests at once.
fn endpoint(requests: usize, budget: &Budget) -> GrpcEndpoint<impl Health> {
    let handler = Arc::new(handler(FILE, false));
    let (_, stopped) = tokio::sync::watch::channel(false);
    GrpcEndpoint {
        quotas: Quotas::start(&handler, stopped).0,
        handler,
        health: health_reporter().1,
        budget: budget.clone(),
        permits: Arc::new(Semaphore::new(requests)),
    }
}

fn framed(message: &[u8]) -> Full<Bytes> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    Full::from([&[0], &length[..], message].concat())
}

/// Returns the status of a failed request.
async fn code<B>(endpoint: GrpcEndpoint<impl Health>, path: &str, body: B) -> Option<Code>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Unpin + Send + 'static,
{
    let request = Request::builder().uri(path);
    let request = request.header("content-type", "application/grpc");
    let Ok(response) = endpoint.call(request.body(body).unwrap()).await;
    Status::from_header_map(response.headers()).map(|status| status.code())
}

async fn code_of(endpoint: GrpcEndpoint<impl Health>, request: RateLimitRequest) -> Option<Code> {
    code(
        endpoint,
        SHOULD_RATE_LIMIT,
        framed(&request.encode_to_vec()),
    )
    .await
}

// tidy: paused time
#[tokio::test(start_paused = true)]
async fn an_invalid_request_fails_at_once_and_a_waiting_one_takes_memory() {
    let budget = Budget::default();
    let whole = budget.left();
    let start = Instant::now();
    let rejected = code_of(endpoint(0, &budget), request_of("k", 10_000)).await;
    assert_eq!(rejected, Some(Code::InvalidArgument));
    assert_eq!(start.elapsed(), Duration::ZERO, "no decision is needed");

    let mut waiting = Box::pin(code_of(endpoint(0, &budget), request_of("k", 100)));
    assert!((&mut waiting).now_or_never().is_none());
    let taken = whole - budget.left();
    assert!(
        taken > 100 * size_of::<crate::wire::Descriptor>(),
        "{taken}"
    );
    assert_eq!(waiting.await, Some(Code::DeadlineExceeded));
    assert_eq!(budget.left(), whole);
}

#[tokio::test]
async fn a_request_beyond_the_budget_is_rejected() {
    let request = request_of("k", 100);
    // The budget has room for its bytes, but not for the decoded request.
    let budget = Budget::of(request.encoded_len() + 5_000);
    let rejected = code_of(endpoint(1, &budget), request).await;
    assert_eq!(rejected, Some(Code::ResourceExhausted));
    assert_eq!(
        code_of(endpoint(1, &budget), request_of("k", 1)).await,
        None
    );
}

// tidy: paused time
#[tokio::test(start_paused = true)]
async fn health_checks_are_bounded_in_bytes_and_time() {
    let budget = Budget::default();
    assert_eq!(code(endpoint(1, &budget), CHECK, framed(b"")).await, None);
    let name = [&b"\x0a\x80\x10"[..], &[b'n'; 2_048]].concat();
    let long = code(endpoint(1, &budget), CHECK, framed(&name)).await;
    assert_eq!(long, Some(Code::OutOfRange));
    let none = Budget::of(4);
    let rejected = code(endpoint(1, &none), CHECK, framed(b"")).await;
    assert_eq!(rejected, Some(Code::ResourceExhausted));
    for path in [CHECK, SHOULD_RATE_LIMIT] {
        let silence =
            futures_util::stream::pending::<Result<http_body::Frame<Bytes>, Infallible>>();
        let endless = StreamBody::new(silence);
        let late = code(endpoint(1, &budget), path, endless).await;
        assert_eq!(late, Some(Code::DeadlineExceeded), "{path}");
    }
}
