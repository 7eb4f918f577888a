//! A flood of made-up keys, with more requests than may be in flight.

use std::sync::Arc;
use std::time::Duration;

use anteroom_limit::cost::Cost;
use anteroom_limit_store::leases::Settings;
use anteroom_limit_store::shared::CountsError;
use tokio::task::JoinSet;

use crate::leases::driver::{log, set_up};
use crate::leases::node::acquire;

#[tokio::test(start_paused = true)]
async fn a_flood_of_keys_does_not_delay_known_clients() {
    let settings = Settings {
        requests_max: 16,
        ..Settings::default()
    };
    let (_, _, node) = set_up(settings).await;
    let node = Arc::new(node);
    let policy = log(9_000);
    let regulars = 0..3;
    for key in regulars.clone() {
        acquire(&node, &policy, key, Cost::ONE).await.unwrap();
    }
    let requests = node.stats().requests;
    let mut flood = JoinSet::new();
    for made_up in 0..300_u128 {
        for key in 0..20 {
            let node = Arc::clone(&node);
            let key = 1_000 + made_up * 20 + key;
            flood.spawn(async move { acquire(&node, &log(2), key, Cost::ONE).await });
        }
        tokio::time::sleep(Duration::from_millis(10)).await; // tidy: paused time
        for key in regulars.clone() {
            let outcome = acquire(&node, &policy, key, Cost::ONE).await;
            assert!(outcome.unwrap().is_allowed(), "round {made_up}");
        }
    }
    let (mut admitted, mut busy) = (0, 0);
    for outcome in flood.join_all().await {
        match outcome {
            Ok(verdict) => admitted += u32::from(verdict.is_allowed()),
            Err(CountsError::Busy { .. }) => busy += 1,
            Err(error) => panic!("{error}"),
        }
    }
    // The flood filled the limit, and some new clients were admitted all the same.
    assert!(busy > 1_000 && admitted > 1_000, "{busy}, {admitted}");
    let renewals = node.stats().requests - requests - u64::from(admitted);
    assert!(renewals > 10, "known clients sent {renewals} requests");
}
