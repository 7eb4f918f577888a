//! Who may change what holds for a client of a limit, how, and what is said to those who may not?

use serde_json::{Value, json};

use crate::control::bench::{Bench, NOW, TOKEN};
use crate::control::client::Answer;

async fn say(bench: &Bench, path: &str, body: Value) -> Answer {
    bench.say(path, &body.to_string()).await
}

async fn look(bench: &Bench, path: &str) -> Answer {
    let head =
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\r\n");
    bench.send(&head).await
}

async fn said(bench: &Bench, path: &str, body: Value) -> Value {
    let answer = say(bench, path, body).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    answer.json()
}

#[tokio::test]
async fn nobody_reads_or_changes_anything_without_a_token() {
    let bench = Bench::new().await;
    for path in ["/limits", "/limits/api", "/audit/limits"] {
        assert_eq!(bench.get(path).await.status, 401, "{path}");
        assert_eq!(look(&bench, path).await.status, 200, "{path}");
    }
    for path in ["/limits/api/set", "/limits/api/unset", "/limits/api/show"] {
        let body = json!({ "key": "gold", "limit": "1/s" }).to_string();
        let wrong = [("authorization", "Bearer not this one")];
        assert_eq!(
            bench.say_with(path, &body, &wrong).await.status,
            401,
            "{path}"
        );
        assert_eq!(bench.say_with(path, &body, &[]).await.status, 401, "{path}");
    }
    assert_eq!(look(&bench, "/limits").await.json()["version"], 0);
    bench.stop().await;
}

#[tokio::test]
async fn what_is_said_holds_and_says_where_it_comes_from() {
    let bench = Bench::new().await;
    let shown = said(
        &bench,
        "/limits/api/set",
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
    let standing = said(&bench, "/limits/api/show", json!({ "key": ["silver"] })).await;
    let free = json!({
        "calls": 500, "windowSeconds": 60, "remaining": 500, "freeAfterMs": 0, "fullAfterMs": 0,
    });
    assert_eq!(standing, free);
    let other = said(&bench, "/limits/api/show", json!({ "key": "anybody" })).await;
    assert_eq!(other["calls"], 100);
    let burst = json!({ "key": "10.0.0.1", "limit": "60/m", "burst": 9 });
    said(&bench, "/limits/login/set", burst).await;
    let standing = said(&bench, "/limits/login/show", json!({ "key": "10.0.0.1" })).await;
    assert_eq!(
        (&standing["calls"], &standing["remaining"]),
        (&json!(60), &json!(9))
    );
    said(&bench, "/limits/api/unset", json!({ "key": "silver" })).await;
    let standing = said(&bench, "/limits/api/show", json!({ "key": "silver" })).await;
    assert_eq!(standing["calls"], 100);
    let all = look(&bench, "/limits").await.json();
    let count = |at: usize| all["limits"][at]["overrides"].as_array().unwrap().len();
    assert_eq!((count(0), count(1)), (1, 1));
    bench.stop().await;
}

#[tokio::test]
async fn where_nothing_is_lent_nothing_is_forgotten_and_nothing_is_written_down() {
    let bench = Bench::new().await;
    let path = "/limits/assume-empty";
    let wrong = [("authorization", "Bearer not this one")];
    assert_eq!(bench.say_with(path, "", &wrong).await.status, 401);
    assert_eq!(bench.say_with(path, "", &[]).await.status, 401);
    for body in ["", "{}"] {
        let answer = bench.say(path, body).await;
        assert_eq!(answer.status, 422, "{}", answer.body);
        let problem = answer.json()["problems"][0].to_string();
        assert!(problem.contains("store = "), "{problem}");
    }
    let odd = say(&bench, path, json!({ "limit": "api" })).await;
    assert_eq!(odd.status, 400, "{}", odd.body);
    // It is said of all limits that are lent, and not of one.
    let one = say(&bench, "/limits/api", json!({})).await;
    assert_eq!(
        (one.status, &one.json()["error"]),
        (405, &json!("method_not_allowed"))
    );
    // Nothing is at this path to be read, unless a limit is called so.
    assert_eq!(look(&bench, path).await.json()["error"], "unknown_limit");
    let log = look(&bench, "/audit/limits").await.json();
    assert_eq!(log["entries"], json!([]));
    bench.stop().await;
}

#[tokio::test]
async fn what_is_refused_says_what_is_allowed() {
    let bench = Bench::new().await;
    let unknown = look(&bench, "/limits/shop").await;
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
            "/limits/shop/set",
            json!({ "key": "a", "limit": "1/s" }),
            404,
        ),
        (
            "/limits/%ff/set",
            json!({ "key": "a", "limit": "1/s" }),
            404,
        ),
        ("/limits/api/set", json!({ "limit": "1/s" }), 422),
        ("/limits/api/set", json!({ "key": "a", "limit": "1" }), 422),
        (
            "/limits/api/set",
            json!({ "key": ["a", "b"], "limit": "1/s" }),
            422,
        ),
        (
            "/limits/api/set",
            json!({ "key": "a", "limit": "1/s", "burst": 3 }),
            422,
        ),
        ("/limits/api/set", json!({ "key": 7, "limit": "1/s" }), 400),
        ("/limits/api/set", json!(["a"]), 400),
        ("/limits/api/unset", json!({ "key": "gold" }), 422),
        (
            "/limits/api/unset",
            json!({ "key": "gold", "limit": "1/s" }),
            400,
        ),
        ("/limits/api/show", json!({}), 400),
        ("/limits/login/show", json!({ "key": "gold" }), 422),
    ] {
        let answer = say(&bench, path, body.clone()).await;
        assert_eq!(answer.status, status, "{path} {body}: {}", answer.body);
        let told = answer.json();
        assert_eq!(told["problems"].is_null(), status == 404, "{told}");
    }
    let long = json!({ "key": "k".repeat(20_000), "limit": "1/s" });
    assert_eq!(say(&bench, "/limits/api/set", long).await.status, 413);
    assert_eq!(look(&bench, "/limits").await.json()["version"], 0);
    bench.stop().await;
}

#[tokio::test]
async fn the_log_says_who_and_never_which_key() {
    let bench = Bench::new().await;
    said(
        &bench,
        "/limits/api/set",
        json!({ "key": "s3cret", "limit": "1/s" }),
    )
    .await;
    said(&bench, "/limits/api/unset", json!({ "key": "s3cret" })).await;
    let log = look(&bench, "/audit/limits").await;
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
async fn while_the_disk_is_full_nothing_is_changed_and_that_is_said() {
    let bench = Bench::new().await;
    bench.faults.set_full(true);
    let order = json!({ "key": "silver", "limit": "1/s" });
    let away = say(&bench, "/limits/api/set", order).await;
    assert_eq!(
        (away.status, &away.json()["error"]),
        (503, &json!("store_unavailable"))
    );
    let standing = said(&bench, "/limits/api/show", json!({ "key": "silver" })).await;
    assert_eq!(standing["calls"], 100);
}
