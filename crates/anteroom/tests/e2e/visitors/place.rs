//! Does the page learn where its visitor stands, and when it may come in?

use std::collections::BTreeSet;

use http::Method;
use jiff::Timestamp;

use crate::support::eventually;
use crate::support::site::{Site, until_inside};

const PLACE: &str = "/.well-known/anteroom/place?room=main";

#[tokio::test]
async fn the_place_is_told_in_numbers_and_letting_in_needs_no_page() {
    let site = Site::with_room(1, "queueing_status_code = 503").await;
    let mut inside = site.insider().await;
    let mut waiting = site.visitor();
    assert_eq!(waiting.navigate("/").await.status, 503);
    let answer = waiting.get(PLACE).await;
    assert_eq!(answer.status, 200, "the question itself is answered");
    assert_eq!(answer.headers["cache-control"], "no-store");
    assert!(answer.headers.contains_key("retry-after"));
    let body = answer.json();
    assert_eq!(body["cfWaitingRoom"]["inWaitingRoom"], true);
    assert_eq!(body["cfWaitingRoom"]["position"], 1);
    assert!(body["askAfterMs"].as_u64().unwrap() >= 1_000);
    assert!(body["words"]["reason"].is_string());

    inside.get("/logout").await;
    let shared = tokio::sync::Mutex::new(&mut waiting);
    eventually("the place says that the wait is over", || async {
        let body = shared.lock().await.get(PLACE).await.json();
        body["cfWaitingRoom"]["inWaitingRoom"] == false
    })
    .await;
    let seen = site.origin.count();
    assert_eq!(seen, 2, "asking for a place is not the origin's business");
    // The seat is taken: the page passes at once, and nobody else does.
    assert!(site.visitor().navigate("/").await.is_queued());
    assert!(!waiting.navigate("/in").await.is_queued());
    assert_eq!(site.origin.last().target, "/in");
    let over = waiting.get(PLACE).await.json();
    assert_eq!(
        over,
        serde_json::json!({"cfWaitingRoom": {"inWaitingRoom": false}})
    );
}

#[tokio::test]
async fn those_behind_move_up() {
    let site = Site::with_room(1, "").await;
    let mut inside = site.insider().await;
    let mut line = vec![site.visitor(), site.visitor()];
    line[0].get("/").await;
    line[0].get(PLACE).await;
    // Order is by the second of arrival.
    let next = Timestamp::now().as_second() + 2;
    eventually("it is later", || async {
        Timestamp::now().as_second() >= next
    })
    .await;
    let shared = tokio::sync::Mutex::new(line);
    eventually("the second one is behind the first", || async {
        let line = &mut *shared.lock().await;
        line[0].get(PLACE).await;
        let room = line[1].get(PLACE).await.json()["cfWaitingRoom"].clone();
        room["position"] == 2 && room["peopleAhead"] == 1
    })
    .await;
    inside.get("/logout").await;
    let mut line = shared.into_inner();
    until_inside(&mut line[0], "/").await;
    let mut second = line.remove(1);
    let shared = tokio::sync::Mutex::new(&mut second);
    eventually("the second one is the first", || async {
        let room = shared.lock().await.get(PLACE).await.json()["cfWaitingRoom"].clone();
        room["position"] == 1
    })
    .await;
}

#[tokio::test]
async fn questions_about_no_room_are_answered_without_harm() {
    let site = Site::with_room(1, "").await;
    site.insider().await;
    let path = "/.well-known/anteroom/place";
    for query in [
        "",
        "?",
        "?room=",
        "?room=a&room=b",
        "?room=a%2fb",
        "?room=%ff",
    ] {
        let answer = site.visitor().get(&format!("{path}{query}")).await;
        assert_eq!(answer.status, 400, "{query}");
        assert!(answer.json().get("cfWaitingRoom").is_none(), "{query}");
    }
    let gone = site.visitor().get(&format!("{path}?room=gone")).await;
    assert_eq!(gone.status, 200);
    assert_eq!(gone.json()["cfWaitingRoom"]["inWaitingRoom"], false);
    assert!(!gone.headers.contains_key("set-cookie"));

    let mut waiting = site.visitor();
    waiting.get("/").await;
    let head = waiting.send(Method::HEAD, PLACE, &[], "").await;
    assert_eq!(head.status, 200);
    assert!(head.body.is_empty());
    assert_eq!(site.origin.count(), 1);
}

#[tokio::test]
async fn a_first_seat_is_short_until_the_ticket_comes_back() {
    let site = Site::with_room(10, "seat_needs_cookie = \"always\"").await;
    let stay = || {
        let head = site.origin.last();
        head.number("anteroom-seat-ends") - head.number("anteroom-accepted-at")
    };
    let mut visitor = site.insider().await;
    // A minute, to the edge of an interval of five seconds.
    assert!((60_000..=70_000).contains(&stay()), "{}", stay());
    // The right to prolong its seat may still be on its way: nobody waits for that.
    eventually("a ticket for the whole session", || async {
        let mut same = visitor.clone();
        let answer = same.get("/style.css").await;
        answer.headers.contains_key("set-cookie")
    })
    .await;
    visitor.get("/style.css").await;
    assert!(stay() >= 300_000, "{}", stay());
    visitor.get("/style.css").await;
    assert!(stay() >= 300_000, "{}", stay());

    // Nobody waits longer for a minute's seat than for any other.
    let mut other = site.visitor();
    until_inside(&mut other, "/").await;
    assert!((60_000..=70_000).contains(&stay()), "{}", stay());
}

#[tokio::test]
async fn one_who_waits_gets_one_seat_for_many_requests_at_once() {
    let site = Site::with_room(2, "").await;
    let mut inside = site.insider().await;
    let mut other = site.insider().await;
    let mut waiting = site.visitor();
    waiting.get("/").await;
    waiting.get("/").await;
    inside.get("/logout").await;
    other.get("/logout").await;
    eventually("the ticket is let in", || async {
        let mut asks = tokio::task::JoinSet::new();
        for _ in 0..10 {
            let mut same = waiting.clone();
            asks.spawn(async move { same.navigate("/mine").await.is_queued() });
        }
        asks.join_all().await.contains(&false)
    })
    .await;
    until_inside(&mut site.visitor(), "/another").await;
    let heads = site.origin.heads();
    let mine = heads.iter().filter(|head| head.target == "/mine");
    let ids: BTreeSet<_> = mine.map(|head| head.header("anteroom-visitor")).collect();
    assert_eq!(ids.len(), 1);
    assert!(site.visitor().navigate("/").await.is_queued());
}
