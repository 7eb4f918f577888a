//! Somebody makes up keys, more of them than requests may be on their way.

use std::sync::Arc;
use std::time::Duration;

use anteroom_limit::cost::Cost;
use anteroom_limit_store::lending::Settings;
use anteroom_limit_store::shared::CountsError;
use tokio::task::JoinSet;

use crate::leases::driver::{log, one};
use crate::leases::node::call;

#[tokio::test(start_paused = true)]
async fn a_flood_of_keys_holds_up_nobody_who_is_known() {
    let settings = Settings {
        requests_max: 16,
        ..Settings::default()
    };
    let (_, _, node) = one(settings).await;
    let node = Arc::new(node);
    let policy = log(9_000);
    let regulars = 0..3;
    for key in regulars.clone() {
        call(&node, &policy, key, Cost::ONE).await.unwrap();
    }
    let requests = node.stats().requests;
    let mut flood = JoinSet::new();
    for made_up in 0..300_u128 {
        for key in 0..20 {
            let node = Arc::clone(&node);
            let key = 1_000 + made_up * 20 + key;
            flood.spawn(async move { call(&node, &log(2), key, Cost::ONE).await });
        }
        tokio::time::sleep(Duration::from_millis(10)).await; // tidy: paused time
        for key in regulars.clone() {
            let told = call(&node, &policy, key, Cost::ONE).await;
            assert!(told.unwrap().is_admitted(), "turn {made_up}");
        }
    }
    let (mut admitted, mut busy) = (0, 0);
    for told in flood.join_all().await {
        match told {
            Ok(verdict) => admitted += u32::from(verdict.is_admitted()),
            Err(CountsError::Busy { .. }) => busy += 1,
            Err(error) => panic!("{error}"),
        }
    }
    // It was one, and those who are new were not shut out.
    assert!(busy > 1_000 && admitted > 1_000, "{busy}, {admitted}");
    let asked = node.stats().requests - requests - u64::from(admitted);
    assert!(asked > 10, "the regulars had to ask, {asked} times");
}
