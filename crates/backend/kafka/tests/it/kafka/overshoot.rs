//! Overshoot where several nodes serve one client.

use anteroom_kafka::KafkaCounts;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_testkit::eventually;

use crate::kafka::support::{Cluster, a_minute, call, left};

const LIMIT: u32 = 100;

fn admitted(node: &KafkaCounts, policy: &Policy, client: u128, requests: u32) -> u32 {
    let requests = (0..requests).map(|_| call(node, policy, client, Cost::ONE).unwrap());
    u32::try_from(requests.filter(|verdict| verdict.is_allowed()).count()).unwrap()
}

/// Sends ten times the limit as fast as possible. This is the worst case, as no node learns of the
/// others meanwhile.
async fn at_once<const N: usize>() {
    let cluster = Cluster::start();
    let nodes: [KafkaCounts; N] = cluster.nodes().await;
    let policy = a_minute(LIMIT);
    let each = 10 * LIMIT / u32::try_from(N).unwrap();
    let sum: u32 = nodes
        .iter()
        .map(|node| admitted(node, &policy, 1, each))
        .sum();
    let ratio = f64::from(sum) / f64::from(LIMIT);
    eprintln!("{N} nodes at once: {sum} of {LIMIT} admitted, {ratio:.2}");
    let most = LIMIT * u32::try_from(N).unwrap();
    assert!((LIMIT..=most).contains(&sum), "{sum}");
    // Soon all nodes know all counts: nothing is left at any node until that much is refunded.
    eventually("all nodes know the count", async || {
        nodes.iter().all(|node| left(node, &policy, 1) == Some(0))
    })
    .await;
    let over = sum - LIMIT;
    let larger = a_minute(10 * LIMIT);
    eventually("all nodes count the same", async || {
        let rest = 10 * LIMIT - LIMIT - over;
        nodes
            .iter()
            .all(|node| left(node, &larger, 1) == Some(rest))
    })
    .await;
}

#[tokio::test]
async fn two_nodes_at_once_admit_at_most_twice_the_limit() {
    at_once::<2>().await;
}

#[tokio::test]
async fn four_nodes_at_once_admit_at_most_four_times_the_limit() {
    at_once::<4>().await;
}

/// Sends rounds of requests and waits for the totals after each. In a round each node admits what
/// it would if the others were idle, so the overshoot is a round of the others at most.
async fn in_rounds<const N: usize>(each: u32) {
    let cluster = Cluster::start();
    let nodes: [KafkaCounts; N] = cluster.nodes().await;
    let policy = a_minute(LIMIT);
    let known = a_minute(100 * LIMIT);
    let mut sum = 0;
    for _ in 0..(10 * LIMIT).div_ceil(each * u32::try_from(N).unwrap()) {
        let before = sum;
        sum += nodes
            .iter()
            .map(|node| admitted(node, &policy, 1, each))
            .sum::<u32>();
        if sum == before {
            break;
        }
        eventually("a round is known to all", async || {
            let rest = 100 * LIMIT - sum;
            nodes.iter().all(|node| left(node, &known, 1) == Some(rest))
        })
        .await;
    }
    let most = LIMIT + (u32::try_from(N).unwrap() - 1) * each;
    eprintln!("{N} nodes in rounds of {each}: {sum} of {LIMIT} admitted, {most} at most");
    assert!((LIMIT..=most).contains(&sum), "{sum}");
}

#[tokio::test]
async fn two_nodes_overshoot_by_one_round_of_the_other() {
    in_rounds::<2>(15).await;
}

#[tokio::test]
async fn four_nodes_overshoot_by_one_round_of_the_others() {
    in_rounds::<4>(7).await;
}
