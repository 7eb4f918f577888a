//! An Envoy that is assigned calls ahead, as the docs set it up.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use anteroom_config::{OnStoreFailure, RateLimitHeaders, RateLimitServiceConfig, RateLimitStore};
use anteroom_envoy::{Counts, RateLimitService, ServiceSockets};
use anteroom_limit::time::TimestampUs;
use anteroom_limit_store::mixed::MixedCounts;
use anteroom_testkit::eventually;
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::envoy::docs::{QUOTAS, block};
use crate::envoy::process::Envoy;
use crate::envoy::traffic::{get, origin};

/// What the page allows `/api` in a minute.
const LIMIT: u32 = 600;
/// Three quarters of an assignment are there at once, the rest comes while it lasts.
const MUCH: u32 = LIMIT * 7 / 10;
const MINUTE: u64 = 60_000_000;
/// A full minute.
const START: u64 = 1_767_225_600_000_000;

/// The clock by which calls are counted. It stands still until it is moved: however slow the
/// machine is, a minute is not over before the test says so.
#[derive(Clone)]
struct Clock(Arc<AtomicU64>);

impl Clock {
    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn move_to_second_of_next_minute(&self, second: u64) {
        let left = MINUTE - self.now() % MINUTE;
        self.0
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
    /// The same socket, for another service at the same address: a port that is let go may be
    /// somebody else's.
    door: std::net::TcpListener,
}

impl Stage {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(
            folder.path().join("edge.yaml"),
            block(QUOTAS, "domain: edge"),
        )
        .unwrap();
        let config = RateLimitServiceConfig {
            grpc: None,
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
        let clock = Clock(Arc::new(AtomicU64::new(START)));
        let door = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        door.set_nonblocking(true).unwrap();
        let service = start(&config, &door, &clock).await;
        let address = service.grpc().unwrap();
        Self {
            clock,
            config,
            folder,
            service,
            address,
            door,
        }
    }

    /// An Envoy in front of an origin, and how many requests that served.
    async fn envoy(&self) -> (Envoy, Arc<AtomicU32>) {
        self.envoy_of(1).await
    }

    /// The same with so many workers.
    async fn envoy_of(&self, workers: u32) -> (Envoy, Arc<AtomicU32>) {
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
        let envoy = Envoy::run(&format!("{admin}{config}"), workers).await;
        (envoy, served)
    }
}

async fn start(
    config: &RateLimitServiceConfig,
    door: &std::net::TcpListener,
    clock: &Clock,
) -> RateLimitService {
    let door = TcpListener::from_std(door.try_clone().unwrap()).unwrap();
    let doors = ServiceSockets {
        grpc: Some(door),
        http: None,
    };
    let counts = Counts::Local(Arc::new(MixedCounts::new(1_000)));
    let clock = clock.clone();
    let now = Arc::new(move || TimestampUs(clock.now()));
    let service = RateLimitService::start(doors, config, counts, now);
    service.await.unwrap()
}

/// So many requests, one after the other; how many were let through, and how many refused.
async fn ask(envoy: &Envoy, path: &str, times: u32) -> (u32, u32) {
    ask_as(envoy, path, &[("x-client", "a")], times).await
}

async fn ask_as(envoy: &Envoy, path: &str, client: &[(&str, &str)], times: u32) -> (u32, u32) {
    let (mut passed, mut refused) = (0, 0);
    for _ in 0..times {
        match get(envoy.address(), path, client).await.0 {
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

/// Waits until Envoys have reported so many requests, but for a few: that each of those has
/// reported who asked for more than a few.
async fn reported(stage: &Stage, requests: u32) {
    eventually("requests are reported", async || {
        let stats = stage.service.stats().quota;
        stats.allowed + stats.denied + 10 >= u64::from(requests)
    })
    .await;
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
    let before = count(&served);
    let asked = AtomicU32::new(0);
    let ask = async |times| {
        ask(&envoy, "/api", times).await;
        asked.fetch_add(times, Ordering::SeqCst);
    };
    eventually("much of what the limit allows is let through", async || {
        ask(50).await;
        count(&served) - before >= MUCH
    })
    .await;
    // More than is left, told to the service, and then some more.
    ask(LIMIT).await;
    reported(&stage, count(&asked)).await;
    ask(50).await;
    let passed = count(&served) - before;
    assert!(passed <= LIMIT, "{passed}");
    let stats = stage.service.stats().quota;
    assert!(stats.denied > 0 && stats.allowed > 0, "{stats:?}");
    assert_eq!((stats.streams, stats.refused), (1, 0));
}

#[tokio::test]
async fn the_workers_of_an_envoy_let_through_no_more_together() {
    let stage = Stage::new().await;
    let (envoy, served) = stage.envoy_of(2).await;
    let asked = AtomicU32::new(0);
    // From several clients at once, each request over a connection of its own: that goes to either
    // worker.
    let ask = async |times| {
        let some = || ask(&envoy, "/api", times);
        tokio::join!(some(), some(), some(), some());
        asked.fetch_add(4 * times, Ordering::SeqCst);
    };
    eventually("much of what the limit allows is let through", async || {
        ask(20).await;
        count(&served) >= MUCH
    })
    .await;
    // More than is left, told to the service, and then some more.
    ask(LIMIT / 4).await;
    reported(&stage, count(&asked)).await;
    ask(20).await;
    let passed = count(&served);
    assert!(passed <= LIMIT, "{passed}");
    // One stream for all workers.
    let stats = stage.service.stats().quota;
    assert_eq!((stats.streams, stats.limits, stats.buckets), (1, 1, 1));
    let connections = envoy.connections().await;
    assert!(
        matches!(connections[..], [one, other] if one.min(other) > 100),
        "{connections:?}"
    );
}

#[tokio::test]
async fn two_envoys_share_a_limit() {
    let stage = Stage::new().await;
    let (one, served_by_one) = stage.envoy().await;
    let (other, served_by_other) = stage.envoy().await;
    let asked = AtomicU32::new(0);
    let ask = async |times| {
        tokio::join!(ask(&one, "/api", times), ask(&other, "/api", times));
        asked.fetch_add(2 * times, Ordering::SeqCst);
    };
    // In the last second of a minute nothing is assigned: both say what they want before either has
    // anything.
    stage.clock.move_to_second_of_next_minute(59);
    ask(100).await;
    reported(&stage, count(&asked)).await;
    let passed = || (count(&served_by_one), count(&served_by_other));
    assert_eq!(passed(), (0, 0));

    stage.clock.move_to_second_of_next_minute(0);
    eventually("both have much of a minute", async || {
        ask(20).await;
        let (one, other) = passed();
        one + other >= MUCH && one.min(other) >= LIMIT / 3
    })
    .await;
    // Each more than the rest, told to the service, and then some more.
    ask(LIMIT / 2).await;
    reported(&stage, count(&asked)).await;
    ask(50).await;
    let (one, other) = passed();
    assert!(one + other <= LIMIT, "{one} {other}");
}

#[tokio::test]
async fn a_login_of_nobody_meets_a_limit_too() {
    let stage = Stage::new().await;
    let (envoy, _) = stage.envoy().await;
    // Refused while Envoy asks: what meets no bucket would go through.
    assert_eq!(ask_as(&envoy, "/login", &[], 1).await, (0, 1));
    eventually("a login without a header is let through", async || {
        ask_as(&envoy, "/login", &[], 1).await.0 == 1
    })
    .await;
    // An empty header is none, and a client has a bucket of its own.
    ask_as(&envoy, "/login", &[("x-client", "")], 3).await;
    assert_eq!(ask(&envoy, "/login", 1).await, (0, 1));
    eventually("a login of a client is let through", async || {
        ask(&envoy, "/login", 1).await.0 == 1
    })
    .await;
    assert_eq!(stage.service.stats().quota.limits, 2);
}

#[tokio::test]
async fn without_the_service_envoy_spends_its_quota_and_then_rejects() {
    let stage = Stage::new().await;
    let (envoy, served) = stage.envoy().await;
    // So that what is assigned lasts a few seconds.
    stage.clock.move_to_second_of_next_minute(50);
    eventually("something is let through", async || {
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
    let again = start(&stage.config, &stage.door, &stage.clock).await;
    stage.clock.move_to_second_of_next_minute(0);
    eventually("something is let through again", async || {
        ask(&envoy, "/api", 10).await.0 > 0
    })
    .await;
    drop((again, stage.folder));
}
