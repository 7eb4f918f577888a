//! Tests of health checks, with timeouts and statuses as in a config.

use std::sync::atomic::Ordering::Relaxed;

use anteroom_proxy::upstream::{Condition, Origins};

use crate::origin::support::{Body, LIMITS, Origin, get, room, text, until};

const CHECK: &str = "health_check = { path = \"/healthz?a=b\", interval = \"100ms\", timeout = \
                     \"5s\", \
                     healthy_after = 1, unhealthy_after = 2, expected_status = \"200-204\" }";

#[tokio::test]
async fn an_origin_that_fails_its_checks_is_skipped_until_it_passes() {
    let (first, second) = (Origin::new().await, Origin::new().await);
    let lines = format!(
        "host = \"shop.example\"\norigins = [\"http://{}\", \"http://{}\"]\n{CHECK}",
        first.address, second.address
    );
    let origins = Origins::<Body>::new(LIMITS);
    let room = room("shop", &lines);
    let plan = origins.plan(room.own_origins()).unwrap();
    let group = plan.group(&room.origin_owner()).unwrap();
    origins.commit(plan);
    let condition = |index: usize| group.stats().origins[index].condition;
    let checks = |origin: &Origin| origin.shared.checks.load(Relaxed);
    until("both were checked", || {
        checks(&first) > 1 && checks(&second) > 1
    })
    .await;
    assert_eq!(*first.shared.host.lock().unwrap(), "shop.example");

    first.shared.status.store(302, Relaxed);
    until("the first fails", || condition(0) == Condition::Unhealthy).await;
    assert!(!group.is_down());
    first.shared.status.store(500, Relaxed);
    for _ in 0..10 {
        let (status, _) = text(get(&group).await.unwrap()).await;
        assert_eq!(status, 200, "only the second gets requests");
    }
    let stats = group.stats();
    let error = stats.origins[0].last_error.clone().unwrap();
    assert!(error.contains("a check got status"), "{error}");
    assert!(stats.origins[0].bad_checks >= 2 && stats.origins[1].bad_checks == 0);

    let address = second.address;
    drop(second);
    until("the second is gone", || {
        condition(1) == Condition::Unhealthy
    })
    .await;
    assert!(group.is_down() && group.stats().is_down);
    let error = group.stats().origins[1].last_error.clone().unwrap();
    assert!(error.contains("cannot connect"), "{error}");
    // Requests of active visitors still go to an unhealthy origin.
    let (status, _) = text(get(&group).await.unwrap()).await;
    assert_eq!(status, 500);

    let second = Origin::at(address).await;
    until("it is healthy again", || !group.is_down()).await;
    assert_eq!(condition(1), Condition::Up);
    drop(second);
}

#[tokio::test]
async fn an_origin_without_a_response_fails_its_check_in_time() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let lines = format!(
        "origin = \"http://{}\"\nhealth_check = {{ interval = \"100ms\", timeout = \"20ms\" }}",
        listener.local_addr().unwrap()
    );
    let origins = Origins::<Body>::new(LIMITS);
    let room = room("shop", &lines);
    let plan = origins.plan(room.own_origins()).unwrap();
    let group = plan.group(&room.origin_owner()).unwrap();
    origins.commit(plan);
    until("it is unhealthy", || group.is_down()).await;
    let error = group.stats().origins[0].last_error.clone().unwrap();
    assert_eq!(error, "no response to a check within 20 ms");
}
