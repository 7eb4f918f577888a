//! Brokers of which one is away, and with it some partitions.

use anteroom_kafka::KafkaCounts;
use anteroom_limit::cost::Cost;
use anteroom_limit_store::CallKey;
use anteroom_limit_store::shared::SharedCounts as _;
use anteroom_testkit::eventually;

use crate::kafka::support::{Cluster, PARTITIONS, a_minute, call, event, left};

/// As many as touch all partitions.
const CLIENTS: std::ops::Range<u128> = 0..24;
const SECOND: i32 = 2;

fn away(node: &KafkaCounts) -> Vec<u128> {
    let is_away = |client: &u128| node.is_away("api", CallKey(*client));
    CLIENTS.filter(is_away).collect()
}

#[tokio::test]
async fn while_one_partition_is_away_so_are_its_clients_and_no_others() {
    let last = PARTITIONS - 1;
    let cluster = Cluster::led_by_second(&[("test-calls", last), ("test-totals", last)]);
    let [first, second] = cluster.nodes().await;
    let policy = a_minute(1_000);
    for client in CLIENTS {
        call(&first, &policy, client, Cost::ONE).unwrap();
    }
    cluster.brokers.broker_down(SECOND).unwrap();
    // A node that is busy may find itself away altogether, for a moment.
    eventually(
        "some clients are away, the same at both nodes",
        async || {
            let clients = away(&first);
            let is_one_partition = (1..CLIENTS.count() / 2).contains(&clients.len());
            let is_refused = |client: &u128| call(&first, &policy, *client, Cost::ONE).is_err();
            is_one_partition
                && clients == away(&second)
                && clients == CLIENTS.filter(is_refused).collect::<Vec<u128>>()
        },
    )
    .await;
    cluster.brokers.broker_up(SECOND).unwrap();
    eventually("all are there again, and counted alike", async || {
        let known = [&first, &second].map(|node| CLIENTS.map(|client| left(node, &policy, client)));
        let [first, second] = known.map(Iterator::collect::<Option<Vec<u32>>>);
        first.is_some() && first == second
    })
    .await;
}

/// A total that no broker took must be published by whoever reads the calls next, though all who
/// told them are gone.
#[tokio::test]
async fn calls_count_as_read_when_brokers_have_what_was_made_of_them() {
    let totals: Vec<(&str, i32)> = (0..PARTITIONS).map(|of| ("test-totals", of)).collect();
    let cluster = Cluster::led_by_second(&totals);
    let [first] = cluster.nodes().await;
    cluster.brokers.broker_down(SECOND).unwrap();
    let policy = a_minute(10);
    let heard = event(&first, "message_read");
    for client in CLIENTS {
        call(&first, &policy, client, Cost::take(4)).unwrap();
    }
    eventually("its calls are read", async || {
        event(&first, "message_read") >= heard + 2 * CLIENTS.count() as u64
    })
    .await;
    first.close();
    drop(first);
    cluster.brokers.broker_up(SECOND).unwrap();
    let second = cluster.node();
    eventually("another one knows them", async || {
        CLIENTS
            .clone()
            .all(|client| left(&second, &policy, client) == Some(6))
    })
    .await;
}
