//! How long an answer is held, and what is asked of whom.

use std::net::SocketAddr;

use crate::config::{File, SameDomain, read};
use anteroom_config::{RateLimitHeaders, RateLimitStore};
use anteroom_limit::time::TimestampUs;
use anteroom_limit_store::mixed::MixedCounts;

use super::*;
use crate::wire;

/// Whoever answers by this file.
pub(crate) fn asking(text: &str, shadow_mode: bool) -> RequestHandler {
    let counts = Counts::Local(Arc::new(MixedCounts::new(100)));
    let now = Arc::new(|| TimestampUs(1_767_225_613_000_000));
    asking_of(text, shadow_mode, counts, now)
}

/// The same with counts and a clock of the test's.
pub(crate) fn asking_of(text: &str, shadow_mode: bool, counts: Counts, now: Now) -> RequestHandler {
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

/// A question of the domain `d` about this key, so many times.
pub(crate) fn question(key: &str, times: usize) -> RateLimitRequest {
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
async fn a_leaky_bucket_makes_wait_but_where_the_service_only_looks() {
    let file = "
domain: d
descriptors:
- {key: k, rate_limit: {unit: second, requests_per_unit: 1, algorithm: leaky-bucket, burst: 3}}
";
    for (is_shadow, expected) in [(false, [0, 1, 2, 3]), (true, [0, 0, 0, 0])] {
        let asking = asking(file, is_shadow);
        for seconds in expected {
            let answered = asking.ask(&question("k", 1)).await.unwrap();
            assert_eq!(answered.hold, Duration::from_secs(seconds), "{is_shadow}");
        }
        // One more is over the limit: it is told at once.
        let answered = asking.ask(&question("k", 1)).await.unwrap();
        assert_eq!(answered.hold, Duration::ZERO);
    }
}
