//! Many nodes that call for one client: counters do not mind, states collapse, and neither admits
//! too many.
//!
//! What is counted here stands in `docs/explanation/benchmarks-limits.md`; `--nocapture` prints it.

use std::sync::Arc;

use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_limit_store::shared::{CountsError, SharedCounts as _};
use anteroom_memcached::MemcachedCounts;
use anteroom_testkit::memcached_server::MemcachedServer;
use futures_util::future::join_all;
use tokio::sync::Barrier;

use crate::memcached::support::{a_minute, call, counts, gcra};

const WRITERS: u32 = 16;
const CALLS: u32 = 100;

/// What became of the calls of all nodes.
#[derive(Debug, Default)]
struct Tally {
    admitted: u32,
    rejected: u32,
    busy: u32,
    late: u32,
    lost: u64,
    gave_up: u64,
}

fn event(node: &MemcachedCounts, word: &str) -> u64 {
    let events = node.events();
    let found = events.iter().find(|(name, _)| *name == word);
    found.expect("it counts that").1
}

/// All nodes call at once, one call after the other each.
async fn storm(port: u16, writers: u32, policy: &Policy) -> Tally {
    let all_are_connected = Arc::new(Barrier::new(writers as usize));
    let nodes = (0..writers).map(|_| async {
        let node = counts(port);
        call(&node, policy, Cost::Peek).await.expect("it connects");
        all_are_connected.wait().await;
        let mut event_counts = Tally::default();
        for _ in 0..CALLS {
            match call(&node, policy, Cost::ONE).await {
                Ok(verdict) if verdict.is_admitted() => event_counts.admitted += 1,
                Ok(_) => event_counts.rejected += 1,
                Err(CountsError::Busy { .. }) => event_counts.busy += 1,
                // Nobody knows then whether it was charged.
                Err(CountsError::Late { .. }) => event_counts.late += 1,
                Err(error) => panic!("{error:?}"),
            }
        }
        event_counts.lost = event(&node, "cas_lost");
        event_counts.gave_up = event(&node, "cas_gave_up");
        event_counts
    });
    let sum = |mut sum: Tally, one: Tally| {
        sum.admitted += one.admitted;
        sum.rejected += one.rejected;
        sum.busy += one.busy;
        sum.late += one.late;
        sum.lost += one.lost;
        sum.gave_up += one.gave_up;
        sum
    };
    let all = join_all(nodes).await;
    all.into_iter().fold(Tally::default(), sum)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_nodes_that_swap_one_state_admit_none_too_many() {
    for writers in [1, 2, 4, 8, WRITERS] {
        let server = MemcachedServer::start().await;
        let limit = 1_000_000;
        let event_counts = storm(server.port(), writers, &gcra(limit)).await;
        println!("gcra, {writers} writers: {event_counts:?}");
        // All that were not given up were admitted, and just those are charged.
        assert_eq!(event_counts.rejected, 0);
        let told = event_counts.admitted + event_counts.busy + event_counts.late;
        assert_eq!(told, writers * CALLS, "{event_counts:?}");
        assert_eq!(
            u64::from(event_counts.busy),
            event_counts.gave_up,
            "{event_counts:?}"
        );
        let left = call(&counts(server.port()), &gcra(limit), Cost::Peek).await;
        let charged = limit - left.unwrap().remaining;
        let most = event_counts.admitted + event_counts.late;
        assert!(
            (event_counts.admitted..=most).contains(&charged),
            "{charged} {event_counts:?}"
        );
        // The server counts the same attempts as we do.
        let conflicts = server.stat("cas_badval").await;
        assert!(
            conflicts <= event_counts.lost,
            "{conflicts} {event_counts:?}"
        );
        // Few nodes may by chance never meet.
        match writers {
            1 => assert_eq!(event_counts.lost, 0),
            WRITERS => assert!(event_counts.lost > 0, "{event_counts:?}"),
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_nodes_that_add_to_one_counter_lose_nothing() {
    let server = MemcachedServer::start().await;
    let half = WRITERS * CALLS / 2;
    let event_counts = storm(server.port(), WRITERS, &a_minute(half)).await;
    println!("fixed window, {WRITERS} writers: {event_counts:?}");
    assert_eq!(
        (event_counts.lost, event_counts.busy, event_counts.late),
        (0, 0, 0),
        "{event_counts:?}"
    );
    assert_eq!(
        (event_counts.admitted, event_counts.rejected),
        (half, half),
        "{event_counts:?}"
    );
    let left = call(&counts(server.port()), &a_minute(half), Cost::Peek).await;
    assert_eq!(left.unwrap().remaining, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_does_not_lose_against_itself() {
    let server = MemcachedServer::start().await;
    let node = counts(server.port());
    let policy = gcra(1_000);
    let calls = (0..64).map(|_| call(&node, &policy, Cost::ONE));
    for verdict in join_all(calls).await {
        assert!(verdict.unwrap().is_admitted());
    }
    assert_eq!(event(&node, "cas_lost"), 0);
}
