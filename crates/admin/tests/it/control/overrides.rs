//! Tests of commands on clients of limits.

use serde_json::{Value, json};

use crate::control::bench::{Bench, NOW, TOKEN};
use crate::control::client::Response;

async fn post(bench: &Bench, path: &str, body: Value) -> Response {
    bench.post(path, &body.to_string()).await
}

async fn get(bench: &Bench, path: &str) -> Response {
    let head =
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\r\n");
    bench.send(&head).await
}

async fn post_ok(bench: &Bench, path: &str, body: Value) -> Value {
    let response = post(bench, path, body).await;
    assert_eq!(response.status, 200, "{path}: {}", response.body);
    response.json()
}

#[tokio::test]
async fn reads_and_changes_need_a_token() {
    let bench = Bench::new().await;
    for path in [
        "/api/v1/limits",
        "/api/v1/limits/api",
        "/api/v1/audit/limits",
    ] {
        assert_eq!(bench.get(path).await.status, 401, "{path}");
        assert_eq!(get(&bench, path).await.status, 200, "{path}");
    }
    for path in [
        "/api/v1/limits/api/set",
        "/api/v1/limits/api/unset",
        "/api/v1/limits/api/show",
    ] {
        let body = json!({ "key": "gold", "limit": "1/s" }).to_string();
        let wrong = [("authorization", "Bearer not this one")];
        assert_eq!(
            bench.post_with(path, &body, &wrong).await.status,
            401,
            "{path}"
        );
        assert_eq!(
            bench.post_with(path, &body, &[]).await.status,
            401,
            "{path}"
        );
    }
    assert_eq!(get(&bench, "/api/v1/limits").await.json()["version"], 0);
    bench.stop().await;
}

#[tokio::test]
async fn an_override_applies_and_its_source_is_shown() {
    let bench = Bench::new().await;
    let shown = post_ok(
        &bench,
        "/api/v1/limits/api/set",
        json!({ "key": "silver", "limit": "500/min" }),
    )
    .await;
    assert_eq!(
        shown,
        json!({ "version": 1, "leftOff": 0, "limits": [{
            "limit": "api",
            "values": { "limit": "100/m" },
            "overrides": [
                { "client": ["silver"], "from": "operator", "values": { "limit": "500/m" },
                  "file": null, "problems": [] },
                { "client": ["gold"], "from": "file", "values": { "limit": "900/m" },
                  "file": { "limit": "900/m" }, "problems": [] },
            ],
        }] })
    );
    let standing = post_ok(
        &bench,
        "/api/v1/limits/api/show",
        json!({ "key": ["silver"] }),
    )
    .await;
    let free = json!({
        "requests": 500, "windowSeconds": 60, "remaining": 500, "freeAfterMs": 0, "fullAfterMs": 0,
    });
    assert_eq!(standing, free);
    let other = post_ok(
        &bench,
        "/api/v1/limits/api/show",
        json!({ "key": "anybody" }),
    )
    .await;
    assert_eq!(other["requests"], 100);
    let burst = json!({ "key": "10.0.0.1", "limit": "60/m", "burst": 9 });
    post_ok(&bench, "/api/v1/limits/login/set", burst).await;
    let standing = post_ok(
        &bench,
        "/api/v1/limits/login/show",
        json!({ "key": "10.0.0.1" }),
    )
    .await;
    assert_eq!(
        (&standing["requests"], &standing["remaining"]),
        (&json!(60), &json!(9))
    );
    post_ok(
        &bench,
        "/api/v1/limits/api/unset",
        json!({ "key": "silver" }),
    )
    .await;
    let standing = post_ok(
        &bench,
        "/api/v1/limits/api/show",
        json!({ "key": "silver" }),
    )
    .await;
    assert_eq!(standing["requests"], 100);
    let all = get(&bench, "/api/v1/limits").await.json();
    let count = |at: usize| all["limits"][at]["overrides"].as_array().unwrap().len();
    assert_eq!((count(0), count(1)), (1, 1));
    bench.stop().await;
}

#[tokio::test]
async fn assume_empty_without_leases_is_rejected() {
    let bench = Bench::new().await;
    let path = "/api/v1/limit-leases/assume-empty";
    let wrong = [("authorization", "Bearer not this one")];
    assert_eq!(bench.post_with(path, "", &wrong).await.status, 401);
    assert_eq!(bench.post_with(path, "", &[]).await.status, 401);
    for body in ["", "{}"] {
        let response = bench.post(path, body).await;
        assert_eq!(response.status, 422, "{}", response.body);
        let problem = response.json()["problems"][0].to_string();
        assert!(problem.contains("store = "), "{problem}");
    }
    let odd = post(&bench, path, json!({ "limit": "api" })).await;
    assert_eq!(odd.status, 400, "{}", odd.body);
    let log = get(&bench, "/api/v1/audit/limits").await.json();
    assert_eq!(log["entries"], json!([]));
    bench.stop().await;
}

#[tokio::test]
async fn a_rejected_command_names_its_problems() {
    let bench = Bench::new().await;
    let unknown = get(&bench, "/api/v1/limits/shop").await;
    assert_eq!(unknown.status, 404);
    assert_eq!(
        unknown.json(),
        json!({
            "error": "unknown_limit",
            "message": "no limit has this name",
            "limits": ["api", "login"],
        })
    );
    for (path, body, status) in [
        (
            "/api/v1/limits/shop/set",
            json!({ "key": "a", "limit": "1/s" }),
            404,
        ),
        (
            "/api/v1/limits/%ff/set",
            json!({ "key": "a", "limit": "1/s" }),
            404,
        ),
        ("/api/v1/limits/api/set", json!({ "limit": "1/s" }), 422),
        (
            "/api/v1/limits/api/set",
            json!({ "key": "a", "limit": "1" }),
            422,
        ),
        (
            "/api/v1/limits/api/set",
            json!({ "key": ["a", "b"], "limit": "1/s" }),
            422,
        ),
        (
            "/api/v1/limits/api/set",
            json!({ "key": "a", "limit": "1/s", "burst": 3 }),
            422,
        ),
        (
            "/api/v1/limits/api/set",
            json!({ "key": 7, "limit": "1/s" }),
            400,
        ),
        ("/api/v1/limits/api/set", json!(["a"]), 400),
        ("/api/v1/limits/api/unset", json!({ "key": "gold" }), 422),
        (
            "/api/v1/limits/api/unset",
            json!({ "key": "gold", "limit": "1/s" }),
            400,
        ),
        ("/api/v1/limits/api/show", json!({}), 400),
        ("/api/v1/limits/login/show", json!({ "key": "gold" }), 422),
    ] {
        let response = post(&bench, path, body.clone()).await;
        assert_eq!(response.status, status, "{path} {body}: {}", response.body);
        let body = response.json();
        assert_eq!(body["problems"].is_null(), status == 404, "{body}");
    }
    let long = json!({ "key": "k".repeat(20_000), "limit": "1/s" });
    assert_eq!(
        post(&bench, "/api/v1/limits/api/set", long).await.status,
        413
    );
    assert_eq!(get(&bench, "/api/v1/limits").await.json()["version"], 0);
    bench.stop().await;
}

#[tokio::test]
async fn the_audit_log_has_the_actor_and_never_the_key() {
    let bench = Bench::new().await;
    post_ok(
        &bench,
        "/api/v1/limits/api/set",
        json!({ "key": "s3cret", "limit": "1/s" }),
    )
    .await;
    post_ok(
        &bench,
        "/api/v1/limits/api/unset",
        json!({ "key": "s3cret" }),
    )
    .await;
    let log = get(&bench, "/api/v1/audit/limits").await;
    assert!(
        !log.body.contains("s3cret") && !log.body.contains(TOKEN),
        "{}",
        log.body
    );
    let entries = log.json()["entries"].clone();
    assert_eq!(entries.as_array().unwrap().len(), 2);
    assert_eq!(
        entries[0],
        json!({
            "version": 1,
            "at": NOW.0,
            "who": { "token": "test", "user": null, "address": "127.0.0.1" },
            "what": "limits set api (6 characters that are not shown) limit=1/s",
            "changes": [{
                "key": "api (6 characters that are not shown)",
                "before": "limit=100/m",
                "after": "limit=1/s",
            }],
        })
    );
    bench.stop().await;
}

#[tokio::test]
async fn with_a_full_disk_commands_fail_and_nothing_changes() {
    let bench = Bench::new().await;
    bench.faults.set_full(true);
    let command = json!({ "key": "silver", "limit": "1/s" });
    let unavailable = post(&bench, "/api/v1/limits/api/set", command).await;
    assert_eq!(
        (unavailable.status, &unavailable.json()["error"]),
        (503, &json!("store_unavailable"))
    );
    let standing = post_ok(
        &bench,
        "/api/v1/limits/api/show",
        json!({ "key": "silver" }),
    )
    .await;
    assert_eq!(standing["requests"], 100);
}
