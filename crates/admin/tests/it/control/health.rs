//! Tests of `/healthz`.

use std::collections::BTreeMap;
use std::time::Duration;

use anteroom_admin::{ConnectionStats, ExtraStats, Health, LimitStats};
use anteroom_embedded::faults::Faults;
use serde_json::json;

use crate::control::bench::Bench;
use crate::control::client::Response;

fn read(response: &Response) -> Health {
    serde_json::from_str(&response.body).unwrap()
}

#[tokio::test]
async fn a_node_with_live_leases_is_healthy() {
    let bench = Bench::new().await;
    let response = bench.get("/healthz").await;
    assert_eq!(response.status, 200);
    let expected = json!({"healthy": true, "rooms": [], "limits": [], "lastReloadError": null});
    assert_eq!(response.json(), expected);
    bench.stop().await;
}

#[tokio::test]
async fn a_node_whose_store_never_replied_is_unhealthy() {
    let faults = Faults::default();
    faults.set_full(true);
    let bench = Bench::start(faults, ExtraStats::default()).await;
    let response = bench.get("/healthz").await;
    assert_eq!(response.status, 503);
    let health = read(&response);
    assert!(!health.healthy);
    let details: Vec<_> = health.rooms.iter().map(|it| it.detail.as_str()).collect();
    assert_eq!(details, ["the store has not replied yet"; 2]);
    bench.stop().await;
}

#[tokio::test]
async fn health_fails_once_leases_have_ended_and_comes_back_with_the_store() {
    let bench = Bench::new().await;
    bench.lose_leases();
    let response = bench.get("/healthz").await;
    assert_eq!(response.status, 503);
    let trouble = |room| {
        json!({
            "room": room,
            "reason": "store_unavailable",
            "failing": true,
            "detail": "the lease has ended and the store does not reply",
        })
    };
    let expected = json!({
        "healthy": false,
        "rooms": [trouble("shop"), trouble("tickets")],
        "limits": [],
        "lastReloadError": null,
    });
    assert_eq!(response.json(), expected);
    bench.faults.set_full(false);
    bench.until_healthy(true).await;
    assert_eq!(bench.get("/healthz").await.status, 200);
    bench.stop().await;
}

#[tokio::test]
async fn an_origin_that_is_down_is_reported_without_failing() {
    let bench = Bench::new().await;
    let room = bench.room("shop");
    for _ in 0..3 {
        room.handle_origin_outcome(anteroom_room::origin::OriginOutcome::Unreachable);
    }
    let response = bench.get("/healthz").await;
    assert_eq!(response.status, 200);
    let health = read(&response);
    assert!(health.healthy);
    let [trouble] = health.rooms.as_slice() else {
        panic!("one room is in trouble, not {health:?}");
    };
    assert_eq!((trouble.room.as_str(), trouble.failing), ("shop", false));
    assert_eq!(trouble.reason, "origin_down");
    bench.stop().await;
}

#[tokio::test]
async fn a_rejected_config_file_is_reported_without_failing() {
    let extras = ExtraStats {
        last_reload_error: Some("anteroom.toml:3: \"name\" is missing".to_owned()),
        ..ExtraStats::default()
    };
    let bench = Bench::with_extras(extras).await;
    let response = bench.get("/healthz").await;
    assert_eq!(response.status, 200);
    let error = read(&response).last_reload_error;
    assert_eq!(
        error.as_deref(),
        Some("anteroom.toml:3: \"name\" is missing")
    );
    bench.stop().await;
}

#[tokio::test]
async fn a_limit_whose_store_is_unavailable_is_reported_without_failing() {
    let limit = |store_failed_ago| LimitStats {
        store: "memcached",
        store_failed_ago,
        store_cause: Some("it is down".to_owned()),
        ..LimitStats::default()
    };
    let unavailable = limit(Some(Duration::from_millis(3_200)));
    let limits = [("api", unavailable), ("login", limit(None))];
    let extras = ExtraStats {
        limits: BTreeMap::from(limits.map(|(name, stats)| (name.to_owned(), stats))),
        ..ExtraStats::default()
    };
    let bench = Bench::with_extras(extras).await;
    let response = bench.get("/healthz").await;
    assert_eq!(response.status, 200);
    let expected = json!([{
        "limit": "api",
        "store": "memcached",
        "lastFailureMs": 3_200,
        "detail": "requests cannot be counted at \"memcached\", the last one 3 s ago: it is down; \
                   on_store_failure decides about them",
    }]);
    assert_eq!(response.json()["limits"], expected);
    assert!(read(&response).healthy);
    assert_eq!(bench.get("/api/v1/state").await.json()["limits"], expected);
    bench.stop().await;
}

#[tokio::test]
async fn a_shortage_of_connections_is_reported_without_failing() {
    let stats = |open| ConnectionStats {
        open,
        with_ticket: 5,
        limit: 100,
        near: 70,
        ..ConnectionStats::default()
    };
    for (open, expected) in [
        (69, json!(null)),
        (
            71,
            json!({
                "open": 71,
                "withTicket": 5,
                "limit": 100,
                "detail": "71 of 100 connections are open, 5 of them with a ticket; waiting \
                           visitors get a new connection with each response, and the longest idle \
                           connections are closed",
            }),
        ),
    ] {
        let extras = ExtraStats {
            connections: stats(open),
            ..ExtraStats::default()
        };
        let bench = Bench::with_extras(extras).await;
        let response = bench.get("/healthz").await;
        assert_eq!(response.status, 200);
        assert_eq!(response.json()["connections"], expected);
        assert_eq!(
            bench.get("/api/v1/state").await.json()["connections"],
            expected
        );
        bench.stop().await;
    }
}
