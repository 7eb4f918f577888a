//! Nodes that come and go: somebody always sums up, and nothing is lost.

use std::time::Duration;

use anteroom_kafka::LookBack;
use anteroom_limit::cost::Cost;
use anteroom_testkit::eventually;

use crate::kafka::support::{Cluster, a_minute, call, event, left, policy};

const HOUR: Duration = Duration::from_secs(3_600);
/// As many as touch all partitions.
const CLIENTS: std::ops::Range<u128> = 0..24;

#[tokio::test]
async fn a_node_that_starts_later_hears_what_was_counted_before() {
    let cluster = Cluster::start();
    let [first, second] = cluster.nodes().await;
    let policy = a_minute(10);
    for client in CLIENTS {
        call(&first, &policy, client, Cost::take(4)).unwrap();
    }
    eventually("it was published", async || {
        CLIENTS
            .clone()
            .all(|client| left(&second, &policy, client) == Some(6))
    })
    .await;
    let later = cluster.node();
    eventually("the later one knows", async || {
        CLIENTS
            .clone()
            .all(|client| left(&later, &policy, client) == Some(6))
    })
    .await;
    // And the first one hears of it, whoever sums up now.
    for client in CLIENTS {
        call(&later, &policy, client, Cost::take(5)).unwrap();
    }
    eventually("the first one knows", async || {
        CLIENTS
            .clone()
            .all(|client| left(&first, &policy, client) == Some(1))
    })
    .await;
}

#[tokio::test]
async fn when_nodes_leave_others_sum_up_and_nothing_is_lost() {
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
    // One says what it had not told yet and leaves, the next one just goes.
    second.close();
    eventually("the others know the second round", async || {
        let mut known = CLIENTS.map(|client| left(&first, &policy, client));
        known.all(|left| left == Some(88))
    })
    .await;
    drop(third);
    let heard = event(&first, "message_read");
    for client in CLIENTS {
        call(&first, &policy, client, Cost::take(3)).unwrap();
    }
    // One change of the group after the other: each takes seconds, in which nobody sums up.
    eventually("the first one sums up what it tells", async || {
        event(&first, "message_read") >= heard + CLIENTS.count() as u64
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
async fn what_is_given_back_is_free_for_all() {
    let cluster = Cluster::start();
    let [first, second] = cluster.nodes().await;
    let policy = a_minute(10);
    call(&first, &policy, 1, Cost::take(7)).unwrap();
    eventually("the other knows", async || {
        left(&second, &policy, 1) == Some(3)
    })
    .await;
    call(&second, &policy, 1, Cost::refund(4)).unwrap();
    eventually("the first knows", async || {
        left(&first, &policy, 1) == Some(7)
    })
    .await;
    call(&first, &policy, 1, Cost::refund(100)).unwrap();
    eventually("all is free", async || {
        left(&second, &policy, 1) == Some(10)
    })
    .await;
}

/// The mock answers whoever asks it by time that nothing is so new: what came before is left out
/// then, as it should be if it is too old, and what comes later is heard.
#[tokio::test]
async fn who_looks_back_by_time_hears_what_is_new() {
    let cluster = Cluster::start();
    let [first] = cluster.nodes().await;
    let mut settings = cluster.settings();
    settings.look_back = LookBack::For(HOUR);
    let later = cluster.node_with(settings);
    let policy = a_minute(100_000);
    // Which partitions it has begun to read it does not say, so the first one tells more until it
    // is heard.
    eventually("it hears what is new", async || {
        call(&first, &policy, 1, Cost::ONE).is_ok()
            && left(&later, &policy, 1).is_some_and(|left| left < 100_000)
    })
    .await;
    eventually("it knows all of it", async || {
        let known = [&first, &later].map(|node| left(node, &policy, 1));
        known[0].is_some() && known[0] == known[1]
    })
    .await;
}

/// An operator gives a client a longer window than any limit has: what it did before a node started
/// counts there, too.
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
    eventually("it was published", async || {
        published() >= before + CLIENTS.count() as u64
    })
    .await;
    let mut settings = cluster.settings();
    settings.look_back = LookBack::For(2 * HOUR);
    // By time the mock finds nothing.
    let later = cluster.node_with(settings);
    eventually("it reads what is new, and counts", async || {
        event(&later, "total_read") > 0 && left(&later, &an_hour, 1).is_some()
    })
    .await;
    assert_eq!(event(&later, "backlog_found"), 0);
    // Some of it may be heard otherwise, if it becomes this node's to sum up.
    eventually("it knows what was before, and has read it", async || {
        let mut known = CLIENTS.map(|client| left(&later, &a_day, client));
        let past = ["backlog_found", "backlog_read"].map(|word| event(&later, word));
        known.all(|left| left == Some(6)) && past[0] >= CLIENTS.count() as u64 && past[0] == past[1]
    })
    .await;
}
