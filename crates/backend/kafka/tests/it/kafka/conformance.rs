//! Conformance to the rules of all count stores, as far as this one supports them: one node, and
//! algorithms that count in windows. Several nodes that learn of each other late are covered, too;
//! `demand` tests their overshoot.

use std::sync::Arc;

use anteroom_limit::cost::Cost;
use anteroom_limit::gcra::Gcra;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::time::DurationUs;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::conformance::distributed::{self, Distributed};
use anteroom_limit_store::conformance::{self, Harness};
use anteroom_limit_store::shared::{BoxFuture, CountsError, SharedAcquire, SharedCounts, TestTime};
use anteroom_testkit::eventually;

use crate::kafka::support::{Cluster, a_minute};

/// One node for all requests.
struct Alone {
    node: Arc<dyn SharedCounts>,
    time: TestTime,
}

impl Harness for Alone {
    fn node(&self) -> Arc<dyn SharedCounts> {
        Arc::clone(&self.node)
    }

    fn time(&self) -> &TestTime {
        &self.time
    }

    fn forgets_after(&self, _: &'static str, _: ClientKey) -> BoxFuture<'_, Option<DurationUs>> {
        Box::pin(async { None })
    }
}

#[tokio::test]
async fn one_node_keeps_counts_exactly() {
    let cluster = Cluster::start();
    let [node] = cluster.nodes().await;
    let stage = Alone {
        node: Arc::new(node),
        time: cluster.time.clone(),
    };
    conformance::check(&stage).await.unwrap();
}

/// Nodes that share the same brokers.
struct Nodes(Vec<Arc<dyn SharedCounts>>);

impl Distributed for Nodes {
    fn nodes(&self) -> Vec<Arc<dyn SharedCounts>> {
        self.0.clone()
    }

    fn until<'a>(
        &'a self,
        what: &'a str,
        holds: &'a (dyn Fn() -> bool + Sync),
    ) -> BoxFuture<'a, ()> {
        Box::pin(eventually(what, async || holds()))
    }
}

#[tokio::test]
async fn three_nodes_are_exact_once_all_know_and_overshoot_by_two_limits() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes::<3>().await;
    let nodes = nodes.into_iter().map(|node| Arc::new(node) as Arc<_>);
    let overshoot = distributed::check(&Nodes(nodes.collect())).await;
    println!("{overshoot:?}");
}

#[tokio::test]
async fn a_limit_that_needs_more_than_sums_is_rejected() {
    let cluster = Cluster::start();
    let node = cluster.node();
    let rate = Rate::new(5, DurationUs::from_secs(60)).unwrap();
    let gcra = Policy::Gcra(Gcra::new(rate, 5).unwrap());
    let text = node.check("api", &gcra).unwrap_err().to_string();
    assert!(text.ends_with("kafka offers atomic adds only"), "{text}");
    let window = a_minute(5);
    let acquire = |policy| SharedAcquire {
        limit: "api",
        policy,
        key: ClientKey(1),
        cost: Cost::ONE,
    };
    let acquires = [acquire(&window), acquire(&gcra)];
    let error = node.acquire(&acquires).await.unwrap_err();
    assert!(matches!(error, CountsError::Rejected { .. }), "{error:?}");
    let verdicts = node.acquire(&acquires[..1]).await.unwrap();
    assert_eq!(verdicts[0].remaining, 4, "nothing was acquired");
}
