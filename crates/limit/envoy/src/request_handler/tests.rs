//! Delays of responses; and handlers for other tests.

use std::net::SocketAddr;

use crate::config::{File, SameDomain, read};
use anteroom_config::{RateLimitHeaders, RateLimitStore};
use anteroom_limit::time::TimestampUs;
use anteroom_limit_store::mixed::MixedCounts;

use super::*;
use crate::wire;

/// Returns a handler with this file.
pub(crate) fn handler(text: &str, shadow_mode: bool) -> RequestHandler {
    let counts = Counts::Local(Arc::new(MixedCounts::new(100)));
    let now = Arc::new(|| TimestampUs(1_767_225_613_000_000));
    handler_with(text, shadow_mode, counts, now)
}

/// Returns a handler with given counts and clock.
pub(crate) fn handler_with(
    text: &str,
    shadow_mode: bool,
    counts: Counts,
    now: Now,
) -> RequestHandler {
    let any = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let config = RateLimitServiceConfig {
        grpc: any,
        http: any,
        config_dir: "limits".into(),
        merge_domains: false,
        store: RateLimitStore::Local,
        on_store_failure: OnStoreFailure::Closed,
        keys_max: 100,
        shadow_mode,
        charge_rejected: false,
        headers: RateLimitHeaders::None,
        dynamic_metadata: false,
    };
    let file = File {
        name: "limits.yaml",
        bytes: text.as_bytes(),
    };
    let limits = read(&[file], SameDomain::Refused).unwrap().limits;
    RequestHandler::new(&config, limits, counts, now).unwrap()
}

/// Returns a request for the domain `d` with this key in `times` descriptors.
pub(crate) fn request_of(key: &str, times: usize) -> RateLimitRequest {
    let entry = wire::Entry {
        key: key.to_owned(),
        value: String::new(),
    };
    let descriptor = wire::Descriptor {
        entries: vec![entry],
        ..wire::Descriptor::default()
    };
    RateLimitRequest {
        domain: "d".to_owned(),
        descriptors: vec![descriptor; times],
        hits_addend: 0,
    }
}

#[tokio::test]
async fn a_leaky_bucket_delays_responses_except_in_shadow_mode() {
    let file = "
domain: d
descriptors:
- {key: k, rate_limit: {unit: second, requests_per_unit: 1, algorithm: leaky-bucket, burst: 3}}
";
    for (is_shadow, expected) in [(false, [0, 1, 2, 3]), (true, [0, 0, 0, 0])] {
        let handler = handler(file, is_shadow);
        for seconds in expected {
            let delayed = handler.handle(&request_of("k", 1)).await.unwrap();
            assert_eq!(delayed.delay, Duration::from_secs(seconds), "{is_shadow}");
        }
        // One more is over the limit: it is rejected at once.
        let delayed = handler.handle(&request_of("k", 1)).await.unwrap();
        assert_eq!(delayed.delay, Duration::ZERO);
    }
}
