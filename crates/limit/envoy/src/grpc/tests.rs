//! What a call holds while it waits, and for how long it may.

use futures_util::FutureExt as _;
use http_body_util::{Full, StreamBody};
use prost::Message as _;
use tokio::time::Instant;
use tonic_health::server::health_reporter;

use super::*;
use crate::asking::tests::{asking, question};
use crate::wire::RateLimitRequest;

const FILE: &str = "
domain: d
descriptors:
- {key: k, rate_limit: {unit: hour, requests_per_unit: 9}}
";

const CHECK: &str = "/grpc.health.v1.Health/Check";

/// A door behind which so many calls are decided about at once.
fn door(calls: usize, budget: &Budget) -> GrpcEndpoint<impl Health> {
    let asking = Arc::new(asking(FILE, false));
    let (_, stopped) = tokio::sync::watch::channel(false);
    GrpcEndpoint {
        quotas: Quotas::start(&asking, stopped).0,
        asking,
        health: health_reporter().1,
        budget: budget.clone(),
        calls: Arc::new(Semaphore::new(calls)),
    }
}

fn framed(message: &[u8]) -> Full<Bytes> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    Full::from([&[0], &length[..], message].concat())
}

/// The status that a call comes back with, if it failed.
async fn code<B>(door: GrpcEndpoint<impl Health>, path: &str, body: B) -> Option<Code>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Unpin + Send + 'static,
{
    let request = Request::builder().uri(path);
    let request = request.header("content-type", "application/grpc");
    let Ok(answer) = door.call(request.body(body).unwrap()).await;
    Status::from_header_map(answer.headers()).map(|status| status.code())
}

async fn asked(door: GrpcEndpoint<impl Health>, question: RateLimitRequest) -> Option<Code> {
    code(door, SHOULD_RATE_LIMIT, framed(&question.encode_to_vec())).await
}

// tidy: paused time
#[tokio::test(start_paused = true)]
async fn an_out_of_range_call_waits_for_nobody_and_waiting_holds_memory() {
    let budget = Budget::default();
    let whole = budget.left();
    let start = Instant::now();
    let refused = asked(door(0, &budget), question("k", 10_000)).await;
    assert_eq!(refused, Some(Code::InvalidArgument));
    assert_eq!(start.elapsed(), Duration::ZERO, "nobody decides about it");

    let mut waiting = Box::pin(asked(door(0, &budget), question("k", 100)));
    assert!((&mut waiting).now_or_never().is_none());
    let held = whole - budget.left();
    assert!(held > 100 * size_of::<crate::wire::Descriptor>(), "{held}");
    assert_eq!(waiting.await, Some(Code::DeadlineExceeded));
    assert_eq!(budget.left(), whole);
}

#[tokio::test]
async fn a_question_that_has_no_place_any_more_is_refused() {
    let request = question("k", 100);
    // Its bytes have, and what is read of them has not.
    let budget = Budget::of(request.encoded_len() + 5_000);
    let crowded = asked(door(1, &budget), request).await;
    assert_eq!(crowded, Some(Code::ResourceExhausted));
    assert_eq!(asked(door(1, &budget), question("k", 1)).await, None);
}

// tidy: paused time
#[tokio::test(start_paused = true)]
async fn asking_whether_it_is_well_is_bounded_in_bytes_and_time() {
    let budget = Budget::default();
    assert_eq!(code(door(1, &budget), CHECK, framed(b"")).await, None);
    let name = [&b"\x0a\x80\x10"[..], &[b'n'; 2_048]].concat();
    let long = code(door(1, &budget), CHECK, framed(&name)).await;
    assert_eq!(long, Some(Code::OutOfRange));
    let none = Budget::of(4);
    let crowded = code(door(1, &none), CHECK, framed(b"")).await;
    assert_eq!(crowded, Some(Code::ResourceExhausted));
    for path in [CHECK, SHOULD_RATE_LIMIT] {
        let silence =
            futures_util::stream::pending::<Result<http_body::Frame<Bytes>, Infallible>>();
        let endless = StreamBody::new(silence);
        let late = code(door(1, &budget), path, endless).await;
        assert_eq!(late, Some(Code::DeadlineExceeded), "{path}");
    }
}
