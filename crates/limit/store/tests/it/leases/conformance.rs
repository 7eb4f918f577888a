//! Counts by leases do what they must, over a store that works; and the store of these tests is
//! one.

use std::sync::Arc;

use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit_store::CallKey;
use anteroom_limit_store::conformance::{Stage, leases, lent};
use anteroom_limit_store::lending::{LeasedCounts, Settings};
use anteroom_limit_store::shared::{BoxFuture, SharedCounts, TestTime};

use crate::leases::store::Memory;
use crate::leases::way::{Network, Way};

#[derive(Debug)]
struct Leases {
    time: TestTime,
    memory: Memory,
}

impl Leases {
    fn counts(&self) -> LeasedCounts {
        let way = Way::new(&self.memory, Network::default(), 1);
        let clock = Arc::new(self.time.clone());
        LeasedCounts::with_clock(Arc::new(way), Settings::default(), clock).unwrap()
    }
}

impl Stage for Leases {
    fn node(&self) -> Arc<dyn SharedCounts> {
        Arc::new(self.counts())
    }

    fn time(&self) -> &TestTime {
        &self.time
    }

    fn forgets_after(
        &self,
        limit: &'static str,
        key: CallKey,
    ) -> BoxFuture<'_, Option<DurationUs>> {
        let kept = self.memory.forgets_after(limit, key.0);
        Box::pin(async move { Some(kept.expect("it is kept, and not for ever")) })
    }
}

#[tokio::test(start_paused = true)]
async fn counts_by_leases_do_what_they_must() {
    let time = TestTime::default();
    time.set(TimestampUs(1_767_225_000_000_000));
    let memory = Memory::at(time.clone());
    let stage = Leases { time, memory };
    stage.counts().assume_empty().await.unwrap();
    leases::check(&stage).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_store_of_these_tests_is_one() {
    let memory = Memory::in_virtual_time();
    lent::check(&Way::new(&memory, Network::default(), 1))
        .await
        .unwrap();
}
