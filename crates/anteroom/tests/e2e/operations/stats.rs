//! Health, metrics and status of a running gateway.

use serde_json::{Value, json};

use crate::support::command::run;
use crate::support::eventually;
use crate::support::site::Site;

/// Starts a room of one seat with one active and two waiting visitors.
async fn busy_site() -> Site {
    let site = Site::with_room(1, "").await;
    site.insider().await;
    for _ in 0..2 {
        let mut waiting = site.visitor();
        waiting.get("/").await;
        waiting.get("/").await;
    }
    eventually("all are counted", || async {
        let state = site.state("main").await;
        state["activeUsers"] == 1 && state["queuedUsers"] == 2
    })
    .await;
    site
}

#[tokio::test]
async fn health_is_good_while_the_lease_is_valid() {
    let site = busy_site().await;
    let response = site.operators("/healthz").await;
    assert_eq!(response.status, 200);
    let expected = json!({"healthy": true, "rooms": [], "limits": [], "lastReloadError": null});
    assert_eq!(response.json(), expected);
    assert_eq!(response.headers["cache-control"], "no-store");
}

#[tokio::test]
async fn metrics_count_visitors_and_responses() {
    let site = busy_site().await;
    let response = site.operators("/metrics").await;
    let kind = response.headers["content-type"].to_str().unwrap();
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    let text = response.text();
    assert!(text.ends_with("# EOF\n"));
    for line in [
        "anteroom_seats_active{room=\"main\"} 1",
        "anteroom_visitors_waiting{room=\"main\"} 2",
        "anteroom_total_active_users_limit{room=\"main\"} 1",
        "anteroom_admissions_total{room=\"main\"} 1",
        "anteroom_lease_live{room=\"main\"} 1",
        "anteroom_degraded{room=\"main\",reason=\"store_unavailable\"} 0",
        "anteroom_verdicts_total{room=\"main\",verdict=\"admit\"} 1",
        "anteroom_origin_outcomes_total{room=\"main\",class=\"answered\"} 1",
        "anteroom_config_rejected 0",
    ] {
        assert!(
            text.lines().any(|it| it == line),
            "{line} is not in\n{text}"
        );
    }
    // Prometheus computes no quantile of a histogram without this bucket.
    for histogram in ["order_inversion_seconds", "origin_response_seconds"] {
        let bucket = format!("anteroom_{histogram}_bucket{{");
        let mut buckets = text.lines().filter(|line| line.starts_with(&bucket));
        let has_infinity = buckets.any(|line| line.contains("le=\"+Inf\""));
        assert!(has_infinity, "{histogram} in\n{text}");
    }
    // Visitors before the first lease were queued as well, so only the difference is known.
    for sample in [
        "anteroom_queued_responses_total{room=\"main\"}",
        "anteroom_verdicts_total{room=\"main\",verdict=\"queue\"}",
    ] {
        let before = site.metric(sample).await.unwrap();
        site.visitor().get("/").await;
        assert_eq!(site.metric(sample).await, Some(before + 1.0), "{sample}");
    }
}

#[tokio::test]
async fn the_state_of_a_room_has_the_known_fields_and_ours() {
    let site = busy_site().await;
    let state = site.state("main").await;
    for (key, expected) in [
        ("activeUsers", json!(1)),
        ("globalWorkersActive", json!(1)),
        ("dataCenterWorkersActive", json!(1)),
        ("room", json!("main")),
        ("totalActiveUsers", json!(1)),
        ("newUsersPerMinute", json!(100_000)),
        ("queuedUsers", json!(2)),
        ("watermarkOpen", json!(false)),
        ("epoch", json!(0)),
        ("phantomSeats", json!(0)),
        ("reopensAt", Value::Null),
        ("degraded", Value::Null),
        ("queueingMethod", json!("fifo")),
        ("allocation", json!("leases")),
        ("queueAll", json!(false)),
        ("suspended", json!(false)),
    ] {
        assert_eq!(state[key], expected, "{key} of {state:#}");
    }
    assert!(state["ageMs"].is_u64());
    let minutes = state["trafficHistory"].as_object().unwrap();
    let minute = minutes
        .values()
        .find(|minute| minute["local"] == "1/100000");
    let minute = minute.unwrap_or_else(|| panic!("{state:#}"));
    assert_eq!(minute["Anywhere"], "99999/100000");
    let when: jiff::Timestamp = minutes.keys().next().unwrap().parse().unwrap();
    assert_eq!(when.as_second() % 60, 0);

    let unknown = site.operators("/api/v1/rooms/nowhere/state").await;
    assert_eq!(unknown.status, 404);
    assert_eq!(unknown.json()["rooms"], json!(["main"]));
}

#[tokio::test]
async fn status_is_a_table_or_json() {
    let site = busy_site().await;
    let admin = site.gateway.admin.to_string();
    let ended = run(&["status", "--admin", &admin]).await;
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    let lines: Vec<_> = ended.out.lines().collect();
    assert_eq!(lines.len(), 2, "{}", ended.out);
    let cells: Vec<_> = lines[0]
        .split("  ")
        .filter(|cell| !cell.is_empty())
        .collect();
    assert_eq!(cells[0], "room");
    for (line, cell) in [
        (1, "main"),
        (1, "1/1"),
        (1, "queueing (fifo)"),
        (0, " this minute"),
    ] {
        assert!(lines[line].contains(cell), "{cell}: {}", ended.out);
    }
    let column = lines[0].find("waiting").unwrap();
    assert!(lines[1][column..].starts_with('2'), "{}", ended.out);

    let ended = run(&["status", "--admin", &admin, "--json"]).await;
    assert_eq!(ended.code, Some(0));
    let states: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(states["rooms"][0]["room"], "main");
    assert_eq!(states["rooms"][0]["activeUsers"], 1);
}

#[tokio::test]
async fn status_names_the_address_when_no_gateway_responds() {
    // Bound, so that no other process uses it, but not listening.
    let mute = tokio::net::TcpSocket::new_v4().unwrap();
    mute.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let admin = mute.local_addr().unwrap().to_string();
    let ended = run(&["status", "--admin", &admin]).await;
    assert_eq!(ended.code, Some(1));
    for expected in [admin.as_str(), "anteroom serve", "--admin"] {
        assert!(ended.err.contains(expected), "{expected}: {}", ended.err);
    }
}
