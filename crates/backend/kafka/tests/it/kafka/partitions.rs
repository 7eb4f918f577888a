//! An unavailable broker, and with it some partitions.

use anteroom_kafka::KafkaCounts;
use anteroom_limit::cost::Cost;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::shared::SharedCounts as _;
use anteroom_testkit::eventually;

use crate::kafka::support::{Cluster, PARTITIONS, a_minute, call, event, left};

/// Enough clients to touch all partitions.
const CLIENTS: std::ops::Range<u128> = 0..24;
const SECOND: i32 = 2;

fn cut_off(node: &KafkaCounts) -> Vec<u128> {
    let is_away = |client: &u128| node.is_unavailable("api", ClientKey(*client));
    CLIENTS.filter(is_away).collect()
}

#[tokio::test]
async fn an_unavailable_partition_cuts_off_its_clients_only() {
    let last = PARTITIONS - 1;
    let cluster = Cluster::with_second_leading(&[("test-calls", last), ("test-totals", last)]);
    let [first, second] = cluster.nodes().await;
    let policy = a_minute(1_000);
    for client in CLIENTS {
        call(&first, &policy, client, Cost::ONE).unwrap();
    }
    cluster.brokers.broker_down(SECOND).unwrap();
    // A busy node may be cut off from all partitions for a moment.
    eventually(
        "some clients are cut off, the same at both nodes",
        async || {
            let clients = cut_off(&first);
            let is_one_partition = (1..CLIENTS.count() / 2).contains(&clients.len());
            let is_rejected = |client: &u128| call(&first, &policy, *client, Cost::ONE).is_err();
            is_one_partition
                && clients == cut_off(&second)
                && clients == CLIENTS.filter(is_rejected).collect::<Vec<u128>>()
        },
    )
    .await;
    cluster.brokers.broker_up(SECOND).unwrap();
    eventually("all clients are available and counted alike", async || {
        let known = [&first, &second].map(|node| CLIENTS.map(|client| left(node, &policy, client)));
        let [first, second] = known.map(Iterator::collect::<Option<Vec<u32>>>);
        first.is_some() && first == second
    })
    .await;
}

/// A total that no broker accepted must be published by the next reader of the reports, even if all
/// its senders have ended.
#[tokio::test]
async fn reports_count_as_read_once_brokers_have_their_totals() {
    let totals: Vec<(&str, i32)> = (0..PARTITIONS).map(|of| ("test-totals", of)).collect();
    let cluster = Cluster::with_second_leading(&totals);
    let [first] = cluster.nodes().await;
    cluster.brokers.broker_down(SECOND).unwrap();
    let policy = a_minute(10);
    let received = event(&first, "message_read");
    for client in CLIENTS {
        call(&first, &policy, client, Cost::take(4)).unwrap();
    }
    eventually("its reports are read", async || {
        event(&first, "message_read") >= received + 2 * CLIENTS.count() as u64
    })
    .await;
    first.close();
    drop(first);
    cluster.brokers.broker_up(SECOND).unwrap();
    let second = cluster.node();
    eventually("another node knows them", async || {
        CLIENTS
            .clone()
            .all(|client| left(&second, &policy, client) == Some(6))
    })
    .await;
}
