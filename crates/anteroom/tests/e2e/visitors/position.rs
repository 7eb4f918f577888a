//! Polls of the position, until the visitor may enter.

use std::collections::BTreeSet;
use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use crate::support::client::Client;
use crate::support::eventually;
use crate::support::raw::Raw;
use crate::support::site::{Site, until_inside};

const POSITION: &str = "/.well-known/anteroom/position?room=main";

#[tokio::test]
async fn a_poll_returns_the_position_and_the_turn() {
    let site = Site::with_room(1, "queueing_status_code = 503").await;
    let mut inside = site.insider().await;
    let mut waiting = site.visitor();
    assert_eq!(waiting.navigate("/").await.status, 503);
    let response = waiting.get(POSITION).await;
    assert_eq!(response.status, 200, "the poll itself succeeds");
    assert_eq!(response.headers["cache-control"], "no-store");
    assert!(response.headers.contains_key("retry-after"));
    let body = response.json();
    assert_eq!(body["cfWaitingRoom"]["inWaitingRoom"], true);
    assert_eq!(body["cfWaitingRoom"]["position"], 1);
    assert!(body["askAfterMs"].as_u64().unwrap() >= 1_000);
    assert!(body["words"]["reason"].is_string());
    let wait = |end: &str| body["waitMs"][end].as_u64().unwrap();
    assert!(wait("low") <= wait("middle") && wait("middle") < wait("high"));

    inside.get("/logout").await;
    let shared = tokio::sync::Mutex::new(&mut waiting);
    eventually("the poll says that the wait is over", || async {
        let body = shared.lock().await.get(POSITION).await.json();
        body["cfWaitingRoom"]["inWaitingRoom"] == false
    })
    .await;
    let seen = site.origin.count();
    assert_eq!(seen, 2, "the origin does not see polls");
    // The seat is reserved: the page passes at once, and no other visitor does.
    assert!(site.visitor().navigate("/").await.is_queued());
    assert!(!waiting.navigate("/in").await.is_queued());
    assert_eq!(site.origin.last().target, "/in");
    let over = waiting.get(POSITION).await.json();
    assert_eq!(
        over,
        serde_json::json!({"cfWaitingRoom": {"inWaitingRoom": false}})
    );
}

/// Path at which a page extends its turn.
const TURN: &str = "/.well-known/anteroom/turn?room=main";

/// Polls until it is the visitor's turn, and returns the response.
async fn until_turn(waiting: &mut Client) -> Value {
    let shared = tokio::sync::Mutex::new((waiting, Value::Null));
    eventually("it is the visitor's turn", || async {
        let (waiting, last) = &mut *shared.lock().await;
        *last = waiting.get(POSITION).await.json();
        last["cfWaitingRoom"]["inWaitingRoom"] == false
    })
    .await;
    shared.into_inner().1
}

/// Returns the milliseconds for which a turn is held from the response on.
fn held_ms(turn: &Value) -> u64 {
    turn["endsAtMs"].as_u64().unwrap() - turn["nowMs"].as_u64().unwrap()
}

#[tokio::test]
async fn a_turn_is_held_and_extended_once() {
    let site = Site::with_room(1, "turn_held_for = \"30s\"").await;
    let mut inside = site.insider().await;
    let mut waiting = site.visitor();
    assert!(waiting.navigate("/").await.is_queued());
    waiting.get(POSITION).await;
    inside.get("/logout").await;
    let first = until_turn(&mut waiting).await["turn"].clone();
    assert_eq!(first["canExtend"], true);
    // Until the edge of an interval of five seconds.
    assert!((29_000..=35_000).contains(&held_ms(&first)), "{first}");

    let other = [("sec-fetch-site", "cross-site")];
    let refused = waiting.send(Method::POST, TURN, &other, "").await;
    assert_eq!(refused.status, 400);
    let same = [("sec-fetch-site", "same-origin")];
    let by_get = waiting.send(Method::GET, TURN, &same, "").await;
    assert_eq!(by_get.status, 400);
    let passed = tokio::sync::Mutex::new(&mut waiting);
    eventually("a later interval begins", || async {
        let turn = passed.lock().await.get(POSITION).await.json()["turn"].clone();
        assert_eq!(
            turn["endsAtMs"], first["endsAtMs"],
            "a poll extends nothing"
        );
        held_ms(&turn) < 25_000
    })
    .await;
    let second = waiting.send(Method::POST, TURN, &same, "").await.json()["turn"].clone();
    assert_eq!(second["canExtend"], false);
    assert!(second["endsAtMs"].as_u64() > first["endsAtMs"].as_u64());
    let third = waiting.send(Method::POST, TURN, &same, "").await.json()["turn"].clone();
    assert_eq!(third["endsAtMs"], second["endsAtMs"]);

    assert!(
        site.visitor().navigate("/").await.is_queued(),
        "the seat is held"
    );
    assert!(!waiting.navigate("/in").await.is_queued());
    let head = site.origin.last();
    let session = head.number("anteroom-seat-ends") - second["nowMs"].as_u64().unwrap();
    assert!(session > 120_000, "the whole session: {session} ms");
    let over = waiting.get(POSITION).await.json();
    assert_eq!(over["turn"], Value::Null);
}

#[tokio::test]
async fn a_missed_turn_goes_to_the_next_visitor() {
    let site = Site::with_room(1, "turn_held_for = \"20s\"").await;
    let mut inside = site.insider().await;
    let mut first = site.visitor();
    assert!(first.navigate("/").await.is_queued());
    first.get(POSITION).await;
    inside.get("/logout").await;
    until_turn(&mut first).await;
    let mut second = site.visitor();
    assert!(second.navigate("/").await.is_queued());
    until_inside(&mut second, "/").await;
    let body = first.get(POSITION).await.json();
    assert_eq!(body["cfWaitingRoom"]["inWaitingRoom"], true);
    assert_eq!(body["words"]["heading"], "Your turn has passed");
    // It still is ahead of all who came later.
    let mut third = site.visitor();
    third.navigate("/").await;
    second.get("/logout").await;
    until_inside(&mut first, "/").await;
    assert!(third.navigate("/").await.is_queued());
    let missed = site.metric("anteroom_missed_turns_total{room=\"main\"}");
    assert_eq!(missed.await, Some(1.0));
}

/// Waits until visitors arrive surely later: order is by the second of arrival, and by lot within
/// it.
async fn next_second() {
    let next = Timestamp::now().as_second() + 2;
    eventually("it is later", || async {
        Timestamp::now().as_second() >= next
    })
    .await;
}

/// Whether a response to a poll says that the visitor waits.
fn waits(poll: &Value) -> bool {
    poll["cfWaitingRoom"]["inWaitingRoom"] == true
}

/// Returns a room of one seat, which is taken for `session`. The first visitor in line has not
/// polled for so long that its next poll may wait for its turn. The second one polls in time.
async fn with_late_poller(session: &str) -> (Site, Client, Client) {
    let room = format!("session_duration = \"{session}\"\ndisable_session_renewal = true");
    let site = Site::with_room(1, &room).await;
    site.insider().await;
    let mut late = site.visitor();
    assert!(late.navigate("/").await.is_queued());
    let polled_at = Instant::now();
    late.get(POSITION).await;
    next_second().await;
    let often = tokio::sync::Mutex::new(site.visitor());
    assert!(often.lock().await.navigate("/").await.is_queued());
    eventually("the first one counts no more, and may wait", || async {
        assert!(waits(&often.lock().await.get(POSITION).await.json()));
        polled_at.elapsed() > Duration::from_secs(11)
    })
    .await;
    (site, late, often.into_inner())
}

#[tokio::test]
async fn the_poll_of_who_polls_seldom_waits_for_the_turn() {
    let (_site, mut seldom, mut often) = with_late_poller("18s").await;
    // The room is full. The seat comes free while the request waits.
    let poll = seldom.get(POSITION);
    tokio::pin!(poll);
    let turn = loop {
        tokio::select! {
            turn = &mut poll => break turn.json(),
            response = often.get(POSITION) => assert!(waits(&response.json())),
        }
    };
    assert!(!waits(&turn), "{turn}");
    assert!(turn["turn"]["endsAtMs"].is_u64(), "{turn}");
}

/// A turn for a client that has gone would be held for a minute.
#[tokio::test]
async fn a_client_that_hangs_up_while_its_poll_waits_gets_no_turn() {
    let (site, mut gone, often) = with_late_poller("20s").await;
    let until_hang_up = Duration::from_secs(3);
    let response = timeout(until_hang_up, gone.get(POSITION)).await;
    assert!(response.is_err(), "it waits for its turn");
    drop(gone);
    let often = tokio::sync::Mutex::new(often);
    eventually("the second one gets its turn", || async {
        !waits(&often.lock().await.get(POSITION).await.json())
    })
    .await;
    let admitted = site.metric("anteroom_admissions_total{room=\"main\"}");
    assert_eq!(admitted.await, Some(2.0), "none for the one who has gone");
}

#[tokio::test]
async fn visitors_behind_move_up() {
    let site = Site::with_room(1, "").await;
    let mut inside = site.insider().await;
    let mut queue = vec![site.visitor(), site.visitor()];
    queue[0].get("/").await;
    queue[0].get(POSITION).await;
    next_second().await;
    let shared = tokio::sync::Mutex::new(queue);
    eventually("the second one is behind the first", || async {
        let queue = &mut *shared.lock().await;
        queue[0].get(POSITION).await;
        let room = queue[1].get(POSITION).await.json()["cfWaitingRoom"].clone();
        room["position"] == 2 && room["peopleAhead"] == 1
    })
    .await;
    inside.get("/logout").await;
    let mut queue = shared.into_inner();
    until_inside(&mut queue[0], "/").await;
    let mut second = queue.remove(1);
    let shared = tokio::sync::Mutex::new(&mut second);
    eventually("the second one is the first", || async {
        let room = shared.lock().await.get(POSITION).await.json()["cfWaitingRoom"].clone();
        room["position"] == 1
    })
    .await;
}

#[tokio::test]
async fn polls_for_an_unknown_room_get_an_error() {
    let site = Site::with_room(1, "").await;
    site.insider().await;
    let path = "/.well-known/anteroom/position";
    for query in [
        "",
        "?",
        "?room=",
        "?room=a&room=b",
        "?room=a%2fb",
        "?room=%ff",
    ] {
        let response = site.visitor().get(&format!("{path}{query}")).await;
        assert_eq!(response.status, 400, "{query}");
        assert!(response.json().get("cfWaitingRoom").is_none(), "{query}");
    }
    let gone = site.visitor().get(&format!("{path}?room=gone")).await;
    assert_eq!(gone.status, 200);
    assert_eq!(gone.json()["cfWaitingRoom"]["inWaitingRoom"], false);
    assert!(!gone.headers.contains_key("set-cookie"));

    let mut waiting = site.visitor();
    waiting.get("/").await;
    let head = waiting.send(Method::HEAD, POSITION, &[], "").await;
    assert_eq!(head.status, 200);
    assert!(head.body.is_empty());
    assert_eq!(site.origin.count(), 1);
}

#[tokio::test]
async fn a_first_seat_is_short_until_the_ticket_comes_back() {
    let site = Site::with_room(10, "seat_needs_cookie = \"always\"").await;
    let session_ms = || {
        let head = site.origin.last();
        head.number("anteroom-seat-ends") - head.number("anteroom-accepted-at")
    };
    let mut visitor = site.insider().await;
    // A minute, to the edge of an interval of five seconds.
    assert!(
        (60_000..=70_000).contains(&session_ms()),
        "{}",
        session_ms()
    );
    // The credit to extend the session may still be on its way; no visitor waits for it.
    eventually("a ticket for the whole session", || async {
        let mut same = visitor.clone();
        let response = same.get("/style.css").await;
        response.headers.contains_key("set-cookie")
    })
    .await;
    visitor.get("/style.css").await;
    assert!(session_ms() >= 300_000, "{}", session_ms());
    visitor.get("/style.css").await;
    assert!(session_ms() >= 300_000, "{}", session_ms());

    // No visitor waits longer for a minute's seat than for any other.
    let mut other = site.visitor();
    until_inside(&mut other, "/").await;
    assert!(
        (60_000..=70_000).contains(&session_ms()),
        "{}",
        session_ms()
    );
}

#[tokio::test]
async fn a_visitor_gets_one_seat_for_many_requests_at_once() {
    let site = Site::with_room(2, "").await;
    let mut inside = site.insider().await;
    let mut other = site.insider().await;
    let mut waiting = site.visitor();
    waiting.get("/").await;
    waiting.get("/").await;
    inside.get("/logout").await;
    other.get("/logout").await;
    eventually("the ticket is let in", || async {
        let mut requests = tokio::task::JoinSet::new();
        for _ in 0..10 {
            let mut same = waiting.clone();
            requests.spawn(async move { same.navigate("/mine").await.is_queued() });
        }
        requests.join_all().await.contains(&false)
    })
    .await;
    until_inside(&mut site.visitor(), "/another").await;
    let heads = site.origin.heads();
    let mine = heads.iter().filter(|head| head.target == "/mine");
    let ids: BTreeSet<_> = mine.map(|head| head.header("anteroom-visitor")).collect();
    assert_eq!(ids.len(), 1);
    assert!(site.visitor().navigate("/").await.is_queued());
}

#[tokio::test]
async fn a_poll_of_our_page_takes_at_most_500_bytes_on_the_wire() {
    let site = Site::with_room(1, "").await;
    site.insider().await;
    let mut visitor = site.visitor();
    visitor.navigate("/").await;
    let shared = tokio::sync::Mutex::new((String::new(), visitor));
    eventually("the page has its position and all its texts", || async {
        let (key, visitor) = &mut *shared.lock().await;
        let poll = visitor.get(&format!("{POSITION}&lang=en&k={key}")).await;
        let poll = poll.json();
        key.clone_from(&poll["k"].as_str().unwrap().to_owned());
        poll["w"]["number"] == "1" && poll["w"]["heading"].is_null()
    })
    .await;
    let (key, visitor) = shared.into_inner();
    let (name, ticket) = visitor.cookies.first_key_value().unwrap();
    // The title has the host, so another one would get all texts again.
    let host = site.gateway.address;
    let head = format!("HTTP/1.1\r\nhost: {host}\r\naccept: application/json\r\n");
    let request = format!("GET {POSITION}&lang=en&k={key} {head}cookie: {name}={ticket}\r\n\r\n");
    let mut connection = Raw::connect(site.gateway.address).await;
    connection.send(request).await;
    let response = connection.take_until("}}").await.unwrap();
    let (_, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(!body.contains("heading"), "{body}");
    // Most of it is the ticket, which says until when its visitor is counted.
    assert!(
        response.len() <= 500,
        "{} bytes: {response}",
        response.len()
    );
}
