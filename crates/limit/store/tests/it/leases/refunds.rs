//! Refunds of requests that another limit rejects later.

use std::time::Duration;

use anteroom_limit::cost::Cost;
use anteroom_limit::time::DurationUs;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::leases::Settings;
use anteroom_limit_store::shared::{SharedAcquire, SharedCounts as _};
use tokio::time::Instant;

use crate::leases::driver::{after_secs, log, set_up};
use crate::leases::node::acquire;

#[tokio::test(start_paused = true)]
async fn a_refund_to_an_ended_lease_restores_nothing() {
    let (_, _, node) = set_up(Settings::default()).await;
    let policy = log(1_000);
    let refund = async |age: Option<Duration>| {
        let refunds = [SharedAcquire {
            limit: "api",
            policy: &policy,
            key: ClientKey(1),
            cost: Cost::refund(1),
        }];
        let before = node.stats().spent;
        let outcome = match age {
            Some(age) => {
                let age = DurationUs(u64::try_from(age.as_micros()).unwrap());
                node.refund(&refunds, age).await
            }
            None => node.acquire(&refunds).await,
        };
        outcome.unwrap();
        before - node.stats().spent
    };
    let began = Instant::now();
    acquire(&node, &policy, 1, Cost::ONE).await.unwrap();
    assert_eq!(refund(Some(Duration::from_millis(1))).await, 1);
    acquire(&node, &policy, 1, Cost::ONE).await.unwrap();
    assert_eq!(refund(None).await, 1);
    acquire(&node, &policy, 1, Cost::ONE).await.unwrap();
    after_secs(4).await;
    // These requests take from the next lease.
    for _ in 0..5 {
        acquire(&node, &policy, 1, Cost::ONE).await.unwrap();
    }
    assert_eq!(refund(Some(began.elapsed())).await, 0);
    assert_eq!(refund(None).await, 0);
    assert_eq!(refund(Some(Duration::from_millis(1))).await, 1);
}
