//! Tests of `/livez` and `/readyz`: neither fails because a store is unavailable.

use anteroom_admin::{ExtraStats, LimitStats};
use anteroom_config::RoomId;
use anteroom_embedded::faults::Faults;
use anteroom_room::time::DurationMs;
use serde_json::json;

use crate::control::bench::{Bench, room_name};

async fn check_live(bench: &Bench) {
    let response = bench.get("/livez").await;
    assert_eq!(response.status, 200);
    assert_eq!(response.json(), json!({"live": true, "rooms": 2}));
}

async fn check_ready(bench: &Bench, detail: Option<&str>) {
    let response = bench.get("/readyz").await;
    let expected = json!({"ready": detail.is_none(), "detail": detail});
    assert_eq!(response.json(), expected);
    let status = if detail.is_none() { 200 } else { 503 };
    assert_eq!(response.status, status);
}

#[tokio::test]
async fn a_node_stays_ready_while_the_store_is_unavailable() {
    let bench = Bench::new().await;
    check_ready(&bench, None).await;
    bench.lose_leases();
    assert_eq!(bench.get("/healthz").await.status, 503);
    check_ready(&bench, None).await;
    check_live(&bench).await;
    bench.stop().await;
}

#[tokio::test]
async fn a_node_that_never_reached_its_store_is_ready_after_ten_seconds() {
    let faults = Faults::default();
    faults.set_full(true);
    let bench = Bench::start(faults, ExtraStats::default()).await;
    check_live(&bench).await;
    let not_yet = Some("the store has not replied yet");
    check_ready(&bench, not_yet).await;
    bench.clock.advance(DurationMs(9_999));
    check_ready(&bench, not_yet).await;
    bench.clock.advance(DurationMs(1));
    check_ready(&bench, None).await;
    assert_eq!(bench.get("/healthz").await.status, 503);
    bench.stop().await;
}

#[tokio::test]
async fn a_node_is_not_ready_while_the_store_of_a_limit_grants_it_nothing() {
    let limit = LimitStats {
        is_joining_store: true,
        ..LimitStats::default()
    };
    let extras = ExtraStats {
        limits: [("api".to_owned(), limit)].into(),
        ..ExtraStats::default()
    };
    let bench = Bench::with_extras(extras).await;
    check_ready(
        &bench,
        Some("the store of a limit grants this node nothing yet"),
    )
    .await;
    bench.clock.advance(DurationMs(10_000));
    check_ready(&bench, None).await;
    bench.stop().await;
}

#[tokio::test]
async fn a_new_room_does_not_make_a_node_unready() {
    let bench = Bench::new().await;
    check_ready(&bench, None).await;
    bench.faults.set_full(true);
    let mut rooms = bench
        .node
        .rooms()
        .iter()
        .map(|room| (*room.config()).clone())
        .collect::<Vec<_>>();
    let mut another = rooms[0].clone();
    another.name = room_name("another");
    another.id = RoomId::of_name(&another.name);
    rooms.push(another);
    bench.node.reload(rooms);
    let room = bench.room("another");
    bench.until(|_| room.stats().failed_syncs_total > 0).await;
    assert_eq!(room.stats().syncs_total, 0);
    check_ready(&bench, None).await;
    bench.stop().await;
}

#[tokio::test]
async fn a_node_about_to_end_is_live_and_not_ready() {
    let bench = Bench::new().await;
    bench.node.stop().await;
    check_ready(&bench, Some("this node returns its leases and ends")).await;
    check_live(&bench).await;
    bench.stop().await;
}
