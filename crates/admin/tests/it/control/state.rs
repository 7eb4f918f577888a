//! Tests of `/api/v1/state` and `/api/v1/rooms/{name}/state`.

use anteroom_admin::RoomStates;
use anteroom_node::Outcome;
use anteroom_store::wire::state::RoomState;
use serde_json::json;

use crate::control::bench::Bench;

#[tokio::test]
async fn a_rooms_state_has_the_articles_shape_and_ours() {
    let bench = Bench::new().await;
    assert!(matches!(bench.visit("shop").await, Outcome::Pass(_)));
    bench
        .until(|room| room.config().name.as_str() != "shop" || room.stats().snapshot.active == 1)
        .await;
    let response = bench.get("/api/v1/rooms/shop/state").await;
    assert_eq!(response.status, 200);
    let state = response.json();
    assert_eq!(state["activeUsers"], 1);
    assert_eq!(state["globalWorkersActive"], 1);
    assert_eq!(state["dataCenterWorkersActive"], 1);
    let traffic = json!({
        "2023-09-11T11:45:00Z": {"San Jose": "1/300", "Anywhere": "299/300"},
    });
    assert_eq!(state["trafficHistory"], traffic);
    assert_eq!(state["room"], "shop");
    assert_eq!(state["degraded"], json!(null));
    assert!(
        response.body.starts_with("{\"activeUsers\":1,"),
        "the article's keys come first: {}",
        response.body
    );
    let state: RoomState = serde_json::from_str(&response.body).unwrap();
    assert_eq!(state.total_active_users, 200);
    bench.stop().await;
}

#[tokio::test]
async fn one_response_has_all_rooms() {
    let bench = Bench::new().await;
    let response = bench.get("/api/v1/state").await;
    assert_eq!(response.status, 200);
    let states: RoomStates = serde_json::from_str(&response.body).unwrap();
    let found: Vec<_> = states
        .rooms
        .iter()
        .map(|state| (state.room.as_str(), state.queue_all))
        .collect();
    assert_eq!(found, [("shop", false), ("tickets", true)]);
    bench.stop().await;
}

#[tokio::test]
async fn the_state_of_a_room_shows_an_expired_lease() {
    let bench = Bench::new().await;
    bench.lose_leases();
    let state = bench.get("/api/v1/rooms/shop/state").await.json();
    assert_eq!(state["degraded"], "store_unavailable");
    bench.stop().await;
}

#[tokio::test]
async fn a_request_for_an_unknown_room_lists_the_existing_ones() {
    let bench = Bench::new().await;
    let expected = json!({
        "error": "unknown_room",
        "message": "no room has this name",
        "rooms": ["shop", "tickets"],
    });
    for name in [
        "Shop",
        "sh%6",
        "%ff",
        "a%20b",
        "shop%2fstate",
        "",
        "..",
        "a\u{7f}",
    ] {
        let response = bench.get(&format!("/api/v1/rooms/{name}/state")).await;
        if name == "a\u{7f}" {
            // Malformed HTTP.
            assert_eq!(response.status, 400);
            continue;
        }
        assert_eq!(response.status, 404, "{name}");
        assert_eq!(response.json(), expected, "{name}");
    }
    let escaped = bench.get("/api/v1/rooms/%73hop/state").await;
    assert_eq!(escaped.json()["room"], "shop");
    bench.stop().await;
}
