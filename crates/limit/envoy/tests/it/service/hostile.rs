//! Questions that nobody should ask: an error, or counters of their own; and the service goes on.

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

use crate::service::support::{Grpc, PATH, Stage, framed, hits, http, question};

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

async fn refused(client: &mut Grpc, request: &RateLimitRequest, because: &str) {
    let (code, message) = client.try_ask(request).await.unwrap_err();
    assert_eq!(code, INVALID_ARGUMENT, "{message}");
    assert!(message.contains(because), "{message}");
}

#[tokio::test]
async fn an_unanswerable_request_is_rejected_with_a_reason() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    let mut unit = question(&["a"]);
    for number in [0, 8, -1, i32::MAX] {
        unit.descriptors[0].limit = Some(Override {
            requests_per_unit: 1,
            unit: number,
        });
        refused(&mut client, &unit, "is not known").await;
    }
    refused(
        &mut client,
        &question(&["a"; 10_000]),
        "10000 rate limit descriptors are more",
    )
    .await;
    refused(
        &mut client,
        &question(&[]),
        "rate limit descriptor list must not be empty",
    )
    .await;
    let mut nobody = question(&["a"]);
    nobody.domain.clear();
    refused(&mut client, &nobody, "rate limit domain must not be empty").await;
    let long = "k".repeat(300 << 10);
    refused(
        &mut client,
        &question(&[&long]),
        "bytes in rate limit descriptor 0 are more",
    )
    .await;
    let deep = ["a=b"; 33].join(",");
    refused(&mut client, &question(&[&deep]), "33 entries").await;
    assert!(client.told(&question(&["a=x"])).await.0);
    assert!(stage.service.stats().answers.contains(&("invalid", 9)));
}

#[tokio::test]
async fn keys_that_look_alike_when_joined_have_counters_of_their_own() {
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
        let told = client.told(&question(&[descriptor])).await;
        assert_eq!(told, (true, vec![(true, 0)]), "{descriptor}");
        assert!(
            !client.told(&question(&[descriptor])).await.0,
            "{descriptor}"
        );
    }
}

#[tokio::test]
async fn hits_without_end_are_counted_as_many_and_never_begin_again() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    let mut request = question(&["a=x"]);
    request.descriptors[0].hits_addend = hits(u64::MAX);
    for _ in 0..2 {
        assert!(!client.told(&request).await.0);
    }
    let stats = stage.service.stats();
    let total = ("total_hits", 2 * u64::from(u32::MAX));
    assert_eq!(stats.limits["d.a"][0], total);
}

// tidy: paused time
#[tokio::test(start_paused = true)]
async fn a_silent_client_loses_its_connection_unless_it_has_begun() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    let mut silent = TcpStream::connect(stage.service.grpc().unwrap())
        .await
        .unwrap();
    let mut greeting = Vec::new();
    // The service's own first words, and then the end.
    let ended = timeout(Duration::from_secs(60), silent.read_to_end(&mut greeting)).await;
    assert!(ended.is_ok(), "it is still connected");
    assert!(client.told(&question(&["a=x"])).await.0);
}

#[tokio::test]
async fn messages_that_are_none_are_answered_with_an_error() {
    let stage = Stage::new(FILE).await;
    let mut client = stage.client().await;
    let message = question(&["a"]).encode_to_vec();
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
    assert!(client.told(&question(&["a=x"])).await.0);
}

#[tokio::test]
async fn a_body_of_http_is_bounded() {
    let stage = Stage::new(FILE).await;
    let address = stage.service.http().unwrap();
    let long = Bytes::from(vec![b' '; (1 << 20) + 1]);
    let (status, _, _) = http(address, Method::POST, "/json", long).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    let (status, _, _) = http(address, Method::POST, "/json", "[".repeat(100_000)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}

/// Bytes of a question, damaged, or any bytes.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let good = question(&["a=b", "a_b=c,d=e"]).encode_to_vec();
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
fn no_bytes_end_the_service() {
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
        // 2 is what becomes of a call that panicked.
        prop_assert_ne!(called.code, 2, "{}", called.message);
        let (status, _, _) = runtime.block_on(http(address, Method::POST, "/json", body));
        prop_assert_eq!(status, StatusCode::BAD_REQUEST);
        Ok(())
    });
    tried.unwrap();
    let mut client = client.borrow_mut();
    assert!(runtime.block_on(client.told(&question(&["a=end"]))).0);
}
