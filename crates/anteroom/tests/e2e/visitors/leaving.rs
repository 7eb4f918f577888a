//! Visitors who leave the queue by the form of the page.

use http::Method;
use jiff::Timestamp;

use crate::support::client::{Client, TestResponse};
use crate::support::eventually;
use crate::support::site::Site;

const POSITION: &str = "/.well-known/anteroom/position?room=main";
const LEAVE: &str = "/.well-known/anteroom/leave?room=main&lang=en&back=%2Flamps";

/// Interval with which a visitor who leaves without a word counts for more than a minute: longer
/// than these tests wait.
const MINUTE: &str = "refresh_interval = \"60s\"";

async fn leave(visitor: &mut Client) -> TestResponse {
    let own = [("sec-fetch-site", "same-origin")];
    visitor.send(Method::POST, LEAVE, &own, "").await
}

/// Returns the position of a visitor, who counts from then on.
async fn position(visitor: &mut Client) -> u64 {
    let room = visitor.get(POSITION).await.json()["cfWaitingRoom"].clone();
    room["position"].as_u64().unwrap_or(0)
}

/// Waits until a visitor has this position.
async fn until_position(visitor: &mut Client, wanted: u64) {
    let shared = tokio::sync::Mutex::new(visitor);
    eventually("the visitor has its position", || async {
        position(*shared.lock().await).await == wanted
    })
    .await;
}

/// Waits for another second of arrival, by which the queue is in order.
async fn until_next_second() {
    let second = Timestamp::now().as_second();
    eventually("it is later", || async {
        Timestamp::now().as_second() > second
    })
    .await;
}

/// Returns a full site with so many visitors in line, one in each second.
async fn line(length: u64) -> (Site, Vec<Client>) {
    let site = Site::with_room(1, MINUTE).await;
    site.insider().await;
    let mut line = Vec::new();
    for place in 1..=length {
        until_next_second().await;
        let mut visitor = site.visitor();
        assert!(visitor.navigate("/lamps").await.is_queued());
        until_position(&mut visitor, place).await;
        line.push(visitor);
    }
    (site, line)
}

async fn until_queued(site: &Site, wanted: u64) {
    eventually("the ledger counts as many", || async {
        site.state("main").await["queuedUsers"] == wanted
    })
    .await;
}

#[tokio::test]
async fn the_third_of_three_moves_up_when_the_second_leaves() {
    let (site, mut line) = line(3).await;
    until_queued(&site, 3).await;
    let response = leave(&mut line[1]).await;
    assert!(response.text().contains("You left the line"));
    assert!(line[1].cookies.is_empty());
    until_position(&mut line[2], 2).await;
    until_queued(&site, 2).await;
    assert_eq!(position(&mut line[0]).await, 1);
}

#[tokio::test]
async fn a_copy_of_the_cookie_frees_no_second_position() {
    let (site, mut line) = line(3).await;
    until_queued(&site, 3).await;
    let mut copy = line[0].clone();
    for _ in 0..3 {
        leave(&mut line[0]).await;
        leave(&mut copy.clone()).await;
    }
    until_queued(&site, 2).await;
    assert_eq!(position(&mut line[2]).await, 2);
    // A request that was on its way with the old ticket gets no position of a visitor who left.
    until_next_second().await;
    copy.get(POSITION).await;
    until_position(&mut copy, 3).await;
    until_queued(&site, 3).await;
}

#[tokio::test]
async fn a_visitor_who_left_and_comes_back_is_the_last() {
    let (_site, mut line) = line(2).await;
    leave(&mut line[0]).await;
    until_next_second().await;
    assert!(line[0].navigate("/lamps").await.is_queued());
    until_position(&mut line[0], 2).await;
    until_position(&mut line[1], 1).await;
}

#[tokio::test]
async fn the_page_after_the_end_is_for_visitors_without_a_ticket() {
    let (site, mut line) = line(1).await;
    let still_waits = line[0].get(LEAVE).await;
    assert_eq!(still_waits.status, 303, "a link ends no wait");
    assert_eq!(still_waits.headers["location"], "/lamps");
    assert_eq!(position(&mut line[0]).await, 1);
    let page = site.visitor().get(LEAVE).await;
    assert_eq!(page.status, 200);
    assert!(page.text().contains("You left the line"));
    assert!(!page.headers.contains_key("set-cookie"));
    let mut copy = line[0].clone();
    leave(&mut line[0]).await;
    assert_eq!(copy.get(LEAVE).await.status, 200, "its ticket is over");
}

#[tokio::test]
async fn a_forgotten_page_ends_no_session() {
    let site = Site::with_room(1, MINUTE).await;
    let mut inside = site.insider().await;
    let response = leave(&mut inside).await;
    assert_eq!(response.status, 303);
    assert!(!response.headers.contains_key("set-cookie"));
    assert!(!inside.navigate("/").await.is_queued());
}
