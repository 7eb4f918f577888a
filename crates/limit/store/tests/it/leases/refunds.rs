//! What is given back when a call that was charged here is rejected elsewhere.

use std::time::Duration;

use anteroom_limit::cost::Cost;
use anteroom_limit::time::DurationUs;
use anteroom_limit_store::CallKey;
use anteroom_limit_store::lending::Settings;
use anteroom_limit_store::shared::{SharedAcquire, SharedCounts as _};
use tokio::time::Instant;

use crate::leases::driver::{after_secs, log, one};
use crate::leases::node::call;

#[tokio::test(start_paused = true)]
async fn a_refund_of_an_ended_lease_gives_nothing_now() {
    let (_, _, node) = one(Settings::default()).await;
    let policy = log(1_000);
    let refund = async |age: Option<Duration>| {
        let charge = [SharedAcquire {
            limit: "api",
            policy: &policy,
            key: CallKey(1),
            cost: Cost::refund(1),
        }];
        let before = node.stats().spent;
        let told = match age {
            Some(age) => {
                let age = DurationUs(u64::try_from(age.as_micros()).unwrap());
                node.refund(&charge, age).await
            }
            None => node.charge(&charge).await,
        };
        told.unwrap();
        before - node.stats().spent
    };
    let began = Instant::now();
    call(&node, &policy, 1, Cost::ONE).await.unwrap();
    assert_eq!(refund(Some(Duration::from_millis(1))).await, 1);
    call(&node, &policy, 1, Cost::ONE).await.unwrap();
    assert_eq!(refund(None).await, 1);
    call(&node, &policy, 1, Cost::ONE).await.unwrap();
    after_secs(4).await;
    // Others are charged to the next lease.
    for _ in 0..5 {
        call(&node, &policy, 1, Cost::ONE).await.unwrap();
    }
    assert_eq!(refund(Some(began.elapsed())).await, 0);
    assert_eq!(refund(None).await, 0);
    assert_eq!(refund(Some(Duration::from_millis(1))).await, 1);
}
