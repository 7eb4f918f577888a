//! Conformance of counts by leases over a store that works, and of the test store itself.

use std::sync::Arc;

use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::conformance::{Harness, lease_store, leases};
use anteroom_limit_store::leases::{LeasedCounts, Settings};
use anteroom_limit_store::shared::{BoxFuture, SharedCounts, TestTime};

use crate::leases::link::{Network, StoreLink};
use crate::leases::store::Memory;

#[derive(Debug)]
struct Leases {
    time: TestTime,
    memory: Memory,
}

impl Leases {
    fn counts(&self) -> LeasedCounts {
        let link = StoreLink::new(&self.memory, Network::default(), 1);
        let clock = Arc::new(self.time.clone());
        LeasedCounts::with_clock(Arc::new(link), Settings::default(), clock).unwrap()
    }
}

impl Harness for Leases {
    fn node(&self) -> Arc<dyn SharedCounts> {
        Arc::new(self.counts())
    }

    fn time(&self) -> &TestTime {
        &self.time
    }

    fn forgets_after(
        &self,
        limit: &'static str,
        key: ClientKey,
    ) -> BoxFuture<'_, Option<DurationUs>> {
        let kept = self.memory.forgets_after(limit, key.0);
        Box::pin(async move { Some(kept.expect("it is kept for a limited time")) })
    }
}

#[tokio::test(start_paused = true)]
async fn counts_by_leases_conform() {
    let time = TestTime::default();
    time.set(TimestampUs(1_767_225_000_000_000));
    let memory = Memory::at(time.clone());
    let stage = Leases { time, memory };
    stage.counts().assume_empty().await.unwrap();
    leases::check(&stage).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_test_store_conforms() {
    let memory = Memory::in_virtual_time();
    lease_store::check(&StoreLink::new(&memory, Network::default(), 1))
        .await
        .unwrap();
}
