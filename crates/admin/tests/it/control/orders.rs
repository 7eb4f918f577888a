//! Who may change a room, how, and what is said to those who may not?

use anteroom_room::time::DurationMs;
use serde_json::{Value, json};

use crate::control::bench::{Bench, TOKEN};
use crate::control::client::Answer;

const PATHS: [&str; 8] = [
    "set",
    "pause",
    "resume",
    "queue-all",
    "open",
    "message",
    "reset",
    "assume-empty",
];

async fn said(bench: &Bench, what: &str, body: Value) -> Value {
    let answer = bench
        .say(&format!("/rooms/shop/{what}"), &body.to_string())
        .await;
    assert_eq!(answer.status, 200, "{what} {body}: {}", answer.body);
    answer.json()
}

fn problems(answer: &Answer) -> Vec<String> {
    let problems = answer.json()["problems"].clone();
    serde_json::from_value(problems).unwrap()
}

#[tokio::test]
async fn nobody_changes_anything_without_a_token_that_holds() {
    let bench = Bench::new().await;
    let wrong = format!("Bearer {TOKEN}x");
    let basic = format!("Basic {TOKEN}");
    let shown: [&[(&str, &str)]; 5] = [
        &[],
        &[("anteroom-operator", "root")],
        &[("authorization", "Bearer ")],
        &[("authorization", &wrong)],
        &[("authorization", &basic)],
    ];
    for headers in shown {
        for path in PATHS {
            let path = format!("/rooms/shop/{path}");
            let answer = bench.say_with(&path, "{}", headers).await;
            assert_eq!(answer.status, 401, "{path} {headers:?}");
            assert_eq!(answer.json()["error"], "no_token");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        }
    }
    assert_eq!(bench.get("/rooms/shop/audit").await.status, 401);
    assert_eq!(bench.get("/rooms/shop/settings").await.json()["version"], 0);
    let token = format!("bearer {TOKEN}");
    let page = [
        ("authorization", token.as_str()),
        ("sec-fetch-site", "cross-site"),
    ];
    let path = "/rooms/shop/pause";
    assert_eq!(
        bench.say_with(path, "", &page).await.json()["error"],
        "cross_site"
    );
    assert_eq!(bench.say_with(path, "", &page[..1]).await.status, 200);
    bench.stop().await;
}

#[tokio::test]
async fn what_is_said_holds_at_once_and_says_where_it_comes_from() {
    let bench = Bench::new().await;
    let shown = said(
        &bench,
        "set",
        json!({ "total_active_users": 300, "session_duration": "2m" }),
    )
    .await;
    assert_eq!(
        shown["values"]["total_active_users"],
        json!({ "value": 300, "from": "operator", "file": 200 })
    );
    assert_eq!(shown["values"]["new_users_per_minute"]["from"], "file");
    said(&bench, "pause", json!({ "message": "Payment problem" })).await;
    let state = bench.get("/rooms/shop/state").await.json();
    assert_eq!(state["totalActiveUsers"], 300);
    assert_eq!(
        (&state["paused"], &state["message"]),
        (&json!(true), &json!("Payment problem"))
    );
    let overrides = state["overrides"].as_object().unwrap();
    assert_eq!(
        overrides.keys().collect::<Vec<_>>(),
        ["session_duration", "total_active_users"]
    );
    assert_eq!(
        bench.get("/rooms/tickets/state").await.json()["paused"],
        false
    );
    let metrics = bench.get("/metrics").await.body;
    for line in [
        "anteroom_paused{room=\"shop\"} 1",
        "anteroom_paused{room=\"tickets\"} 0",
        "anteroom_override_active{room=\"shop\",key=\"total_active_users\"} 1",
        "anteroom_total_active_users_limit{room=\"shop\"} 300",
        "anteroom_override_version{room=\"shop\"} 2",
    ] {
        assert!(metrics.lines().any(|it| it == line), "{line}\n{metrics}");
    }
    said(&bench, "reset", json!({ "key": "total_active_users" })).await;
    assert_eq!(
        bench.get("/rooms/shop/state").await.json()["totalActiveUsers"],
        200
    );
    said(&bench, "reset", json!({})).await;
    let state = bench.get("/rooms/shop/state").await.json();
    assert_eq!(
        (&state["paused"], &state["overrides"]),
        (&json!(false), &json!({}))
    );
    bench.stop().await;
}

#[tokio::test]
async fn all_mistakes_are_told_at_once_and_nothing_is_changed() {
    let bench = Bench::new().await;
    let body = json!({ "total_active_users": 0, "new_users_per_minute": 50, "draw": true });
    let answer = bench.say("/rooms/shop/set", &body.to_string()).await;
    assert_eq!(
        (answer.status, &answer.json()["error"]),
        (422, &json!("not_allowed"))
    );
    assert_eq!(
        problems(&answer),
        [
            "room \"shop\": total_active_users: found 0, allowed: an integer from 1 to 2147483647",
            "room \"shop\": draw: found true, allowed: only together with opens_at and \
             queueing_method \"fifo\"",
        ]
    );
    for (path, body, status) in [
        ("pause", "{\"mesage\":\"x\"}", 400),
        ("set", "[]", 400),
        ("set", "{\"a\":", 400),
        ("set", "", 422),
        ("resume", "{\"now\":true}", 400),
        ("message", "{\"message\":\"two\\nlines\"}", 422),
        ("reset", "{\"key\":\"colour\"}", 422),
    ] {
        let answer = bench.say(&format!("/rooms/shop/{path}"), body).await;
        assert_eq!(answer.status, status, "{path} {body}");
        assert_eq!(problems(&answer).len(), 1, "{path} {body}");
    }
    let long = format!("{{\"message\":\"{}\"}}", "x".repeat(20_000));
    assert_eq!(bench.say("/rooms/shop/message", &long).await.status, 413);
    assert_eq!(
        bench.say("/rooms/nowhere/open", "").await.json()["error"],
        "unknown_room"
    );
    let shown = bench.get("/rooms/shop/settings").await.json();
    assert_eq!(shown["version"], 0);
    bench.stop().await;
}

#[tokio::test]
async fn the_log_says_who_and_what_and_never_the_token() {
    let bench = Bench::new().await;
    let token = format!("Bearer {TOKEN}");
    let headers = [
        ("authorization", token.as_str()),
        ("anteroom-operator", "alice"),
    ];
    let body = json!({ "total_active_users": 300 }).to_string();
    bench.say_with("/rooms/shop/set", &body, &headers).await;
    said(&bench, "assume-empty", json!({})).await;
    let request = format!(
        "GET /rooms/shop/audit HTTP/1.1\r\nhost: localhost\r\nauthorization: {token}\r\n\r\n"
    );
    let answer = bench.send(&request).await;
    assert!(!answer.body.contains(TOKEN));
    let log = answer.json();
    let entries = log["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(
        entries[0]["who"],
        json!({ "token": "test", "user": "alice", "address": "127.0.0.1" })
    );
    assert_eq!(entries[0]["at"], crate::control::bench::NOW.0);
    assert_eq!(
        entries[0]["changes"],
        json!([{ "key": "total_active_users", "before": 200, "after": 300 }])
    );
    assert_eq!(
        (&entries[1]["what"], &entries[1]["who"]["user"]),
        (&json!("assume-empty"), &Value::Null)
    );
    bench.stop().await;
}

#[tokio::test]
async fn while_the_disk_is_full_only_a_stop_is_done() {
    let bench = Bench::new().await;
    bench.faults.set_full(true);
    for path in ["resume", "open", "assume-empty"] {
        let away = bench.say(&format!("/rooms/shop/{path}"), "").await;
        assert_eq!(
            (away.status, &away.json()["error"]),
            (503, &json!("store_unavailable"))
        );
    }
    assert_eq!(bench.get("/rooms/shop/state").await.json()["paused"], false);

    let held = bench.say("/rooms/shop/pause", "").await;
    assert_eq!(held.status, 202, "{}", held.body);
    let note = "This holds at this node only: the store does not answer. All nodes follow when \
                the store answers. It is not in the data folder: a restart of this node ends it.";
    assert_eq!(held.json()["note"], note);
    let state = bench.get("/rooms/shop/state").await.json();
    assert_eq!(state["paused"], true);
    assert_eq!(state["heldCommands"][0]["command"], "pause");
    assert_eq!(state["heldCommands"][0]["isKept"], false);
    let ended = bench.say("/rooms/shop/resume", "").await;
    assert_eq!(ended.status, 202, "{}", ended.body);
    let note = "What this node held by itself has ended: the store does not answer. Stops at \
                other nodes stay.";
    assert_eq!(ended.json()["note"], note);
    assert_eq!(bench.get("/rooms/shop/state").await.json()["paused"], false);
}

#[tokio::test]
async fn a_stop_for_this_node_says_that_the_store_was_not_asked() {
    let bench = Bench::new().await;
    let stray = bench.say("/rooms/shop/open", r#"{"thisNode": true}"#).await;
    assert_eq!(stray.status, 422, "{}", stray.body);
    let expected = "this node holds nothing by itself that this would end";
    assert_eq!(problems(&stray), [expected]);
    let held = bench
        .say("/rooms/shop/queue-all", r#"{"thisNode": true}"#)
        .await;
    assert_eq!(held.status, 202, "{}", held.body);
    let note = held.json()["note"].as_str().unwrap().to_owned();
    assert!(note.contains("the store was not asked first"), "{note}");
    bench
        .until(|room| room.config().name.as_str() != "shop" || room.shown().held.is_empty())
        .await;
    let state = bench.get("/rooms/shop/state").await.json();
    assert_eq!(
        (&state["queueAll"], &state["overrideVersion"]),
        (&json!(true), &json!(1))
    );
    let wrong = bench.say("/rooms/shop/set", r#"{"thisNode": true}"#).await;
    assert_eq!(wrong.status, 422, "{}", wrong.body);
    bench.stop().await;
}

#[tokio::test]
async fn a_room_that_opens_later_says_in_how_long() {
    let bench = Bench::new().await;
    let state = async || bench.get("/rooms/shop/state").await.json();
    assert_eq!(state().await["opensInMs"], Value::Null);
    let opening = json!({ "opens_at": "2023-09-11T12:45:54Z" });
    said(&bench, "set", opening).await;
    assert_eq!(state().await["opensInMs"], 3_600_000);
    assert_eq!(state().await["opensAt"], "2023-09-11T12:45:54.000Z");
    said(&bench, "open", json!({})).await;
    bench.clock.advance(DurationMs(1));
    assert_eq!(state().await["opensInMs"], Value::Null);
    bench.stop().await;
}
