//! Nodes that join and leave: there is always an aggregator, and nothing is lost.

use std::time::Duration;

use anteroom_kafka::LookBack;
use anteroom_limit::cost::Cost;
use anteroom_testkit::eventually;

use crate::kafka::support::{Cluster, a_minute, call, event, left, policy};

const HOUR: Duration = Duration::from_secs(3_600);
/// Enough clients to touch all partitions.
const CLIENTS: std::ops::Range<u128> = 0..24;

#[tokio::test]
async fn a_node_that_starts_later_reads_earlier_counts() {
    let cluster = Cluster::start();
    let [first, second] = cluster.nodes().await;
    let policy = a_minute(10);
    for client in CLIENTS {
        call(&first, &policy, client, Cost::take(4)).unwrap();
    }
    eventually("the counts are published", async || {
        CLIENTS
            .clone()
            .all(|client| left(&second, &policy, client) == Some(6))
    })
    .await;
    let later = cluster.node();
    eventually("the later node knows", async || {
        CLIENTS
            .clone()
            .all(|client| left(&later, &policy, client) == Some(6))
    })
    .await;
    // The first node learns of it with any aggregator.
    for client in CLIENTS {
        call(&later, &policy, client, Cost::take(5)).unwrap();
    }
    eventually("the first node knows", async || {
        CLIENTS
            .clone()
            .all(|client| left(&first, &policy, client) == Some(1))
    })
    .await;
}

#[tokio::test]
async fn when_nodes_leave_others_aggregate_and_nothing_is_lost() {
    let cluster = Cluster::start();
    let [first, second, third] = cluster.nodes().await;
    let policy = a_minute(100);
    for round in 1..=2 {
        for node in [&first, &second, &third] {
            for client in CLIENTS {
                call(node, &policy, client, Cost::take(2)).unwrap();
            }
        }
        if round == 1 {
            eventually("all know the first round", async || {
                let nodes = [&first, &second, &third];
                let mut known = nodes.iter().flat_map(|node| {
                    let policy = &policy;
                    CLIENTS.map(move |client| left(node, policy, client))
                });
                known.all(|left| left == Some(94))
            })
            .await;
        }
    }
    // One node sends its pending reports and leaves, the next one just ends.
    second.close();
    eventually("the others know the second round", async || {
        let mut known = CLIENTS.map(|client| left(&first, &policy, client));
        known.all(|left| left == Some(88))
    })
    .await;
    drop(third);
    let received = event(&first, "message_read");
    for client in CLIENTS {
        call(&first, &policy, client, Cost::take(3)).unwrap();
    }
    // One change of the group at a time: each takes seconds without an aggregator.
    eventually("the first node aggregates its own reports", async || {
        event(&first, "message_read") >= received + CLIENTS.count() as u64
    })
    .await;
    let newcomer = cluster.node();
    eventually("a newcomer knows all of it", async || {
        CLIENTS
            .clone()
            .all(|client| left(&newcomer, &policy, client) == Some(85))
    })
    .await;
}

#[tokio::test]
async fn a_refund_is_available_at_all_nodes() {
    let cluster = Cluster::start();
    let [first, second] = cluster.nodes().await;
    let policy = a_minute(10);
    call(&first, &policy, 1, Cost::take(7)).unwrap();
    eventually("the other node knows", async || {
        left(&second, &policy, 1) == Some(3)
    })
    .await;
    call(&second, &policy, 1, Cost::refund(4)).unwrap();
    eventually("the first node knows", async || {
        left(&first, &policy, 1) == Some(7)
    })
    .await;
    call(&first, &policy, 1, Cost::refund(100)).unwrap();
    eventually("all is refunded", async || {
        left(&second, &policy, 1) == Some(10)
    })
    .await;
}

/// The mock finds nothing by time. So older totals are skipped, as they should be if they are too
/// old, and later ones are read.
#[tokio::test]
async fn a_node_that_looks_back_by_time_reads_new_totals() {
    let cluster = Cluster::start();
    let [first] = cluster.nodes().await;
    let mut settings = cluster.settings();
    settings.look_back = LookBack::For(HOUR);
    let later = cluster.node_with(settings);
    let policy = a_minute(100_000);
    // The test cannot see which partitions are read yet, so the first node sends more until one
    // arrives.
    eventually("the later node reads new totals", async || {
        call(&first, &policy, 1, Cost::ONE).is_ok()
            && left(&later, &policy, 1).is_some_and(|left| left < 100_000)
    })
    .await;
    eventually("the later node knows the whole count", async || {
        let known = [&first, &later].map(|node| left(node, &policy, 1));
        known[0].is_some() && known[0] == known[1]
    })
    .await;
}

/// An operator gives a client a longer window than any limit has: earlier requests must count at a
/// new node, too.
#[tokio::test]
async fn a_long_window_is_read_from_the_beginning_of_the_topic() {
    let cluster = Cluster::start();
    let [first] = cluster.nodes().await;
    let [an_hour, a_day] = [1, 24].map(|hours| policy(10, HOUR * hours));
    for client in CLIENTS {
        call(&first, &a_day, client, Cost::take(4)).unwrap();
    }
    let published = || event(&first, "total_read");
    let before = published();
    eventually("the counts are published", async || {
        published() >= before + CLIENTS.count() as u64
    })
    .await;
    let mut settings = cluster.settings();
    settings.look_back = LookBack::For(2 * HOUR);
    // The mock finds nothing by time.
    let later = cluster.node_with(settings);
    eventually("the later node reads new totals and counts", async || {
        event(&later, "total_read") > 0 && left(&later, &an_hour, 1).is_some()
    })
    .await;
    assert_eq!(event(&later, "backlog_found"), 0);
    // The node may also receive some of it as the aggregator of a partition.
    eventually("the later node has read the backlog", async || {
        let mut known = CLIENTS.map(|client| left(&later, &a_day, client));
        let past = ["backlog_found", "backlog_read"].map(|word| event(&later, word));
        known.all(|left| left == Some(6)) && past[0] >= CLIENTS.count() as u64 && past[0] == past[1]
    })
    .await;
}
