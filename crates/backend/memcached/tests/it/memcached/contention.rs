//! Many nodes with requests of one client: counters scale, states do not, and neither exceeds the
//! limit.
//!
//! `docs/explanation/benchmarks-limits.md` has the results; `--nocapture` prints them.

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
const REQUESTS: u32 = 100;

/// Outcomes of the requests of all nodes.
#[derive(Debug, Default)]
struct Outcomes {
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
    found.expect("the event is counted").1
}

/// Sends requests from all nodes at once, one after the other at each.
async fn storm(port: u16, writers: u32, policy: &Policy) -> Outcomes {
    let all_are_connected = Arc::new(Barrier::new(writers as usize));
    let nodes = (0..writers).map(|_| async {
        let node = counts(port);
        call(&node, policy, Cost::Peek)
            .await
            .expect("the node connects");
        all_are_connected.wait().await;
        let mut outcomes = Outcomes::default();
        for _ in 0..REQUESTS {
            match call(&node, policy, Cost::ONE).await {
                Ok(verdict) if verdict.is_allowed() => outcomes.admitted += 1,
                Ok(_) => outcomes.rejected += 1,
                Err(CountsError::Busy { .. }) => outcomes.busy += 1,
                // The request may or may not have been counted.
                Err(CountsError::Late { .. }) => outcomes.late += 1,
                Err(error) => panic!("{error:?}"),
            }
        }
        outcomes.lost = event(&node, "cas_lost");
        outcomes.gave_up = event(&node, "cas_gave_up");
        outcomes
    });
    let sum = |mut sum: Outcomes, one: Outcomes| {
        sum.admitted += one.admitted;
        sum.rejected += one.rejected;
        sum.busy += one.busy;
        sum.late += one.late;
        sum.lost += one.lost;
        sum.gave_up += one.gave_up;
        sum
    };
    let all = join_all(nodes).await;
    all.into_iter().fold(Outcomes::default(), sum)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_nodes_that_swap_one_state_never_exceed_the_limit() {
    for writers in [1, 2, 4, 8, WRITERS] {
        let server = MemcachedServer::start().await;
        let limit = 1_000_000;
        let outcomes = storm(server.port(), writers, &gcra(limit)).await;
        println!("gcra, {writers} writers: {outcomes:?}");
        // All requests that did not give up were admitted, and only those are counted.
        assert_eq!(outcomes.rejected, 0);
        let sum = outcomes.admitted + outcomes.busy + outcomes.late;
        assert_eq!(sum, writers * REQUESTS, "{outcomes:?}");
        assert_eq!(u64::from(outcomes.busy), outcomes.gave_up, "{outcomes:?}");
        let left = call(&counts(server.port()), &gcra(limit), Cost::Peek).await;
        let acquired = limit - left.unwrap().remaining;
        let most = outcomes.admitted + outcomes.late;
        assert!(
            (outcomes.admitted..=most).contains(&acquired),
            "{acquired} {outcomes:?}"
        );
        // The server and the nodes count the same attempts.
        let conflicts = server.stat("cas_badval").await;
        assert!(conflicts <= outcomes.lost, "{conflicts} {outcomes:?}");
        // A few nodes may never collide by chance.
        match writers {
            1 => assert_eq!(outcomes.lost, 0),
            WRITERS => assert!(outcomes.lost > 0, "{outcomes:?}"),
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_nodes_that_add_to_one_counter_lose_nothing() {
    let server = MemcachedServer::start().await;
    let half = WRITERS * REQUESTS / 2;
    let outcomes = storm(server.port(), WRITERS, &a_minute(half)).await;
    println!("fixed window, {WRITERS} writers: {outcomes:?}");
    assert_eq!(
        (outcomes.lost, outcomes.busy, outcomes.late),
        (0, 0, 0),
        "{outcomes:?}"
    );
    assert_eq!(
        (outcomes.admitted, outcomes.rejected),
        (half, half),
        "{outcomes:?}"
    );
    let left = call(&counts(server.port()), &a_minute(half), Cost::Peek).await;
    assert_eq!(left.unwrap().remaining, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_does_not_compete_with_itself() {
    let server = MemcachedServer::start().await;
    let node = counts(server.port());
    let policy = gcra(1_000);
    let requests = (0..64).map(|_| call(&node, &policy, Cost::ONE));
    for verdict in join_all(requests).await {
        assert!(verdict.unwrap().is_allowed());
    }
    assert_eq!(event(&node, "cas_lost"), 0);
}
