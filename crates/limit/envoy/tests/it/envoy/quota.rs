//! Tests of quota assignments with a real Envoy, set up as in the docs.

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

/// Requests per minute that the page allows for `/api`.
const LIMIT: u32 = 600;
/// Three quarters of an assignment are available at once, the rest refills while it lasts.
const MUCH: u32 = LIMIT * 7 / 10;
const MINUTE: u64 = 60_000_000;
/// Start of a minute.
const START: u64 = 1_767_225_600_000_000;

/// Clock of the counts. It stands still until the test moves it, so that no minute ends on a slow
/// machine.
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

/// A service, with its files and clock.
struct Stage {
    clock: Clock,
    config: RateLimitServiceConfig,
    folder: TempDir,
    service: RateLimitService,
    address: SocketAddr,
    /// Clone of the service's socket, for another service at the same address: another process
    /// could take a closed port.
    socket: std::net::TcpListener,
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
        let socket = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        socket.set_nonblocking(true).unwrap();
        let service = start(&config, &socket, &clock).await;
        let address = service.grpc().unwrap();
        Self {
            clock,
            config,
            folder,
            service,
            address,
            socket,
        }
    }

    /// Starts an Envoy in front of an origin, and returns it with the number of requests served.
    async fn envoy(&self) -> (Envoy, Arc<AtomicU32>) {
        self.envoy_of(1).await
    }

    /// Starts an Envoy with so many workers.
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
    socket: &std::net::TcpListener,
    clock: &Clock,
) -> RateLimitService {
    let socket = TcpListener::from_std(socket.try_clone().unwrap()).unwrap();
    let sockets = ServiceSockets {
        grpc: Some(socket),
        http: None,
    };
    let counts = Counts::Local(Arc::new(MixedCounts::new(1_000)));
    let clock = clock.clone();
    let now = Arc::new(move || TimestampUs(clock.now()));
    let service = RateLimitService::start(sockets, config, counts, now);
    service.await.unwrap()
}

/// Sends requests one after the other. Returns how many were admitted, and how many rejected.
async fn send(envoy: &Envoy, path: &str, times: u32) -> (u32, u32) {
    send_as(envoy, path, &[("x-client", "a")], times).await
}

async fn send_as(envoy: &Envoy, path: &str, client: &[(&str, &str)], times: u32) -> (u32, u32) {
    let (mut admitted, mut rejected) = (0, 0);
    for _ in 0..times {
        match get(envoy.address(), path, client).await.0 {
            200 => admitted += 1,
            429 => rejected += 1,
            status => panic!("{status}: {}", envoy.log()),
        }
    }
    (admitted, rejected)
}

fn count(served: &AtomicU32) -> u32 {
    served.load(Ordering::SeqCst)
}

/// Waits until Envoys have reported all but ten requests, so that each one with more than ten has
/// reported.
async fn reported(stage: &Stage, requests: u32) {
    eventually("requests are reported", async || {
        let stats = stage.service.stats().quota;
        stats.allowed + stats.denied + 10 >= u64::from(requests)
    })
    .await;
}

#[tokio::test]
async fn an_envoy_with_more_demand_admits_no_more_than_the_limit() {
    let stage = Stage::new().await;
    let (envoy, served) = stage.envoy().await;
    assert_eq!(
        send(&envoy, "/", 20).await,
        (20, 0),
        "no limit: {}",
        envoy.log()
    );
    let before = count(&served);
    let sent = AtomicU32::new(0);
    let send = async |times| {
        send(&envoy, "/api", times).await;
        sent.fetch_add(times, Ordering::SeqCst);
    };
    eventually("much of what the limit allows is let through", async || {
        send(50).await;
        count(&served) - before >= MUCH
    })
    .await;
    // More than is left, so that the service learns of it, and then some more.
    send(LIMIT).await;
    reported(&stage, count(&sent)).await;
    send(50).await;
    let admitted = count(&served) - before;
    assert!(admitted <= LIMIT, "{admitted}");
    let stats = stage.service.stats().quota;
    assert!(stats.denied > 0 && stats.allowed > 0, "{stats:?}");
    assert_eq!((stats.streams, stats.refused), (1, 0));
}

#[tokio::test]
async fn the_workers_of_an_envoy_share_one_quota() {
    let stage = Stage::new().await;
    let (envoy, served) = stage.envoy_of(2).await;
    let sent = AtomicU32::new(0);
    // From several clients at once, with a connection per request, so that both workers get some.
    let send = async |times| {
        let some = || send(&envoy, "/api", times);
        tokio::join!(some(), some(), some(), some());
        sent.fetch_add(4 * times, Ordering::SeqCst);
    };
    eventually("much of what the limit allows is let through", async || {
        send(20).await;
        count(&served) >= MUCH
    })
    .await;
    // More than is left, so that the service learns of it, and then some more.
    send(LIMIT / 4).await;
    reported(&stage, count(&sent)).await;
    send(20).await;
    let admitted = count(&served);
    assert!(admitted <= LIMIT, "{admitted}");
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
    let sent = AtomicU32::new(0);
    let send = async |times| {
        tokio::join!(send(&one, "/api", times), send(&other, "/api", times));
        sent.fetch_add(2 * times, Ordering::SeqCst);
    };
    // In the last second of a minute nothing is assigned: both report their demand before either
    // has an assignment.
    stage.clock.move_to_second_of_next_minute(59);
    send(100).await;
    reported(&stage, count(&sent)).await;
    let admitted = || (count(&served_by_one), count(&served_by_other));
    assert_eq!(admitted(), (0, 0));

    stage.clock.move_to_second_of_next_minute(0);
    eventually("both have much of a minute", async || {
        send(20).await;
        let (one, other) = admitted();
        one + other >= MUCH && one.min(other) >= LIMIT / 3
    })
    .await;
    // More than the rest for each, so that the service learns of it, and then some more.
    send(LIMIT / 2).await;
    reported(&stage, count(&sent)).await;
    send(50).await;
    let (one, other) = admitted();
    assert!(one + other <= LIMIT, "{one} {other}");
}

#[tokio::test]
async fn a_login_without_a_client_is_limited_too() {
    let stage = Stage::new().await;
    let (envoy, _) = stage.envoy().await;
    // Rejected until the assignment comes; without a bucket it would be admitted.
    assert_eq!(send_as(&envoy, "/login", &[], 1).await, (0, 1));
    eventually("a login without a header is let through", async || {
        send_as(&envoy, "/login", &[], 1).await.0 == 1
    })
    .await;
    // An empty header counts as none, and a client has a bucket of its own.
    send_as(&envoy, "/login", &[("x-client", "")], 3).await;
    assert_eq!(send(&envoy, "/login", 1).await, (0, 1));
    eventually("a login of a client is let through", async || {
        send(&envoy, "/login", 1).await.0 == 1
    })
    .await;
    assert_eq!(stage.service.stats().quota.limits, 2);
}

#[tokio::test]
async fn without_the_service_envoy_spends_its_quota_and_then_rejects() {
    let stage = Stage::new().await;
    let (envoy, served) = stage.envoy().await;
    // So that the assignment lasts for a few seconds.
    stage.clock.move_to_second_of_next_minute(50);
    eventually("something is let through", async || {
        send(&envoy, "/api", 1).await.0 == 1
    })
    .await;
    stage.service.stop().await;
    eventually("nothing is let through", async || {
        send(&envoy, "/api", 20).await.0 == 0
    })
    .await;
    let before = count(&served);
    assert!(before <= LIMIT, "{before}");
    assert_eq!(send(&envoy, "/", 3).await, (3, 0), "no limit");
    // Another service at the same address.
    let again = start(&stage.config, &stage.socket, &stage.clock).await;
    stage.clock.move_to_second_of_next_minute(0);
    eventually("something is let through again", async || {
        send(&envoy, "/api", 10).await.0 > 0
    })
    .await;
    drop((again, stage.folder));
}
