//! Tests of hostile requests: they get an error or their own counters, and the service goes on.

use std::time::Duration;

use anteroom_envoy::wire::{Override, RateLimitRequest};
use bytes::Bytes;
use http::{Method, StatusCode};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use prost::Message as _;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::service::support::{Grpc, PATH, Stage, framed, hits, http, request_of};

const FILE: &str = "
domain: d
descriptors:
- key: a
  rate_limit: {unit: minute, requests_per_unit: 1}
- key: a_b
  rate_limit: {unit: minute, requests_per_unit: 1}
- key: a
  value: b_c
  rate_limit: {unit: minute, requests_per_unit: 1}
  descriptors:
  - {key: e, rate_limit: {unit: minute, requests_per_unit: 1}}
";

const INVALID_ARGUMENT: i32 = 3;

async fn check_rejected(client: &mut Grpc, request: &RateLimitRequest, because: &str) {
    let (code, message) = client.try_send(request).await.unwrap_err();
    assert_eq!(code, INVALID_ARGUMENT, "{message}");
    assert!(message.contains(because), "{message}");
}

#[tokio::test]
async fn an_invalid_request_is_rejected_with_a_reason() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    let mut unit = request_of(&["a"]);
    for number in [0, 8, -1, i32::MAX] {
        unit.descriptors[0].limit = Some(Override {
            requests_per_unit: 1,
            unit: number,
        });
        check_rejected(&mut client, &unit, "is not known").await;
    }
    check_rejected(
        &mut client,
        &request_of(&["a"; 10_000]),
        "10000 rate limit descriptors are more",
    )
    .await;
    check_rejected(
        &mut client,
        &request_of(&[]),
        "rate limit descriptor list must not be empty",
    )
    .await;
    let mut without_domain = request_of(&["a"]);
    without_domain.domain.clear();
    check_rejected(
        &mut client,
        &without_domain,
        "rate limit domain must not be empty",
    )
    .await;
    let long = "k".repeat(300 << 10);
    check_rejected(
        &mut client,
        &request_of(&[&long]),
        "bytes in rate limit descriptor 0 are more",
    )
    .await;
    let deep = ["a=b"; 33].join(",");
    check_rejected(&mut client, &request_of(&[&deep]), "33 entries").await;
    assert!(client.outcome(&request_of(&["a=x"])).await.0);
    assert!(stage.service.stats().answers.contains(&("invalid", 9)));
}

#[tokio::test]
async fn keys_that_join_alike_have_counters_of_their_own() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    for descriptor in [
        "a_b=",
        "a=b",
        "a_b=c",
        "a=b_c",
        "a=",
        "a_b=_c",
        "a=b_c,e=",
        "a=b_c,e=_",
    ] {
        let outcome = client.outcome(&request_of(&[descriptor])).await;
        assert_eq!(outcome, (true, vec![(true, 0)]), "{descriptor}");
        assert!(
            !client.outcome(&request_of(&[descriptor])).await.0,
            "{descriptor}"
        );
    }
}

#[tokio::test]
async fn huge_hits_are_counted_without_overflow() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    let mut request = request_of(&["a=x"]);
    request.descriptors[0].hits_addend = hits(u64::MAX);
    for _ in 0..2 {
        assert!(!client.outcome(&request).await.0);
    }
    let stats = stage.service.stats();
    let total = ("total_hits", 2 * u64::from(u32::MAX));
    assert_eq!(stats.limits["d.a"][0], total);
}

// tidy: paused time
#[tokio::test(start_paused = true)]
async fn a_silent_client_is_disconnected_unless_it_has_begun() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    let mut silent = TcpStream::connect(stage.service.grpc().unwrap())
        .await
        .unwrap();
    let mut greeting = Vec::new();
    // The service's settings frame, and then the end.
    let ended = timeout(Duration::from_secs(60), silent.read_to_end(&mut greeting)).await;
    assert!(ended.is_ok(), "it is still connected");
    assert!(client.outcome(&request_of(&["a=x"])).await.0);
}

#[tokio::test]
async fn malformed_messages_get_an_error() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    let message = request_of(&["a"]).encode_to_vec();
    let mut packed = framed(&message);
    packed[0] = 1;
    let mut short = framed(&message);
    short.pop();
    let mut lying = framed(&message);
    lying[1] = 0xff;
    let long = framed(&vec![0; (1 << 20) + 1]);
    let invalid_text = framed(b"\x0a\x02\xff\xff");
    let cases = [vec![], vec![0; 3], packed, short, lying, long, invalid_text];
    for (at, body) in cases.into_iter().enumerate() {
        let called = client.call(PATH, body).await;
        assert_ne!(called.code, 0, "{at}");
    }
    let unknown = client.call("/envoy.service.ratelimit.v3.RateLimitService/No", vec![]);
    assert_eq!(unknown.await.code, 12);
    assert!(client.outcome(&request_of(&["a=x"])).await.0);
}

#[tokio::test]
async fn an_http_body_is_bounded() {
    let stage = Stage::new(FILE).await;
    let address = stage.service.http().unwrap();
    let long = Bytes::from(vec![b' '; (1 << 20) + 1]);
    let (status, _, _) = http(address, Method::POST, "/json", long).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    let (status, _, _) = http(address, Method::POST, "/json", "[".repeat(100_000)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}

/// Generates the bytes of a damaged request, or any bytes.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let good = request_of(&["a=b", "a_b=c,d=e"]).encode_to_vec();
    let length = good.len();
    let damaged = (0..length, any::<u8>(), 0..length).prop_map(move |(at, byte, cut)| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes.truncate(length - cut / 4);
        bytes
    });
    prop_oneof![damaged, proptest::collection::vec(any::<u8>(), 0..200)]
}

#[test]
fn no_bytes_crash_the_service() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let stage = runtime.block_on(Stage::new(FILE));
    let client = std::cell::RefCell::new(runtime.block_on(stage.client()));
    let mut runner = TestRunner::new(Config::with_cases(300));
    let tried = runner.run(&(bytes(), any::<bool>()), |(bytes, is_framed)| {
        let body = if is_framed { framed(&bytes) } else { bytes };
        let address = stage.service.http().unwrap();
        let mut client = client.borrow_mut();
        let called = runtime.block_on(client.call(PATH, body.clone()));
        prop_assert!((0..=16).contains(&called.code));
        // Status 2 means that the request panicked.
        prop_assert_ne!(called.code, 2, "{}", called.message);
        let (status, _, _) = runtime.block_on(http(address, Method::POST, "/json", body));
        prop_assert_eq!(status, StatusCode::BAD_REQUEST);
        Ok(())
    });
    tried.unwrap();
    let mut client = client.borrow_mut();
    assert!(runtime.block_on(client.outcome(&request_of(&["a=end"]))).0);
}
