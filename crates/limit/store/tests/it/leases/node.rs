//! Node of a test: counts by leases, with a clock that is offset and drifts.

use std::sync::Arc;

use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_limit::time::TimestampUs;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::leases::{Clock, LeasedCounts, Settings};
use anteroom_limit_store::shared::{CountsError, SharedAcquire, SharedCounts};
use tokio::time::Instant;

use crate::leases::link::StoreLink;

/// Clock in virtual time, with an arbitrary start and a drift.
#[derive(Debug)]
pub(crate) struct Drifting {
    began: Instant,
    offset: u64,
    ppm: i64,
}

impl Drifting {
    pub(crate) fn new(offset: u64, ppm: i64) -> Self {
        let began = Instant::now();
        Self { began, offset, ppm }
    }
}

impl Clock for Drifting {
    fn now(&self) -> TimestampUs {
        let passed = i64::try_from(self.began.elapsed().as_micros()).expect("it is short");
        let drift = passed * self.ppm / 1_000_000;
        let passed = u64::try_from(passed + drift).expect("it drifts little");
        TimestampUs(self.offset + passed)
    }
}

/// Returns a node whose clock does not drift.
pub(crate) fn node(link: &StoreLink) -> LeasedCounts {
    node_with(link, Settings::default(), 0)
}

pub(crate) fn node_with(link: &StoreLink, settings: Settings, ppm: i64) -> LeasedCounts {
    let clock = Arc::new(Drifting::new(1_000_000_000, ppm));
    LeasedCounts::with_clock(Arc::new(link.clone()), settings, clock).unwrap()
}

/// Acquires for one client of one limit.
pub(crate) async fn acquire(
    node: &LeasedCounts,
    policy: &Policy,
    key: u128,
    cost: Cost,
) -> Result<Verdict, CountsError> {
    let key = ClientKey(key);
    let request = SharedAcquire {
        limit: "api",
        policy,
        key,
        cost,
    };
    Ok(node.acquire(&[request]).await?[0])
}
