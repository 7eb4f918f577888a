//! Tests of `/api/v1/nodes`, `/api/v1/data-centers` and `/api/v1/origins`.

use anteroom_node::Outcome;
use serde_json::json;

use crate::control::bench::Bench;

#[tokio::test]
async fn a_node_alone_is_the_only_one() {
    let bench = Bench::new().await;
    let response = bench.get("/api/v1/nodes").await;
    assert_eq!(response.status, 200, "{}", response.body);
    let node = &response.json()["nodes"][0];
    assert_eq!(node["name"], "node");
    assert_eq!(node["isThis"], true);
    assert_eq!(node["servesNewest"], true);
    assert_eq!(node["notServed"], json!([]));
    assert_eq!(node["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(response.json()["nodes"].as_array().unwrap().len(), 1);
    bench.stop().await;
}

#[tokio::test]
async fn a_data_center_has_its_rooms_with_their_admissions() {
    let bench = Bench::new().await;
    assert!(matches!(bench.visit("shop").await, Outcome::Pass(_)));
    bench
        .until(|room| room.config().name.as_str() != "shop" || room.stats().snapshot.active == 1)
        .await;
    let response = bench.get("/api/v1/data-centers").await;
    assert_eq!(response.status, 200, "{}", response.body);
    let found = response.json();
    assert_eq!(found["unknownRooms"], json!([]));
    let all = found["dataCenters"].as_array().unwrap();
    let here = all.iter().find(|one| one["name"] == "San Jose").unwrap();
    let rooms = here["rooms"].as_array().unwrap();
    let admissions: Vec<_> = rooms
        .iter()
        .map(|room| {
            (
                room["room"].as_str().unwrap(),
                &room["admissionsThisMinute"],
            )
        })
        .collect();
    assert_eq!(admissions, [("shop", &json!(1)), ("tickets", &json!(0))]);
    assert_eq!(rooms[0]["nodes"], 1);
    bench.stop().await;
}

#[tokio::test]
async fn origins_are_those_of_their_owners() {
    let bench = Bench::new().await;
    let response = bench.get("/api/v1/origins").await;
    assert_eq!(response.status, 200);
    assert_eq!(response.json(), json!({ "origins": [] }));
    bench.stop().await;
}
