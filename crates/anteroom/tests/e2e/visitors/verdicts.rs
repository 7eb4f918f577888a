//! Ways to run a room, and their effect on visitors.

use crate::support::eventually;
use crate::support::raw::Raw;
use crate::support::site::{Site, until_inside};

#[tokio::test]
async fn a_suspended_room_lets_all_requests_pass_unchanged() {
    let site = Site::with_room(1, "suspended = true").await;
    for _ in 0..5 {
        let response = site.visitor().navigate("/").await;
        assert!(!response.is_queued() && !response.headers.contains_key("set-cookie"));
        assert!(site.origin.last().header("anteroom-visitor").is_none());
    }
    let place = site
        .visitor()
        .get("/.well-known/anteroom/position?room=main")
        .await;
    assert_eq!(place.json()["cfWaitingRoom"]["inWaitingRoom"], false);
    let state = site.state("main").await;
    assert_eq!(state["suspended"], true);
    assert_eq!(state["activeUsers"], 0);
}

#[tokio::test]
async fn queue_all_queues_every_visitor_of_an_empty_room() {
    let site = Site::with_room(1_000, "queue_all = true").await;
    let mut visitor = site.visitor();
    for _ in 0..3 {
        let room = visitor.get("/").await.json()["cfWaitingRoom"].clone();
        assert_eq!(room["queueAll"], true);
        assert_eq!(room["reason"], "queue_all");
        assert_eq!(room["waitTimeKnown"], false);
    }
    let page = visitor.navigate("/").await.text();
    assert!(page.contains("<!doctype html>"));
    assert_eq!(site.origin.count(), 0);
}

#[tokio::test]
async fn reject_queues_nobody_and_gives_no_position() {
    let site = Site::with_room(1_000, "queueing_method = \"reject\"").await;
    let mut visitor = site.visitor();
    let response = visitor.get("/").await;
    assert!(response.is_queued() && !response.headers.contains_key("set-cookie"));
    assert_eq!(response.headers["retry-after"], "30");
    let room = response.json()["cfWaitingRoom"].clone();
    assert_eq!(room["isRejectQueue"], true);
    assert_eq!(room["reason"], "rejecting");
    assert!(room["position"].is_null());
    assert_eq!(room["refreshIntervalSeconds"], 0);
    assert_eq!(site.origin.count(), 0);
}

#[tokio::test]
async fn passthrough_admits_all_and_counts_them() {
    let site = Site::with_room(1, "queueing_method = \"passthrough\"").await;
    for _ in 0..5 {
        let mut visitor = site.visitor();
        assert!(!visitor.navigate("/").await.is_queued());
        assert!(site.origin.last().header("anteroom-visitor").is_some());
        assert_eq!(visitor.cookies.len(), 1);
    }
    eventually("five are counted", || async {
        site.state("main").await["activeUsers"] == 5
    })
    .await;
    let outside_limits = "anteroom_admissions_outside_limits_total{room=\"main\"}";
    assert_eq!(site.metric(outside_limits).await, Some(5.0));
}

#[tokio::test]
async fn with_random_queueing_the_room_fills_without_positions() {
    let site = Site::with_room(1, "queueing_method = \"random\"").await;
    let mut first = site.insider().await;
    let mut second = site.visitor();
    let room = second.get("/").await.json()["cfWaitingRoom"].clone();
    assert_eq!(room["isRandomQueue"], true);
    assert!(room["position"].is_null());
    first.get("/logout").await;
    until_inside(&mut second, "/").await;
}

#[tokio::test]
async fn a_minute_admits_no_more_than_its_limit_though_seats_are_free() {
    let site = Site::with_room(1_000, "new_users_per_minute = 2\npacing = false").await;
    for _ in 0..12 {
        site.visitor().navigate("/").await;
    }
    let mut minutes = std::collections::BTreeMap::new();
    for head in site.origin.heads() {
        *minutes
            .entry(head.number("anteroom-accepted-at") / 60_000)
            .or_insert(0) += 1;
    }
    // The end of the minute may lie in between.
    assert!(
        minutes.values().all(|admitted| *admitted <= 2),
        "{minutes:?}"
    );
}

#[tokio::test]
async fn a_request_rejected_with_417_spends_no_admission_and_no_seat() {
    let site = Site::with_room(1, "").await;
    for _ in 0..5 {
        let mut raw = Raw::connect(site.gateway.address).await;
        let head = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n";
        raw.send(format!("{head}Expect: a-miracle\r\n\r\n")).await;
        let response = raw.rest().await;
        assert!(response.starts_with("HTTP/1.1 417 "), "{response}");
        assert!(
            !response.to_lowercase().contains("set-cookie"),
            "{response}"
        );
    }
    assert_eq!(site.origin.count(), 0);
    // The only seat is free.
    until_inside(&mut site.visitor(), "/").await;
    let admitted = site
        .metric("anteroom_admissions_total{room=\"main\"} ")
        .await;
    assert!(
        admitted.is_some_and(|admitted| admitted < 1.5),
        "{admitted:?}"
    );
}
