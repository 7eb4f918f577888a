//! Tests of commands on rooms.

use anteroom_room::time::DurationMs;
use serde_json::{Value, json};

use crate::control::bench::{Bench, TOKEN};
use crate::control::client::Response;

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

async fn send(bench: &Bench, what: &str, body: Value) -> Value {
    let response = bench
        .post(&format!("/api/v1/rooms/shop/{what}"), &body.to_string())
        .await;
    assert_eq!(response.status, 200, "{what} {body}: {}", response.body);
    response.json()
}

fn problems(response: &Response) -> Vec<String> {
    let body = response.json();
    let problems = body["problems"].as_array().unwrap().iter();
    let messages = problems.map(|problem| problem["message"].as_str().unwrap().to_owned());
    messages.collect()
}

#[tokio::test]
async fn changes_need_a_valid_token() {
    let bench = Bench::new().await;
    let wrong = format!("Bearer {TOKEN}x");
    let basic = format!("Basic {TOKEN}");
    let invalid: [&[(&str, &str)]; 5] = [
        &[],
        &[("anteroom-operator", "root")],
        &[("authorization", "Bearer ")],
        &[("authorization", &wrong)],
        &[("authorization", &basic)],
    ];
    for headers in invalid {
        for path in PATHS {
            let path = format!("/api/v1/rooms/shop/{path}");
            let response = bench.post_with(&path, "{}", headers).await;
            assert_eq!(response.status, 401, "{path} {headers:?}");
            assert_eq!(response.json()["error"], "no_token");
            assert_eq!(response.header("www-authenticate"), Some("Bearer"));
        }
    }
    assert_eq!(bench.get("/api/v1/rooms/shop/audit").await.status, 401);
    assert_eq!(
        bench
            .get_as_operator("/api/v1/rooms/shop/settings")
            .await
            .json()["version"],
        0
    );
    let token = format!("bearer {TOKEN}");
    let page = [
        ("authorization", token.as_str()),
        ("sec-fetch-site", "cross-site"),
    ];
    let path = "/api/v1/rooms/shop/pause";
    assert_eq!(
        bench.post_with(path, "", &page).await.json()["error"],
        "cross_site"
    );
    assert_eq!(bench.post_with(path, "", &page[..1]).await.status, 200);
    bench.stop().await;
}

#[tokio::test]
async fn a_search_for_a_visitor_needs_a_token_and_a_code() {
    let bench = Bench::new().await;
    let path = "/api/v1/rooms/shop/visitors/3f9a12c4";
    assert_eq!(bench.get(path).await.status, 401);
    let found = bench.get_as_operator(path).await;
    assert_eq!(found.status, 200);
    let nobody = json!({ "room": "shop", "code": "3F9A-12C4", "visitors": [] });
    assert_eq!(found.json(), nobody);
    for code in ["3F9A", "3F9A-12CG", "%2e%2e", "%ff"] {
        let path = format!("/api/v1/rooms/shop/visitors/{code}");
        let response = bench.get_as_operator(&path).await;
        assert!([404, 422].contains(&response.status), "{code}");
    }
    let path = "/api/v1/rooms/shop/visitors/3F9A";
    let response = bench.get_as_operator(path).await;
    assert_eq!(response.status, 422);
    assert!(problems(&response)[0].starts_with("a code looks like 3F9A-12C4"));
    let elsewhere = "/api/v1/rooms/nowhere/visitors/3F9A-12C4";
    assert_eq!(bench.get_as_operator(elsewhere).await.status, 404);
    bench.stop().await;
}

#[tokio::test]
async fn a_command_applies_at_once_and_its_source_is_shown() {
    let bench = Bench::new().await;
    let shown = send(
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
    send(&bench, "pause", json!({ "message": "Payment problem" })).await;
    let state = bench.get("/api/v1/rooms/shop/state").await.json();
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
        bench.get("/api/v1/rooms/tickets/state").await.json()["paused"],
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
    send(&bench, "reset", json!({ "key": "total_active_users" })).await;
    assert_eq!(
        bench.get("/api/v1/rooms/shop/state").await.json()["totalActiveUsers"],
        200
    );
    send(&bench, "reset", json!({})).await;
    let state = bench.get("/api/v1/rooms/shop/state").await.json();
    assert_eq!(
        (&state["paused"], &state["overrides"]),
        (&json!(false), &json!({}))
    );
    bench.stop().await;
}

#[tokio::test]
async fn an_override_ends_by_itself_and_shows_who_set_it() {
    let bench = Bench::new().await;
    let until = "2023-09-11T11:50:54.000Z";
    let body = json!({ "total_active_users": 300, "until": until });
    let shown = send(&bench, "set", body).await;
    let set = json!({
        "by": "test",
        "at": "2023-09-11T11:45:54.000Z",
        "until": until,
        "event": null,
    });
    assert_eq!(shown["set"]["total_active_users"], set);
    let total = async || {
        let settings = "/api/v1/rooms/shop/settings";
        let shown = bench.get_as_operator(settings).await.json();
        (
            shown["values"]["total_active_users"]["value"].clone(),
            shown,
        )
    };
    assert_eq!(total().await.0, 300);
    bench.clock.advance(DurationMs(300_000));
    bench
        .until(|room| room.config().rules.limits.total_active_users == 200)
        .await;
    let (value, shown) = total().await;
    assert_eq!((value, &shown["set"]), (json!(200), &json!(null)));
    let body = json!({ "message": "Soon", "until": "tomorrow" }).to_string();
    let refused = bench.post("/api/v1/rooms/shop/pause", &body).await;
    assert_eq!(refused.status, 422);
    let problem = &refused.json()["problems"][0];
    assert_eq!(problem["pointer"], "/until");
    assert!(
        problem["message"].as_str().unwrap().contains("event_end"),
        "{problem}"
    );
    bench.stop().await;
}

#[tokio::test]
async fn all_mistakes_are_reported_together_and_nothing_changes() {
    let bench = Bench::new().await;
    let body = json!({ "total_active_users": 0, "new_users_per_minute": 50, "draw": true });
    let response = bench
        .post("/api/v1/rooms/shop/set", &body.to_string())
        .await;
    assert_eq!(
        (response.status, &response.json()["error"]),
        (422, &json!("not_allowed"))
    );
    assert_eq!(
        problems(&response),
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
        let response = bench
            .post(&format!("/api/v1/rooms/shop/{path}"), body)
            .await;
        assert_eq!(response.status, status, "{path} {body}");
        assert_eq!(problems(&response).len(), 1, "{path} {body}");
    }
    let long = format!("{{\"message\":\"{}\"}}", "x".repeat(20_000));
    assert_eq!(
        bench.post("/api/v1/rooms/shop/message", &long).await.status,
        413
    );
    assert_eq!(
        bench.post("/api/v1/rooms/nowhere/open", "").await.json()["error"],
        "unknown_room"
    );
    let shown = bench
        .get_as_operator("/api/v1/rooms/shop/settings")
        .await
        .json();
    assert_eq!(shown["version"], 0);
    bench.stop().await;
}

#[tokio::test]
async fn the_audit_log_has_the_actor_and_never_the_token() {
    let bench = Bench::new().await;
    let token = format!("Bearer {TOKEN}");
    let headers = [
        ("authorization", token.as_str()),
        ("anteroom-operator", "alice"),
    ];
    let body = json!({ "total_active_users": 300 }).to_string();
    bench
        .post_with("/api/v1/rooms/shop/set", &body, &headers)
        .await;
    send(&bench, "assume-empty", json!({})).await;
    let request = format!(
        "GET /api/v1/rooms/shop/audit HTTP/1.1\r\nhost: localhost\r\nauthorization: {token}\r\n\r\n"
    );
    let response = bench.send(&request).await;
    assert!(!response.body.contains(TOKEN));
    let log = response.json();
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
async fn with_a_full_disk_only_a_pause_applies() {
    let bench = Bench::new().await;
    bench.faults.set_full(true);
    for path in ["resume", "open", "assume-empty"] {
        let unavailable = bench.post(&format!("/api/v1/rooms/shop/{path}"), "").await;
        assert_eq!(
            (unavailable.status, &unavailable.json()["error"]),
            (503, &json!("store_unavailable"))
        );
    }
    assert_eq!(
        bench.get("/api/v1/rooms/shop/state").await.json()["paused"],
        false
    );

    let held = bench.post("/api/v1/rooms/shop/pause", "").await;
    assert_eq!(held.status, 202, "{}", held.body);
    let note = "This applies at this node only: the store is unavailable. All nodes follow when \
                the store replies. It is not in the data folder: a restart of this node ends it.";
    assert_eq!(held.json()["note"], note);
    let state = bench.get("/api/v1/rooms/shop/state").await.json();
    assert_eq!(state["paused"], true);
    assert_eq!(state["heldCommands"][0]["command"], "pause");
    assert_eq!(state["heldCommands"][0]["isKept"], false);
    let ended = bench.post("/api/v1/rooms/shop/resume", "").await;
    assert_eq!(ended.status, 202, "{}", ended.body);
    let note = "The command of this node has ended: the store is unavailable. Commands of other \
                nodes stay.";
    assert_eq!(ended.json()["note"], note);
    assert_eq!(
        bench.get("/api/v1/rooms/shop/state").await.json()["paused"],
        false
    );
}

#[tokio::test]
async fn a_command_for_this_node_skips_the_store() {
    let bench = Bench::new().await;
    let stray = bench
        .post("/api/v1/rooms/shop/open", r#"{"thisNode": true}"#)
        .await;
    assert_eq!(stray.status, 422, "{}", stray.body);
    let expected = "this node has no held stop that the command would end";
    assert_eq!(problems(&stray), [expected]);
    let held = bench
        .post("/api/v1/rooms/shop/queue-all", r#"{"thisNode": true}"#)
        .await;
    assert_eq!(held.status, 202, "{}", held.body);
    let note = held.json()["note"].as_str().unwrap().to_owned();
    assert!(note.contains("the command skipped the store"), "{note}");
    bench
        .until(|room| room.config().name.as_str() != "shop" || room.shown().held.is_empty())
        .await;
    let state = bench.get("/api/v1/rooms/shop/state").await.json();
    assert_eq!(
        (&state["queueAll"], &state["overrideVersion"]),
        (&json!(true), &json!(1))
    );
    let wrong = bench
        .post("/api/v1/rooms/shop/set", r#"{"thisNode": true}"#)
        .await;
    assert_eq!(wrong.status, 422, "{}", wrong.body);
    bench.stop().await;
}

#[tokio::test]
async fn a_room_that_opens_later_shows_the_remaining_time() {
    let bench = Bench::new().await;
    let state = async || bench.get("/api/v1/rooms/shop/state").await.json();
    assert_eq!(state().await["opensInMs"], Value::Null);
    let opening = json!({ "opens_at": "2023-09-11T12:45:54Z" });
    send(&bench, "set", opening).await;
    assert_eq!(state().await["opensInMs"], 3_600_000);
    assert_eq!(state().await["opensAt"], "2023-09-11T12:45:54.000Z");
    send(&bench, "open", json!({})).await;
    bench.clock.advance(DurationMs(1));
    assert_eq!(state().await["opensInMs"], Value::Null);
    bench.stop().await;
}
