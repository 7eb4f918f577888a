//! Nodes that acquire for one client at once, by the server's clock, never exceed the limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::gcra::Gcra;
use anteroom_limit::leaky_bucket::LeakyBucket;
use anteroom_limit::policy::Policy;
use anteroom_limit::sliding_log::SlidingLog;
use anteroom_limit::sliding_window::SlidingWindow;
use anteroom_limit::sub_windows::SubWindows;
use anteroom_limit::token_bucket::TokenBucket;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::shared::{SharedAcquire, SharedCounts as _};
use anteroom_testkit::redis_server::{RedisCluster, RedisServer};
use anteroom_valkey::ValkeyCounts;

use super::{counts, rate};
use crate::support::{cluster, single};

const TASKS: u32 = 8;
const REQUESTS_EACH: u32 = 30;
const REQUESTS: u32 = 100;

/// Returns limits of a hundred requests a day and as a burst: none is freed during a test.
fn policies() -> [(&'static str, Policy); 8] {
    let rate = rate(REQUESTS, 86_400);
    [
        ("log", Policy::SlidingLog(SlidingLog::new(rate).unwrap())),
        ("fixed", Policy::FixedWindow(FixedWindow::new(rate))),
        ("sliding", Policy::SlidingWindow(SlidingWindow::new(rate))),
        (
            "sub",
            Policy::SubWindows(SubWindows::new(rate, 24).unwrap()),
        ),
        (
            "strict",
            Policy::SubWindows(SubWindows::strict(rate, 24).unwrap()),
        ),
        (
            "bucket",
            Policy::TokenBucket(TokenBucket::new(rate, REQUESTS, REQUESTS).unwrap()),
        ),
        ("gcra", Policy::Gcra(Gcra::new(rate, REQUESTS).unwrap())),
        (
            "leaky",
            Policy::LeakyBucket(LeakyBucket::new(rate, REQUESTS - 1)),
        ),
    ]
}

/// Acquires from these limits in many tasks of two nodes; returns the number of admitted requests.
async fn acquire_at_once(
    nodes: &[Arc<ValkeyCounts>; 2],
    limits: &'static [&'static str],
    policies: &[Policy],
) -> u32 {
    let admitted = Arc::new(AtomicU32::new(0));
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let node = Arc::clone(&nodes[task as usize % 2]);
            let (admitted, policies) = (Arc::clone(&admitted), policies.to_vec());
            tokio::spawn(async move {
                let both = limits.iter().zip(&policies);
                let mut acquires: Vec<_> = both
                    .map(|(limit, policy)| SharedAcquire {
                        limit,
                        policy,
                        key: ClientKey(1),
                        cost: Cost::ONE,
                    })
                    .collect();
                // Vary the order of the limits.
                acquires.rotate_left(task as usize % limits.len());
                for _ in 0..REQUESTS_EACH {
                    let verdicts = node.acquire(&acquires).await.unwrap();
                    let is_admitted = verdicts.iter().all(|verdict| verdict.is_allowed());
                    admitted.fetch_add(u32::from(is_admitted), Ordering::SeqCst);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(nodes.each_ref().map(|node| node.disagreements()), [0, 0]);
    admitted.load(Ordering::SeqCst)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_with_many_tasks_never_exceed_the_limit_of_a_client() {
    let server = RedisServer::start().await;
    let address = single(server.port());
    let nodes = [(); 2].map(|()| Arc::new(counts(&address)));
    for (name, policy) in policies() {
        let limits: &'static [&'static str] = Box::leak(Box::new([name]));
        let admitted = acquire_at_once(&nodes, limits, &[policy]).await;
        let most = policy.window_cost_max(1);
        assert!(u64::from(admitted) <= most, "{name}: {admitted} of {most}");
        // At midnight the requests of two days may be admitted.
        assert!(admitted >= REQUESTS, "{name}: {admitted}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_that_are_acquired_together_all_hold() {
    let server = RedisServer::start().await;
    let address = single(server.port());
    let nodes = [(); 2].map(|()| Arc::new(counts(&address)));
    let [(_, log), _, _, _, (_, strict), (_, bucket), ..] = policies();
    let admitted = acquire_at_once(&nodes, &["a", "b", "c"], &[strict, log, bucket]).await;
    assert_eq!(admitted, REQUESTS);
}

/// Limits at several servers are acquired one after the other, and some requests are rejected
/// because of others that are refunded later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_at_several_servers_all_hold() {
    let servers = RedisCluster::start().await;
    let address = cluster(servers.servers()[0].port());
    let nodes = [(); 2].map(|()| Arc::new(counts(&address)));
    let [(_, log), _, _, _, (_, strict), (_, bucket), ..] = policies();
    let admitted = acquire_at_once(&nodes, &["a", "b", "c"], &[strict, log, bucket]).await;
    assert!(admitted <= REQUESTS, "{admitted}");
    // Refunds are available to later requests.
    let left = acquire_at_once(&nodes, &["a", "b", "c"], &[strict, log, bucket]).await;
    assert!(admitted + left <= REQUESTS, "{admitted} {left}");
    let mut acquires = ["a", "b", "c"].map(|limit| SharedAcquire {
        limit,
        policy: &strict,
        key: ClientKey(1),
        cost: Cost::Peek,
    });
    acquires[1].policy = &log;
    acquires[2].policy = &bucket;
    let verdicts = nodes[0].acquire(&acquires).await.unwrap();
    for verdict in verdicts {
        assert_eq!(verdict.remaining, REQUESTS - admitted - left);
    }
}
