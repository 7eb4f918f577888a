//! `/healthz`: when it fails, and what it says.

use std::collections::BTreeMap;
use std::time::Duration;

use anteroom_admin::{ConnectionStats, ExtraStats, Health, LimitStats};
use anteroom_embedded::faults::Faults;
use serde_json::json;

use crate::control::bench::Bench;
use crate::control::client::Answer;

fn read(answer: &Answer) -> Health {
    serde_json::from_str(&answer.body).unwrap()
}

#[tokio::test]
async fn a_node_with_live_leases_is_healthy() {
    let bench = Bench::new().await;
    let answer = bench.get("/healthz").await;
    assert_eq!(answer.status, 200);
    let expected = json!({"healthy": true, "rooms": [], "limits": [], "lastReloadError": null});
    assert_eq!(answer.json(), expected);
    bench.stop().await;
}

#[tokio::test]
async fn a_node_that_has_not_heard_from_its_store_is_not_healthy() {
    let faults = Faults::default();
    faults.set_full(true);
    let bench = Bench::start(faults, ExtraStats::default()).await;
    let answer = bench.get("/healthz").await;
    assert_eq!(answer.status, 503);
    let health = read(&answer);
    assert!(!health.healthy);
    let details: Vec<_> = health.rooms.iter().map(|it| it.detail.as_str()).collect();
    assert_eq!(details, ["the store has not answered yet"; 2]);
    bench.stop().await;
}

#[tokio::test]
async fn health_fails_once_leases_have_ended_and_comes_back_with_the_store() {
    let bench = Bench::new().await;
    bench.lose_leases();
    let answer = bench.get("/healthz").await;
    assert_eq!(answer.status, 503);
    let trouble = |room| {
        json!({
            "room": room,
            "reason": "store_unavailable",
            "failing": true,
            "detail": "the lease has ended and the store does not answer",
        })
    };
    let expected = json!({
        "healthy": false,
        "rooms": [trouble("shop"), trouble("tickets")],
        "limits": [],
        "lastReloadError": null,
    });
    assert_eq!(answer.json(), expected);
    bench.faults.set_full(false);
    bench.until_healthy(true).await;
    assert_eq!(bench.get("/healthz").await.status, 200);
    bench.stop().await;
}

#[tokio::test]
async fn an_origin_that_is_down_is_told_and_does_not_fail() {
    let bench = Bench::new().await;
    let room = bench.room("shop");
    for _ in 0..3 {
        room.handle_origin_outcome(anteroom_room::origin::OriginOutcome::Unreachable);
    }
    let answer = bench.get("/healthz").await;
    assert_eq!(answer.status, 200);
    let health = read(&answer);
    assert!(health.healthy);
    let [trouble] = health.rooms.as_slice() else {
        panic!("one room is in trouble, not {health:?}");
    };
    assert_eq!((trouble.room.as_str(), trouble.failing), ("shop", false));
    assert_eq!(trouble.reason, "origin_down");
    bench.stop().await;
}

#[tokio::test]
async fn a_refused_config_file_is_told_and_does_not_fail() {
    let extras = ExtraStats {
        last_reload_error: Some("anteroom.toml:3: \"name\" is missing".to_owned()),
        ..ExtraStats::default()
    };
    let bench = Bench::with_extras(extras).await;
    let answer = bench.get("/healthz").await;
    assert_eq!(answer.status, 200);
    let error = read(&answer).last_reload_error;
    assert_eq!(
        error.as_deref(),
        Some("anteroom.toml:3: \"name\" is missing")
    );
    bench.stop().await;
}

#[tokio::test]
async fn a_limit_whose_store_is_away_is_told_and_does_not_fail() {
    let limit = |store_failed_ago| LimitStats {
        store: "memcached",
        store_failed_ago,
        ..LimitStats::default()
    };
    let away = limit(Some(Duration::from_millis(3_200)));
    let limits = [("api", away), ("login", limit(None))];
    let extras = ExtraStats {
        limits: BTreeMap::from(limits.map(|(name, stats)| (name.to_owned(), stats))),
        ..ExtraStats::default()
    };
    let bench = Bench::with_extras(extras).await;
    let answer = bench.get("/healthz").await;
    assert_eq!(answer.status, 200);
    let expected = json!([{
        "limit": "api",
        "store": "memcached",
        "lastFailureMs": 3_200,
        "detail": "calls cannot be counted at \"memcached\", the last one 3 s ago; \
                   on_store_failure says what becomes of them",
    }]);
    assert_eq!(answer.json()["limits"], expected);
    assert!(read(&answer).healthy);
    assert_eq!(bench.get("/rooms").await.json()["limits"], expected);
    bench.stop().await;
}

#[tokio::test]
async fn connections_that_run_short_are_told_and_do_not_fail() {
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
                "detail": "71 of 100 connections are open, 5 of them with a ticket: those of \
                           waiting visitors are \
                    closed with each answer, and the longest idle ones make room",
            }),
        ),
    ] {
        let extras = ExtraStats {
            connections: stats(open),
            ..ExtraStats::default()
        };
        let bench = Bench::with_extras(extras).await;
        let answer = bench.get("/healthz").await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.json()["connections"], expected);
        assert_eq!(bench.get("/rooms").await.json()["connections"], expected);
        bench.stop().await;
    }
}
