//! What every store of counts must do, as far as this one promises it: alone, and for algorithms
//! that count in stretches of time; and what nodes must do that hear of each other later. How far
//! off they are is stated in `demand`.

use std::sync::Arc;

use anteroom_limit::cost::Cost;
use anteroom_limit::gcra::Gcra;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::time::DurationUs;
use anteroom_limit_store::CallKey;
use anteroom_limit_store::conformance::apart::{self, Apart};
use anteroom_limit_store::conformance::{self, Stage};
use anteroom_limit_store::shared::{BoxFuture, CountsError, SharedAcquire, SharedCounts, TestTime};
use anteroom_testkit::eventually;

use crate::kafka::support::{Cluster, a_minute};

/// One node, whoever asks.
struct Alone {
    node: Arc<dyn SharedCounts>,
    time: TestTime,
}

impl Stage for Alone {
    fn node(&self) -> Arc<dyn SharedCounts> {
        Arc::clone(&self.node)
    }

    fn time(&self) -> &TestTime {
        &self.time
    }

    fn forgets_after(&self, _: &'static str, _: CallKey) -> BoxFuture<'_, Option<DurationUs>> {
        Box::pin(async { None })
    }
}

#[tokio::test]
async fn one_node_keeps_counts_exactly_while_it_hears_itself() {
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

impl Apart for Nodes {
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
    let far_off = apart::check(&Nodes(nodes.collect())).await;
    println!("{far_off:?}");
}

#[tokio::test]
async fn what_cannot_be_summed_up_is_refused() {
    let cluster = Cluster::start();
    let node = cluster.node();
    let rate = Rate::new(5, DurationUs::from_secs(60)).unwrap();
    let gcra = Policy::Gcra(Gcra::new(rate, 5).unwrap());
    let text = node.check("api", &gcra).unwrap_err().to_string();
    assert!(text.ends_with("kafka offers atomic adds only"), "{text}");
    let window = a_minute(5);
    let charge = |policy| SharedAcquire {
        limit: "api",
        policy,
        key: CallKey(1),
        cost: Cost::ONE,
    };
    let charges = [charge(&window), charge(&gcra)];
    let error = node.charge(&charges).await.unwrap_err();
    assert!(matches!(error, CountsError::Refused { .. }), "{error:?}");
    let verdicts = node.charge(&charges[..1]).await.unwrap();
    assert_eq!(verdicts[0].remaining, 4, "none of it was charged");
}
