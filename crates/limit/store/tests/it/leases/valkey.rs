//! Counts by leases over a real server: several nodes at once, losses, and the number of round
//! trips.

use std::sync::Arc;
use std::time::Duration;

use anteroom_config::{HostPort, StorePromise, Topology, ValkeyAddress};
use anteroom_limit::algorithm::Algorithm;
use anteroom_limit::cost::Cost;
use anteroom_limit::gcra::Gcra;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::sliding_log::SlidingLog;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::leases::{BootClock, Clock, LeaseStats, LeasedCounts, Settings};
use anteroom_limit_store::shared::{SharedAcquire, SharedCounts};
use anteroom_testkit::eventually;
use anteroom_testkit::redis_server::{RedisServer, Reply};
use anteroom_valkey::ValkeyLeases;
use futures_util::future::join_all;
use tokio::time::interval;

const NODES: usize = 4;
const WINDOW: DurationUs = DurationUs::from_secs(4);

fn counts(server: &RedisServer) -> LeasedCounts {
    let address = ValkeyAddress {
        topology: Topology::Single(HostPort {
            host: "127.0.0.1".to_owned(),
            port: server.port(),
        }),
        database: 0,
        username: None,
        password: None,
        tls: None,
        promise: StorePromise::default(),
    };
    let store = ValkeyLeases::new(&address, "anteroom").unwrap();
    LeasedCounts::new(Arc::new(store), Settings::default()).unwrap()
}

fn log(requests: u32) -> Policy {
    let rate = Rate::new(requests, WINDOW).unwrap();
    Policy::SlidingLog(SlidingLog::new(rate).unwrap())
}

/// Request that was admitted between two points in time.
struct Admitted {
    from: TimestampUs,
    until: TimestampUs,
}

/// Sends a request every few milliseconds until the given time.
async fn keep_sending(node: &LeasedCounts, policy: &Policy, until: TimestampUs) -> Vec<Admitted> {
    let request = [SharedAcquire {
        limit: "api",
        policy,
        key: ClientKey(1),
        cost: Cost::ONE,
    }];
    let mut admitted = Vec::new();
    let mut ticks = interval(Duration::from_millis(5));
    while BootClock.now() < until {
        ticks.tick().await;
        let from = BootClock.now();
        let outcome = node.acquire(&request).await;
        if outcome.is_ok_and(|verdicts| verdicts[0].is_allowed()) {
            let until = BootClock.now();
            admitted.push(Admitted { from, until });
        }
    }
    admitted
}

/// Returns the most requests that were certainly admitted within one window.
fn most_in_a_window(admitted: &[Admitted]) -> usize {
    let begins = admitted.iter().map(|one| one.from);
    let in_window = |begin: TimestampUs| {
        let is_inside = |one: &&Admitted| one.from >= begin && one.until < begin + WINDOW;
        admitted.iter().filter(is_inside).count()
    };
    begins.map(in_window).max().unwrap_or(0)
}

/// Sends requests at four nodes for `secs` seconds, while `happens` runs.
async fn send_during(
    server: &mut RedisServer,
    policy: &Policy,
    secs: u64,
    happens: impl AsyncFnOnce(&mut RedisServer),
) -> (Vec<Admitted>, Vec<LeaseStats>) {
    let nodes: Vec<LeasedCounts> = (0..NODES).map(|_| counts(server)).collect();
    nodes[0].assume_empty().await.unwrap();
    let until = BootClock.now() + DurationUs::from_secs(secs);
    let requests = nodes
        .iter()
        .flat_map(|node| [node, node])
        .map(|node| keep_sending(node, policy, until));
    let (admitted, ()) = tokio::join!(join_all(requests), happens(server));
    let stats = nodes.iter().map(LeasedCounts::stats).collect();
    (admitted.into_iter().flatten().collect(), stats)
}

fn sum(stats: &[LeaseStats], stat: impl Fn(&LeaseStats) -> u64) -> u64 {
    stats.iter().map(stat).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_nodes_at_once_keep_the_limit_and_use_most_of_it() {
    let gcra = Gcra::new(Rate::new(1_000, WINDOW).unwrap(), 500).unwrap();
    for policy in [log(1_000), Policy::Gcra(gcra)] {
        let mut server = RedisServer::start().await;
        let (admitted, stats) = send_during(&mut server, &policy, 9, async |_| {}).await;
        let most = most_in_a_window(&admitted);
        let promised = policy.window_cost_max(1);
        assert!(most as u64 <= promised, "{most} of {promised}");
        let requests = sum(&stats, |one| one.decided_here + one.waited);
        println!(
            "{policy:?}: of {requests} requests in 9 s {} admitted, at most {most} in a window of \
             {promised}; \
             {} round trips per 1,000 requests, {} waited, {} conflicts, {} forfeited",
            admitted.len(),
            sum(&stats, |one| one.round_trips) * 1_000 / requests,
            sum(&stats, |one| one.waited),
            sum(&stats, |one| one.conflicts),
            sum(&stats, LeaseStats::forfeited),
        );
        assert!(!admitted.is_empty());
        if let Policy::SlidingLog(_) = policy {
            // Known rejections need no request for seconds.
            let here = sum(&stats, |one| one.decided_here);
            assert!(here > sum(&stats, |one| one.waited), "{stats:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flushed_and_restarted_server_grants_no_more_than_the_limit() {
    let mut server = RedisServer::start().await;
    let policy = log(400);
    let (admitted, stats) = send_during(&mut server, &policy, 16, async |server| {
        let mut ticks = interval(Duration::from_millis(1_500));
        ticks.tick().await;
        ticks.tick().await;
        server.send_ok(&["FLUSHALL"]).await;
        ticks.tick().await;
        server.restart().await;
    })
    .await;
    let most = most_in_a_window(&admitted);
    assert!(most <= 400, "{most}");
    assert!(sum(&stats, |one| one.epochs_begun) >= 3, "{stats:?}");
    let node = counts(&server);
    eventually("leases are granted again", async || {
        let request = [SharedAcquire {
            limit: "api",
            policy: &policy,
            key: ClientKey(1),
            cost: Cost::ONE,
        }];
        let outcome = node.acquire(&request).await;
        outcome.is_ok_and(|verdicts| verdicts[0].is_allowed())
    })
    .await;
}

/// The limit is for a day: a client that counts as over it stays so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_that_logs_its_writes_goes_on() {
    for fsync in ["everysec", "always"] {
        let arguments = ["--appendonly", "yes", "--appendfsync", fsync];
        let mut server = RedisServer::start_with(&arguments).await;
        let rate = Rate::new(200, DurationUs::from_secs(86_400)).unwrap();
        let policy = Policy::SlidingLog(SlidingLog::new(rate).unwrap());
        let nodes = [counts(&server), counts(&server)];
        for node in &nodes {
            node.expect_requests();
        }
        let acquire = async |node: &LeasedCounts, key| {
            let request = SharedAcquire {
                limit: "api",
                policy: &policy,
                key: ClientKey(key),
                cost: Cost::ONE,
            };
            node.acquire(&[request]).await
        };
        let is_allowed = async |node: &LeasedCounts, key| {
            let outcome = acquire(node, key).await;
            outcome.is_ok_and(|verdicts| verdicts[0].is_allowed())
        };
        let mut admitted = 0;
        for node in &nodes {
            eventually("leases are granted", async || {
                is_allowed(node, 1).await && node.is_ready()
            })
            .await;
        }
        let before: u64 = nodes.iter().map(|node| node.stats().epochs_begun).sum();
        for node in &nodes {
            for _ in 0..20 {
                admitted += u32::from(is_allowed(node, 2).await);
            }
        }
        assert_eq!(admitted, 40);
        server.kill();
        assert!(acquire(&nodes[0], 3).await.is_err());
        server.restart().await;
        for node in &nodes {
            eventually("leases are granted again", async || {
                is_allowed(node, 4).await
            })
            .await;
        }
        let stats: Vec<LeaseStats> = nodes.iter().map(LeasedCounts::stats).collect();
        assert_eq!(sum(&stats, |one| one.epochs_begun), before, "{stats:?}");
        for _ in 0..200 {
            admitted += u32::from(is_allowed(&nodes[0], 2).await);
        }
        assert!(admitted > 150, "{admitted} of 200 in all");
        assert!(admitted <= 200, "{admitted}");
        join_all(nodes.iter().map(|node| node.finish(false))).await;
    }
}

#[tokio::test]
async fn client_records_expire_and_the_epoch_does_not() {
    let server = RedisServer::start().await;
    let node = counts(&server);
    node.assume_empty().await.unwrap();
    let (policy, key) = (log(10), ClientKey(0xAB));
    let request = SharedAcquire {
        limit: "api",
        policy: &policy,
        key,
        cost: Cost::ONE,
    };
    node.acquire(&[request]).await.unwrap();
    let expiry = async |key: &str| server.send_ok(&["PTTL", key]).await;
    assert_eq!(expiry("anteroom:{lent~0}").await, Reply::Int(-1));
    let client = format!("anteroom:{{lent~0}}:api:{:032x}", key.0);
    let Reply::Int(ms @ 4_000..=6_000) = expiry(&client).await else {
        panic!("{client} has an unexpected expiry");
    };
    assert!(ms > 0);
    eventually("the client is forgotten", async || {
        server.send_ok(&["DBSIZE"]).await == Reply::Int(1)
    })
    .await;
}
