//! Unavailable brokers, and topics with messages of other programs.

use anteroom_limit::cost::Cost;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::shared::{CountsError, SharedCounts as _, chain};
use anteroom_testkit::eventually;
use rdkafka::ClientConfig;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};

use crate::kafka::support::{Cluster, a_minute, call, event, left};

const ALL_BROKERS: i32 = -1;

#[tokio::test]
async fn without_brokers_nodes_decide_alone_and_catch_up_later() {
    let cluster = Cluster::start();
    let [first, second] = cluster.nodes().await;
    let policy = a_minute(10);
    call(&first, &policy, 1, Cost::take(2)).unwrap();
    eventually("the other node knows", async || {
        left(&second, &policy, 1) == Some(8)
    })
    .await;
    cluster.brokers.broker_down(ALL_BROKERS).unwrap();
    // Both decide by what they know; neither exceeds the limit.
    assert_eq!(
        call(&first, &policy, 1, Cost::take(8)).unwrap().remaining,
        0
    );
    assert_eq!(
        call(&second, &policy, 1, Cost::take(5)).unwrap().remaining,
        3
    );
    assert!(!call(&first, &policy, 1, Cost::ONE).unwrap().is_allowed());
    for node in [&first, &second] {
        eventually("the node is cut off", async || {
            node.is_unavailable("api", ClientKey(1))
        })
        .await;
        let error = call(node, &policy, 1, Cost::ONE).unwrap_err();
        assert!(
            matches!(error, CountsError::Unreachable { .. }),
            "{error:?}"
        );
        let text = chain(&error);
        assert!(text.contains("have not come back for 15 s"), "{text}");
    }
    cluster.brokers.broker_up(ALL_BROKERS).unwrap();
    let known = a_minute(100);
    for node in [&first, &second] {
        eventually("the node decides again and knows both counts", async || {
            let peek = call(node, &known, 1, Cost::Peek);
            peek.is_ok_and(|verdict| verdict.remaining == 85)
        })
        .await;
    }
}

#[tokio::test]
async fn brokers_that_were_never_available_cut_a_node_off() {
    let cluster = Cluster::start();
    cluster.brokers.broker_down(ALL_BROKERS).unwrap();
    let node = cluster.node();
    let policy = a_minute(10);
    assert_eq!(call(&node, &policy, 1, Cost::ONE).unwrap().remaining, 9);
    eventually("the node is cut off", async || {
        node.is_unavailable("api", ClientKey(1))
    })
    .await;
    assert!(call(&node, &policy, 1, Cost::ONE).is_err());
    node.close();
    assert!(node.is_unavailable("api", ClientKey(1)));
}

#[tokio::test]
async fn messages_of_other_programs_are_skipped() {
    let cluster = Cluster::start();
    let [first, second] = cluster.nodes().await;
    let other_program: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", cluster.brokers.bootstrap_servers())
        .create()
        .unwrap();
    for topic in ["test-calls", "test-totals"] {
        for payload in [&b""[..], b"{\"calls\": 7}", &[1; 50], &[0xff; 100_000]] {
            let record = BaseRecord::to(topic).key("k").payload(payload);
            other_program
                .send(record)
                .map_err(|(error, _)| error)
                .unwrap();
        }
        let nothing: BaseRecord<'_, str, [u8]> = BaseRecord::to(topic);
        other_program
            .send(nothing)
            .map_err(|(error, _)| error)
            .unwrap();
    }
    other_program
        .flush(std::time::Duration::from_secs(30))
        .unwrap();
    // All nodes read totals, and one of them reads the reports; the successor of a partition reads
    // some of them again.
    eventually("all messages are read", async || {
        let unreadable = [&first, &second].map(|node| event(node, "unreadable"));
        unreadable.iter().sum::<u64>() >= 15
    })
    .await;
    let policy = a_minute(10);
    call(&first, &policy, 1, Cost::take(3)).unwrap();
    eventually("counting continues", async || {
        left(&second, &policy, 1) == Some(7)
    })
    .await;
}
