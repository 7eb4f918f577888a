//! One gateway with its own journal: a command applies at once, over restarts, and over the file.

use std::path::PathBuf;

use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::config::{SERVER, room as room_toml};
use crate::support::eventually;
use crate::support::process::Gateway;
use crate::support::site::{Site, until_inside};

use super::{room, room_json, token_file};

/// Returns the token file; the data folder is next to the config file.
fn token(site: &Site) -> PathBuf {
    token_file(&site.file.path().with_file_name("anteroom-data"))
}

async fn operate(site: &Site, words: &[&str]) -> Value {
    room_json(&site.gateway, &token(site), words).await
}

/// Returns the waiting response to a program, if it is queued.
async fn waiting_body(visitor: &mut Client) -> Option<Value> {
    let response = visitor.get("/").await;
    response
        .is_queued()
        .then(|| response.json()["cfWaitingRoom"].clone())
}

async fn reload(site: &Site, times: f64) {
    site.gateway.signal("HUP");
    eventually("the file is read", || async {
        let counted = site.metric("anteroom_config_reloads_total{outcome=\"ok\"}");
        counted.await == Some(times)
    })
    .await;
}

#[tokio::test]
async fn a_pause_admits_nobody_and_the_page_shows_the_reason() {
    let site = Site::with_room(10, "").await;
    let mut inside = site.insider().await;
    let text = "Payment <problem> & back at \"10:40\"";
    let shown = operate(&site, &["pause", "--message", text]).await;
    assert_eq!(shown["paused"]["message"], text);

    let mut newcomer = site.visitor();
    let body = waiting_body(&mut newcomer).await.unwrap();
    assert_eq!(
        (&body["reason"], &body["message"]),
        (&json!("paused"), &json!(text))
    );
    assert_eq!(body["queueAll"], true);
    let response = newcomer.navigate("/").await;
    assert_eq!(response.headers["anteroom-reason"], "paused");
    let page = response.text();
    assert!(
        page.contains("Payment &lt;problem&gt; &amp; back at &quot;10:40&quot;"),
        "{page}"
    );
    assert!(page.contains("Entry is paused"));
    let path = "/.well-known/anteroom/position?room=main";
    let polled = newcomer.send(Method::GET, path, &[], "").await.json();
    assert_eq!(polled["words"]["message"], text);
    let path = format!("{path}&lang=de");
    let polled = newcomer.send(Method::GET, &path, &[], "").await.json();
    let reason = polled["words"]["reason"].as_str().unwrap();
    assert!(
        reason.contains("niemand verliert seine Position"),
        "{reason}"
    );
    assert!(
        !inside.navigate("/").await.is_queued(),
        "active visitors pass"
    );
    let state = site.state("main").await;
    assert_eq!(
        (&state["paused"], &state["message"]),
        (&json!(true), &json!(text))
    );

    operate(&site, &["resume"]).await;
    until_inside(&mut newcomer, "/").await;
    assert_eq!(site.state("main").await["message"], Value::Null);
}

#[tokio::test]
async fn a_message_stays_through_queue_all_and_open() {
    let site = Site::with_room(10, "").await;
    operate(&site, &["message", "Doors at ten"]).await;
    operate(&site, &["queue-all"]).await;
    let mut newcomer = site.visitor();
    let body = waiting_body(&mut newcomer).await.unwrap();
    assert_eq!(
        (&body["reason"], &body["message"]),
        (&json!("queue_all"), &json!("Doors at ten"))
    );
    operate(&site, &["pause", "--message", "A minute more"]).await;
    assert_eq!(
        waiting_body(&mut newcomer).await.unwrap()["message"],
        "A minute more"
    );
    operate(&site, &["resume"]).await;
    let body = waiting_body(&mut newcomer).await.unwrap();
    assert_eq!(
        (&body["reason"], &body["message"]),
        (&json!("queue_all"), &json!("Doors at ten"))
    );
    operate(&site, &["open"]).await;
    until_inside(&mut newcomer, "/").await;
    assert_eq!(operate(&site, &["show"]).await["message"], "Doors at ten");
    assert_eq!(
        operate(&site, &["message", ""]).await["message"],
        Value::Null
    );
}

#[tokio::test]
async fn an_override_outlives_the_process_and_the_file_until_reset() {
    let mut site = Site::with_room(1, "").await;
    operate(
        &site,
        &["set", "total_active_users=3", "position_grace=10m"],
    )
    .await;
    operate(&site, &["pause", "--message", "wait"]).await;
    // By a kill, and by a regular stop.
    for signal in ["KILL", "TERM"] {
        site.gateway.signal(signal);
        let _ = site.gateway.ended().await;
        site.gateway = Gateway::start(&site.file.flags()).await;
        let mut visitors = [site.visitor(), site.visitor()];
        eventually("the room has its journal again", || async {
            site.state("main").await["degraded"].is_null()
        })
        .await;
        for visitor in &mut visitors {
            assert_eq!(
                waiting_body(visitor).await.unwrap()["reason"],
                "paused",
                "{signal}"
            );
        }
        let state = site.state("main").await;
        assert_eq!(state["totalActiveUsers"], 3, "{signal}");
        assert_eq!(
            state["overrides"]["total_active_users"],
            json!({ "value": 3, "from": "operator", "file": 1 })
        );
    }
    operate(&site, &["resume"]).await;

    let file = SERVER.to_owned() + &room_toml("main", site.origin.address, 2, "queue_all = true");
    site.file.write(&file);
    reload(&site, 1.0).await;
    let state = site.state("main").await;
    assert_eq!(
        (&state["totalActiveUsers"], &state["queueAll"]),
        (&json!(3), &json!(true))
    );
    operate(&site, &["open"]).await;
    site.insider().await;

    let shown = operate(&site, &["reset", "total_active_users"]).await;
    assert_eq!(
        shown["values"]["total_active_users"],
        json!({ "value": 2, "from": "file", "file": 2 })
    );
    assert_eq!(shown["values"]["queue_all"]["value"], false);
    operate(&site, &["reset"]).await;
    let state = site.state("main").await;
    assert_eq!(
        (&state["totalActiveUsers"], &state["queueAll"]),
        (&json!(2), &json!(true))
    );
    assert_eq!(state["overrides"], json!({}));

    let whats = [
        "set position_grace=\"10m\" total_active_users=3",
        "pause --message \"wait\"",
        "resume",
        "open",
        "reset total_active_users",
        "reset",
    ];
    assert_log(&site, &whats).await;
}

/// Checks the commands in the log, and the operator of the first.
async fn assert_log(site: &Site, expected: &[&str]) {
    let log = operate(site, &["audit"]).await;
    let entries = log["entries"].as_array().unwrap();
    let whats = entries.iter().map(|entry| entry["what"].as_str().unwrap());
    assert_eq!(whats.collect::<Vec<_>>(), expected);
    let who = &entries[0]["who"];
    assert_eq!(
        (&who["token"], &who["address"]),
        (&json!("local"), &json!("127.0.0.1"))
    );
    assert!(!who["user"].as_str().unwrap().is_empty());
    let printed = room(&site.gateway, &token(site), &["audit"]).await.out;
    assert!(printed.contains("total_active_users: 1 -> 3"), "{printed}");
}

#[tokio::test]
async fn lowered_limits_end_no_session_and_raised_ones_apply_at_once() {
    let site = Site::with_room(2, "").await;
    let mut inside = [site.insider().await, site.insider().await];
    operate(&site, &["set", "total_active_users=1"]).await;
    let mut waiting = site.visitor();
    for _ in 0..5 {
        assert!(waiting_body(&mut waiting).await.is_some());
        for visitor in &mut inside {
            assert!(!visitor.navigate("/").await.is_queued());
        }
    }
    inside[0].get("/logout").await;
    assert!(
        waiting_body(&mut waiting).await.is_some(),
        "one is still inside"
    );
    operate(&site, &["set", "total_active_users=2"]).await;
    until_inside(&mut waiting, "/").await;
}

#[tokio::test]
async fn all_mistakes_are_reported_and_nothing_changes() {
    let site = Site::with_room(2, "").await;
    let token = token(&site);
    let words = [
        "set",
        "total_active_users=0",
        "sesion_duration=5m",
        "pacing=maybe",
        "opens_at=now",
    ];
    let ended = room(&site.gateway, &token, &words).await;
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""));
    for expected in [
        "total_active_users: found 0, allowed: an integer from 1 to 2147483647",
        "sesion_duration: unknown key; did you mean session_duration?",
        "pacing: found \"maybe\", allowed: true or false",
        "opens_at: found \"now\", allowed: a date and time",
        "nothing was changed",
    ] {
        assert!(ended.err.contains(expected), "{expected}: {}", ended.err);
    }
    assert_eq!(ended.err.lines().count(), 5, "{}", ended.err);
    let ended = room(&site.gateway, &token, &["set", "total_active_users"]).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("is not key=value"), "{}", ended.err);
    let json = room(&site.gateway, &token, &["reset", "colour", "--json"]).await;
    assert_eq!(json.code, Some(2));
    let body: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(body["error"], "not_allowed");
    assert_eq!(operate(&site, &["show"]).await["version"], 0);
}

#[tokio::test]
async fn show_and_status_name_the_overrides() {
    let site = Site::with_room(2, "").await;
    let token = token(&site);
    operate(
        &site,
        &["set", "total_active_users=5", "session_duration=2m"],
    )
    .await;
    operate(&site, &["pause", "--message", "Back soon"]).await;
    let shown = room(&site.gateway, &token, &["show"]).await.out;
    for line in [
        "* total_active_users",
        "(operator; the file says 2)",
        "PAUSED since 2",
        "on the page: Back soon",
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    let admin = site.gateway.admin.to_string();
    let table = crate::support::command::run(&["status", "--admin", &admin])
        .await
        .out;
    let expected = "PAUSED; operator: session_duration, total_active_users, message";
    assert!(table.contains(expected), "{table}");
    for (sample, value) in [
        ("anteroom_paused{room=\"main\"}", 1.0),
        (
            "anteroom_override_active{room=\"main\",key=\"total_active_users\"}",
            1.0,
        ),
        ("anteroom_total_active_users_limit{room=\"main\"}", 5.0),
    ] {
        assert_eq!(site.metric(sample).await, Some(value), "{sample}");
    }
    let log = site.gateway.log_with("an operator changed the room").await;
    let log = log.join("\n");
    let secret = std::fs::read_to_string(&token).unwrap();
    assert!(!log.contains(secret.trim()));
}

/// Returns a time so far ahead that no test reaches it.
fn tomorrow() -> Timestamp {
    let second = Timestamp::now().as_second() + 86_400;
    Timestamp::from_second(second).unwrap()
}

#[tokio::test]
async fn an_opening_is_set_moved_and_removed_while_visitors_wait() {
    let site = Site::with_room(10, "").await;
    let mut visitor = site.visitor();
    operate(&site, &["set", &format!("opens_at={}", tomorrow())]).await;
    let body = waiting_body(&mut visitor).await.unwrap();
    assert_eq!(
        (&body["reason"], &body["timeUntilEventStart"]),
        (&json!("not_open_yet"), &json!(1440))
    );
    let soon = Timestamp::from_second(Timestamp::now().as_second() + 3).unwrap();
    operate(&site, &["set", &format!("opens_at={soon}")]).await;
    until_inside(&mut visitor, "/").await;
    let accepted_at = site.origin.last().number("anteroom-accepted-at");
    assert!(i64::try_from(accepted_at).unwrap() >= soon.as_millisecond());

    operate(&site, &["set", &format!("opens_at={}", tomorrow())]).await;
    let mut early = site.visitor();
    assert_eq!(
        waiting_body(&mut early).await.unwrap()["reason"],
        "not_open_yet"
    );
    assert!(
        !visitor.navigate("/").await.is_queued(),
        "an active visitor passes"
    );
    operate(&site, &["set", "opens_at=none"]).await;
    until_inside(&mut early, "/").await;
}

#[tokio::test]
async fn open_draws_lots_among_earlier_visitors() {
    let more = format!("opens_at = \"{}\"\ndraw = true", tomorrow());
    let site = Site::with_room(2, &more).await;
    let mut early: Vec<Client> = (0..6).map(|_| site.visitor()).collect();
    for visitor in &mut early {
        waiting_body(visitor).await;
        let body = waiting_body(visitor).await.unwrap();
        assert_eq!(body["shuffleAtEventStart"], true);
        assert!(body["position"].is_null(), "there is no order yet");
    }
    let rejected = room(&site.gateway, &token(&site), &["set", "opens_at=none"]).await;
    assert!(
        rejected
            .err
            .contains("draw: found true, allowed: only together with"),
        "{}",
        rejected.err
    );
    operate(&site, &["open"]).await;
    let late = tokio::sync::Mutex::new((early, site.visitor()));
    eventually(
        "early visitors have an order, and late ones are behind",
        || async {
            let (early, late) = &mut *late.lock().await;
            let mut positions = Vec::new();
            for visitor in early {
                if let Some(body) = waiting_body(visitor).await {
                    positions.push(body["position"].as_u64());
                }
            }
            let last = waiting_body(late)
                .await
                .and_then(|body| body["position"].as_u64());
            positions.len() == 4 && positions.iter().all(Option::is_some) && last == Some(5)
        },
    )
    .await;
}

#[tokio::test]
async fn a_room_is_suspended_and_resumed_at_once() {
    let site = Site::with_room(1, "").await;
    site.insider().await;
    let mut second = site.visitor();
    assert!(waiting_body(&mut second).await.is_some());
    operate(&site, &["set", "suspended=true"]).await;
    assert!(
        waiting_body(&mut second).await.is_none(),
        "every visitor passes"
    );
    let rejected = room(&site.gateway, &token(&site), &["pause"]).await;
    assert_eq!(rejected.code, Some(2));
    assert!(
        rejected.err.contains("set suspended=false first"),
        "{}",
        rejected.err
    );
    operate(
        &site,
        &["set", "suspended=false", "queueing_status_code=503"],
    )
    .await;
    assert_eq!(second.navigate("/").await.status, 503);
}

/// Returns the code that a waiting page shows its visitor.
fn code_of(page: &str) -> String {
    let start = "<code dir=\"ltr\">";
    let from = page.find(start).unwrap() + start.len();
    page[from..from + "3F9A-12C4".len()].to_owned()
}

#[tokio::test]
async fn a_visitor_is_found_by_the_code_of_its_page() {
    let site = Site::with_room(1, "").await;
    let mut inside = site.insider().await;
    let mut visitor = site.visitor();
    let page = visitor.navigate("/").await.text();
    let code = code_of(&page);
    let state = async || {
        let found = operate(&site, &["find", &code]).await;
        found["visitors"][0]["state"].clone()
    };
    assert_eq!(
        state().await,
        Value::Null,
        "it has not brought its ticket back"
    );
    visitor.navigate("/").await;
    let found = operate(&site, &["find", &code.to_lowercase().replace('-', "")]).await;
    assert_eq!(found["code"], code);
    let waiting = &found["visitors"][0];
    assert_eq!(
        (&waiting["state"], &waiting["position"]),
        (&json!("waiting"), &json!(1))
    );
    let arrived_at: Timestamp = waiting["arrivedAt"].as_str().unwrap().parse().unwrap();
    let counted_until: Timestamp = waiting["countedUntil"].as_str().unwrap().parse().unwrap();
    assert!(arrived_at <= Timestamp::now() && counted_until > arrived_at);
    let text = room(&site.gateway, &token(&site), &["find", &code])
        .await
        .out;
    assert!(text.contains(": waits at position 1 since 2"), "{text}");

    inside.get("/logout").await;
    until_inside(&mut visitor, "/").await;
    let found = operate(&site, &["find", &code]).await;
    assert_eq!(found["visitors"][0]["state"], "active");
    let head = site.origin.last();
    let ends_at: Timestamp = found["visitors"][0]["seatEndsAt"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let seat_ends = i64::try_from(head.number("anteroom-seat-ends")).unwrap();
    assert_eq!(ends_at.as_millisecond(), seat_ends);
    visitor.get("/logout").await;
    assert_eq!(state().await, "revoked");
}

#[tokio::test]
async fn a_malformed_code_is_rejected_with_an_example() {
    let site = Site::with_room(1, "").await;
    let ended = room(&site.gateway, &token(&site), &["find", "3F9A-12CX"]).await;
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.err.contains("a code looks like 3F9A-12C4"),
        "{}",
        ended.err
    );
    let ended = room(&site.gateway, &token(&site), &["find", "0000-0000"]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(
        ended.out.contains("this node does not know the visitor"),
        "{}",
        ended.out
    );
}
