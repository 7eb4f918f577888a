//! An Envoy that is assigned calls ahead, as the docs set it up.

use std::cell::Cell;
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use anteroom_config::{OnStoreFailure, RateLimitHeaders, RateLimitServiceConfig, RateLimitStore};
use anteroom_counts::mixed::MixedCounts;
use anteroom_limits::time::Micros;
use anteroom_ratelimit::{Counts, RateLimitService};
use anteroom_testkit::redis_server::eventually;
use tempfile::TempDir;
use tokio::time::Instant;

use crate::docs::{QUOTAS, block};
use crate::process::Envoy;
use crate::traffic::{get, origin};

/// What the page allows `/api` in a minute.
const LIMIT: u32 = 600;
const MINUTE: u64 = 60_000_000;
/// A full minute.
const START: u64 = 1_767_225_600_000_000;

/// A clock that goes on by itself, and can be moved forward to a second of the next minute.
#[derive(Clone)]
struct Clock {
    began: Instant,
    ahead: Arc<AtomicU64>,
}

impl Clock {
    fn new() -> Self {
        let ahead = Arc::new(AtomicU64::new(START));
        let began = Instant::now();
        Self { began, ahead }
    }

    fn now(&self) -> u64 {
        let gone = u64::try_from(self.began.elapsed().as_micros()).unwrap();
        self.ahead.load(Ordering::SeqCst) + gone
    }

    fn move_to_second_of_next_minute(&self, second: u64) {
        let left = MINUTE - self.now() % MINUTE;
        self.ahead
            .fetch_add(left + second * 1_000_000, Ordering::SeqCst);
    }
}

/// A service, and where an origin is that counts.
struct Stage {
    clock: Clock,
    config: RateLimitServiceConfig,
    folder: TempDir,
    service: RateLimitService,
    address: SocketAddr,
}

impl Stage {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(
            folder.path().join("edge.yaml"),
            block(QUOTAS, "domain: edge"),
        )
        .unwrap();
        let mut config = RateLimitServiceConfig {
            grpc: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
            http: None,
            config_dir: folder.path().to_owned(),
            merge_domains: false,
            store: RateLimitStore::Local,
            on_store_failure: OnStoreFailure::Closed,
            keys_max: 1_000,
            shadow_mode: false,
            charge_rejected: false,
            headers: RateLimitHeaders::None,
            dynamic_metadata: false,
        };
        let clock = Clock::new();
        let service = start(&config, &clock).await;
        let address = service.grpc().unwrap();
        config.grpc = Some(address);
        Self {
            clock,
            config,
            folder,
            service,
            address,
        }
    }

    /// An Envoy in front of an origin, and how many requests that served.
    async fn envoy(&self) -> (Envoy, Arc<AtomicU32>) {
        let served = Arc::new(AtomicU32::new(0));
        let origin = origin(Arc::clone(&served)).await;
        let at = |address: SocketAddr| {
            format!("address: {}, port_value: {}", address.ip(), address.port())
        };
        let config = block(QUOTAS, "static_resources:")
            .replace(
                "address: 0.0.0.0, port_value: 8080",
                "address: 127.0.0.1, port_value: 0",
            )
            .replace("address: 127.0.0.1, port_value: 3000", &at(origin))
            .replace("address: 127.0.0.1, port_value: 8083", &at(self.address));
        let admin = "admin:\n  address: {socket_address: {address: 127.0.0.1, port_value: 0}}\n";
        let envoy = Envoy::run(&format!("{admin}{config}")).await;
        (envoy, served)
    }
}

async fn start(config: &RateLimitServiceConfig, clock: &Clock) -> RateLimitService {
    let counts = Counts::Local(Arc::new(MixedCounts::new(1_000)));
    let clock = clock.clone();
    let now = Arc::new(move || Micros(clock.now()));
    RateLimitService::start(config, counts, now).await.unwrap()
}

/// So many requests, one after the other; how many were let through, and how many refused.
async fn ask(envoy: &Envoy, path: &str, times: u32) -> (u32, u32) {
    let (mut passed, mut refused) = (0, 0);
    for _ in 0..times {
        match get(envoy.address(), path, &[("x-client", "a")]).await.0 {
            200 => passed += 1,
            429 => refused += 1,
            status => panic!("{status}: {}", envoy.log()),
        }
    }
    (passed, refused)
}

fn count(served: &AtomicU32) -> u32 {
    served.load(Ordering::SeqCst)
}

#[tokio::test]
async fn an_envoy_that_asks_for_more_lets_through_what_the_limit_says() {
    let stage = Stage::new().await;
    let (envoy, served) = stage.envoy().await;
    assert_eq!(
        ask(&envoy, "/", 20).await,
        (20, 0),
        "no limit: {}",
        envoy.log()
    );
    let free = count(&served);
    let mut before = free;
    for _ in 0..2 {
        stage.clock.move_to_second_of_next_minute(0);
        let minute = stage.clock.now() / MINUTE;
        eventually(
            "nearly all that the limit allows is let through",
            async || {
                ask(&envoy, "/api", 50).await;
                let passed = count(&served) - before;
                assert!(passed <= LIMIT, "{passed}");
                passed >= LIMIT * 9 / 10
            },
        )
        .await;
        // Five times as much, and none of it beyond the limit.
        ask(&envoy, "/api", 4 * LIMIT).await;
        if stage.clock.now() / MINUTE == minute {
            let passed = count(&served) - before;
            assert!(passed <= LIMIT, "{passed}");
        }
        before = count(&served);
    }
    let figures = stage.service.figures().quota;
    assert!(figures.denied > 0 && figures.allowed > 0, "{figures:?}");
    assert_eq!((figures.streams, figures.refused), (1, 0));
}

#[tokio::test]
async fn two_envoys_share_a_limit() {
    let stage = Stage::new().await;
    let (one, served_by_one) = stage.envoy().await;
    let (other, served_by_other) = stage.envoy().await;
    let passed = || (count(&served_by_one), count(&served_by_other));
    let before = Cell::new(passed());
    let next_minute = || {
        before.set(passed());
        stage.clock.move_to_second_of_next_minute(0);
    };
    next_minute();
    // In the first minute it matters who reports first.
    eventually("both have much of a minute", async || {
        tokio::join!(ask(&one, "/api", 20), ask(&other, "/api", 20));
        let (before, after) = (before.get(), passed());
        let (one, other) = (after.0 - before.0, after.1 - before.1);
        assert!(one + other <= LIMIT, "{one} {other}");
        let is_used = one + other >= LIMIT * 8 / 10;
        let is_fair = one.min(other) >= LIMIT / 4;
        if is_used && !is_fair {
            next_minute();
        }
        is_used && is_fair
    })
    .await;
}

#[tokio::test]
async fn without_the_service_envoy_spends_what_it_has_and_then_lets_nothing_through() {
    let stage = Stage::new().await;
    let (envoy, served) = stage.envoy().await;
    // So that what is assigned lasts a few seconds.
    stage.clock.move_to_second_of_next_minute(50);
    eventually("something is let through", async || {
        if stage.clock.now() % MINUTE > 56_000_000 {
            stage.clock.move_to_second_of_next_minute(50);
        }
        ask(&envoy, "/api", 1).await.0 == 1
    })
    .await;
    stage.service.stop().await;
    eventually("nothing is let through", async || {
        ask(&envoy, "/api", 20).await.0 == 0
    })
    .await;
    let before = count(&served);
    assert!(before <= LIMIT, "{before}");
    assert_eq!(ask(&envoy, "/", 3).await, (3, 0), "no limit");
    // Another one at the same address.
    let again = start(&stage.config, &stage.clock).await;
    stage.clock.move_to_second_of_next_minute(0);
    eventually("something is let through again", async || {
        ask(&envoy, "/api", 10).await.0 > 0
    })
    .await;
    drop((again, stage.folder));
}
