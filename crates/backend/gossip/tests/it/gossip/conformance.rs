//! Conformance of a single node to the rules of all count stores.

use std::sync::Arc;

use anteroom_gossip::{CounterTable, GossipCounts, WriterId};
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::sliding_log::SlidingLog;
use anteroom_limit::time::DurationUs;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::conformance::{self, Harness};
use anteroom_limit_store::shared::{BoxFuture, SharedCounts, TestTime};
use parking_lot::Mutex;

use crate::gossip::support::secret;

/// One node that gets all requests. Several guarantee less: see [`crate::gossip::overshoot`].
struct Alone {
    counts: Arc<GossipCounts>,
    time: TestTime,
}

impl Alone {
    fn new() -> Self {
        let time = TestTime::default();
        let table = CounterTable::new(WriterId(1), &secret(), 10_000);
        let counts = GossipCounts::on(Arc::new(Mutex::new(table)), time.clone());
        let counts = Arc::new(counts);
        Self { counts, time }
    }
}

impl Harness for Alone {
    fn node(&self) -> Arc<dyn SharedCounts> {
        Arc::clone(&self.counts) as Arc<_>
    }

    fn time(&self) -> &TestTime {
        &self.time
    }

    fn forgets_after(
        &self,
        limit: &'static str,
        key: ClientKey,
    ) -> BoxFuture<'_, Option<DurationUs>> {
        let kept = self.counts.forgets_after(limit, key);
        assert!(kept.is_some(), "the client has no counter");
        Box::pin(std::future::ready(kept))
    }
}

#[tokio::test]
async fn a_node_alone_keeps_counts() {
    conformance::check(&Alone::new()).await.unwrap();
}

#[tokio::test]
async fn a_limit_that_needs_a_transaction_is_rejected_with_both_named() {
    let stage = Alone::new();
    let rate = Rate::new(10, DurationUs::from_secs(60)).unwrap();
    let log = Policy::SlidingLog(SlidingLog::new(rate).unwrap());
    let rejection = stage.node().check("api", &log).unwrap_err().to_string();
    assert_eq!(
        rejection,
        "the limit \"api\" by sliding-log needs transactions; gossip offers atomic adds only"
    );
}
