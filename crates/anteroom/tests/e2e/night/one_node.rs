//! One gateway with its own journal: what is said holds at once, over restarts, and over the file.

use std::path::PathBuf;

use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::config::{SERVER, room as room_toml};
use crate::support::eventually;
use crate::support::process::Gateway;
use crate::support::site::{Site, until_inside};

use super::{room, said, token_file};

/// The data folder stands beside the config file.
fn token(site: &Site) -> PathBuf {
    token_file(&site.file.path().with_file_name("anteroom-data"))
}

async fn say(site: &Site, words: &[&str]) -> Value {
    said(&site.gateway, &token(site), words).await
}

/// What a program that waits is told, if it waits.
async fn place(visitor: &mut Client) -> Option<Value> {
    let answer = visitor.get("/").await;
    answer
        .is_queued()
        .then(|| answer.json()["cfWaitingRoom"].clone())
}

async fn reload(site: &Site, times: f64) {
    site.gateway.signal("HUP");
    eventually("the file is read", || async {
        let counted = site.figure("anteroom_config_reloads_total{outcome=\"ok\"}");
        counted.await == Some(times)
    })
    .await;
}

#[tokio::test]
async fn a_pause_lets_nobody_new_in_and_the_page_says_why() {
    let site = Site::with_room(10, "").await;
    let mut inside = site.insider().await;
    let text = "Payment <problem> & back at \"10:40\"";
    let shown = say(&site, &["pause", "--message", text]).await;
    assert_eq!(shown["paused"]["message"], text);

    let mut newcomer = site.visitor();
    let told = place(&mut newcomer).await.unwrap();
    assert_eq!(
        (&told["reason"], &told["message"]),
        (&json!("paused"), &json!(text))
    );
    assert_eq!(told["queueAll"], true);
    let answer = newcomer.navigate("/").await;
    assert_eq!(answer.headers["anteroom-reason"], "paused");
    let page = answer.text();
    assert!(
        page.contains("Payment &lt;problem&gt; &amp; back at &quot;10:40&quot;"),
        "{page}"
    );
    assert!(page.contains("paused the entry"));
    let path = "/.well-known/anteroom/place?room=main";
    let asked = newcomer.send(Method::GET, path, &[], "").await.json();
    assert_eq!(asked["words"]["message"], text);
    let path = format!("{path}&lang=de");
    let asked = newcomer.send(Method::GET, &path, &[], "").await.json();
    let reason = asked["words"]["reason"].as_str().unwrap();
    assert!(reason.contains("Einlass unterbrochen"), "{reason}");
    assert!(!inside.navigate("/").await.is_queued(), "those inside stay");
    let state = site.state("main").await;
    assert_eq!(
        (&state["paused"], &state["message"]),
        (&json!(true), &json!(text))
    );

    say(&site, &["resume"]).await;
    until_inside(&mut newcomer, "/").await;
    assert_eq!(site.state("main").await["message"], Value::Null);
}

#[tokio::test]
async fn queue_all_gathers_open_admits_and_a_message_stays_beside_both() {
    let site = Site::with_room(10, "").await;
    say(&site, &["message", "Doors at ten"]).await;
    say(&site, &["queue-all"]).await;
    let mut newcomer = site.visitor();
    let told = place(&mut newcomer).await.unwrap();
    assert_eq!(
        (&told["reason"], &told["message"]),
        (&json!("queue_all"), &json!("Doors at ten"))
    );
    say(&site, &["pause", "--message", "A minute more"]).await;
    assert_eq!(
        place(&mut newcomer).await.unwrap()["message"],
        "A minute more"
    );
    say(&site, &["resume"]).await;
    let told = place(&mut newcomer).await.unwrap();
    assert_eq!(
        (&told["reason"], &told["message"]),
        (&json!("queue_all"), &json!("Doors at ten"))
    );
    say(&site, &["open"]).await;
    until_inside(&mut newcomer, "/").await;
    assert_eq!(say(&site, &["show"]).await["message"], "Doors at ten");
    assert_eq!(say(&site, &["message", ""]).await["message"], Value::Null);
}

#[tokio::test]
async fn an_override_outlives_the_process_and_the_file_until_reset() {
    let mut site = Site::with_room(1, "").await;
    say(
        &site,
        &["set", "total_active_users=3", "position_grace=10m"],
    )
    .await;
    say(&site, &["pause", "--message", "wait"]).await;
    // Killed, and ended in order.
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
                place(visitor).await.unwrap()["reason"],
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
    say(&site, &["resume"]).await;

    let file = SERVER.to_owned() + &room_toml("main", site.origin.address, 2, "queue_all = true");
    site.file.write(&file);
    reload(&site, 1.0).await;
    let state = site.state("main").await;
    assert_eq!(
        (&state["totalActiveUsers"], &state["queueAll"]),
        (&json!(3), &json!(true))
    );
    say(&site, &["open"]).await;
    site.insider().await;

    let shown = say(&site, &["reset", "total_active_users"]).await;
    assert_eq!(
        shown["values"]["total_active_users"],
        json!({ "value": 2, "from": "file", "file": 2 })
    );
    assert_eq!(shown["values"]["queue_all"]["value"], false);
    say(&site, &["reset"]).await;
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
    is_written_down(&site, &whats).await;
}

/// Whether the log has these, and who said the first.
async fn is_written_down(site: &Site, expected: &[&str]) {
    let log = say(site, &["audit"]).await;
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
async fn lowered_limits_throw_nobody_out_and_raised_ones_act_at_once() {
    let site = Site::with_room(2, "").await;
    let mut inside = [site.insider().await, site.insider().await];
    say(&site, &["set", "total_active_users=1"]).await;
    let mut waiting = site.visitor();
    for _ in 0..5 {
        assert!(place(&mut waiting).await.is_some());
        for visitor in &mut inside {
            assert!(!visitor.navigate("/").await.is_queued());
        }
    }
    inside[0].get("/logout").await;
    assert!(place(&mut waiting).await.is_some(), "one is still inside");
    say(&site, &["set", "total_active_users=2"]).await;
    until_inside(&mut waiting, "/").await;
}

#[tokio::test]
async fn mistakes_are_told_all_at_once_and_nothing_changes() {
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
    for told in [
        "total_active_users: found 0, allowed: an integer from 1 to 2147483647",
        "sesion_duration: unknown key; did you mean session_duration?",
        "pacing: found \"maybe\", allowed: true or false",
        "opens_at: found \"now\", allowed: a date and time",
        "nothing was changed",
    ] {
        assert!(ended.err.contains(told), "{told}: {}", ended.err);
    }
    assert_eq!(ended.err.lines().count(), 5, "{}", ended.err);
    let ended = room(&site.gateway, &token, &["set", "total_active_users"]).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("is not key=value"), "{}", ended.err);
    let json = room(&site.gateway, &token, &["--json", "reset", "colour"]).await;
    assert_eq!(json.code, Some(2));
    let told: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(told["error"], "not_allowed");
    assert_eq!(say(&site, &["show"]).await["version"], 0);
}

#[tokio::test]
async fn show_and_status_say_what_an_operator_set() {
    let site = Site::with_room(2, "").await;
    let token = token(&site);
    say(
        &site,
        &["set", "total_active_users=5", "session_duration=2m"],
    )
    .await;
    say(&site, &["pause", "--message", "Back soon"]).await;
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
    let told = "PAUSED; operator: session_duration, total_active_users, message";
    assert!(table.contains(told), "{table}");
    for (sample, value) in [
        ("anteroom_paused{room=\"main\"}", 1.0),
        (
            "anteroom_override_active{room=\"main\",key=\"total_active_users\"}",
            1.0,
        ),
        ("anteroom_total_active_users_limit{room=\"main\"}", 5.0),
    ] {
        assert_eq!(site.figure(sample).await, Some(value), "{sample}");
    }
    let log = site.gateway.log().join("\n");
    assert!(log.contains("an operator changed the room"), "{log}");
    let secret = std::fs::read_to_string(&token).unwrap();
    assert!(!log.contains(secret.trim()));
}

/// A moment so far ahead that nobody here waits for it.
fn tomorrow() -> Timestamp {
    let second = Timestamp::now().as_second() + 86_400;
    Timestamp::from_second(second).unwrap()
}

#[tokio::test]
async fn an_opening_is_set_moved_and_ended_while_people_wait() {
    let site = Site::with_room(10, "").await;
    let mut visitor = site.visitor();
    say(&site, &["set", &format!("opens_at={}", tomorrow())]).await;
    let told = place(&mut visitor).await.unwrap();
    assert_eq!(
        (&told["reason"], &told["timeUntilEventStart"]),
        (&json!("not_open_yet"), &json!(1440))
    );
    let soon = Timestamp::from_second(Timestamp::now().as_second() + 3).unwrap();
    say(&site, &["set", &format!("opens_at={soon}")]).await;
    until_inside(&mut visitor, "/").await;
    let accepted_at = site.origin.last().number("anteroom-accepted-at");
    assert!(i64::try_from(accepted_at).unwrap() >= soon.as_millisecond());

    say(&site, &["set", &format!("opens_at={}", tomorrow())]).await;
    let mut early = site.visitor();
    assert_eq!(place(&mut early).await.unwrap()["reason"], "not_open_yet");
    assert!(
        !visitor.navigate("/").await.is_queued(),
        "who is inside stays"
    );
    say(&site, &["set", "opens_at=none"]).await;
    until_inside(&mut early, "/").await;
}

#[tokio::test]
async fn open_holds_the_draw_among_those_who_came_before_it() {
    let more = format!("opens_at = \"{}\"\ndraw = true", tomorrow());
    let site = Site::with_room(2, &more).await;
    let mut early: Vec<Client> = (0..6).map(|_| site.visitor()).collect();
    for visitor in &mut early {
        place(visitor).await;
        let told = place(visitor).await.unwrap();
        assert_eq!(told["shuffleAtEventStart"], true);
        assert!(told["position"].is_null(), "there is no order yet");
    }
    let refused = room(&site.gateway, &token(&site), &["set", "opens_at=none"]).await;
    assert!(
        refused
            .err
            .contains("draw: found true, allowed: only together with"),
        "{}",
        refused.err
    );
    say(&site, &["open"]).await;
    let late = tokio::sync::Mutex::new((early, site.visitor()));
    eventually(
        "the early ones stand in an order, and who comes late behind them",
        || async {
            let (early, late) = &mut *late.lock().await;
            let mut positions = Vec::new();
            for visitor in early {
                if let Some(told) = place(visitor).await {
                    positions.push(told["position"].as_u64());
                }
            }
            let last = place(late).await.and_then(|told| told["position"].as_u64());
            positions.len() == 4 && positions.iter().all(Option::is_some) && last == Some(5)
        },
    )
    .await;
}

#[tokio::test]
async fn a_room_is_switched_off_and_on_again_at_once() {
    let site = Site::with_room(1, "").await;
    site.insider().await;
    let mut second = site.visitor();
    assert!(place(&mut second).await.is_some());
    say(&site, &["set", "suspended=true"]).await;
    assert!(place(&mut second).await.is_none(), "everybody passes");
    let refused = room(&site.gateway, &token(&site), &["pause"]).await;
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.err.contains("set suspended=false first"),
        "{}",
        refused.err
    );
    say(
        &site,
        &["set", "suspended=false", "queueing_status_code=503"],
    )
    .await;
    assert_eq!(second.navigate("/").await.status, 503);
}
