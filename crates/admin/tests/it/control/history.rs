//! Tests of the history of a room and of its reports, over rows of two nodes in one store.

use std::sync::Arc;

use anteroom_admin::history::{HistoryError, ReportOf, report_of};
use anteroom_history::Row;
use anteroom_node::HandClock;
use anteroom_room::id::NodeId;
use anteroom_room::time::{DurationMs, Minute, Timestamp};
use anteroom_store::memory::Memory;
use anteroom_store::{
    HistoryBound, HistoryGrain, HistoryName, HistoryRow, HistoryRows, Store as _,
};
use serde_json::{Value, json};

use crate::control::bench::{Bench, NOW};
use crate::control::client::Response;

const CONFIG: &str = r#"
[[room]]
name = "shop"
host = "shop.example"
origin = "http://127.0.0.1:9000"
total_active_users = 200
new_users_per_minute = 300
bypass = []

[[room.event]]
name = "friday"
event_start_time = "2023-09-11T11:40:00Z"
event_end_time = "2023-09-11T11:43:00Z"

[[room.event]]
name = "later"
event_start_time = "2023-09-12T11:40:00Z"
event_end_time = "2023-09-12T12:40:00Z"
"#;

/// First minute of the rows: 2023-09-11T11:41:00Z.
const FIRST: Timestamp = Timestamp(1_694_432_460_000);
const HISTORY: &str = "/api/v1/rooms/shop/history";
const REPORT: &str = "/api/v1/rooms/shop/report";

/// Node with its store.
struct Stage {
    bench: Bench,
    store: Memory,
}

impl Stage {
    async fn new() -> Self {
        let clock = Arc::new(HandClock::new(NOW));
        let store = Memory::new(Arc::clone(&clock) as _);
        Self {
            bench: Bench::on_shared(store.clone(), clock, CONFIG).await,
            store,
        }
    }

    /// Starts a node whose store has rows of two nodes and two minutes.
    async fn with_rows() -> Self {
        let stage = Self::new().await;
        let rows = [
            row(0, 1, &[1_000; 9]),
            row(0, 2, &[60_000; 1]),
            row(1, 1, &[2_000; 2]),
            row(1, 2, &[]),
        ];
        let of_shop = HistoryRows {
            name: HistoryName("shop/0000000000000001".to_owned()),
            rows: rows.iter().map(stored).collect(),
        };
        let bound = HistoryBound {
            bytes: 1 << 20,
            rooms: 1,
        };
        stage.store.put_history(&[of_shop], bound).await.unwrap();
        stage
    }

    async fn get(&self, path: &str) -> Response {
        self.bench.get_as_operator(path).await
    }

    /// Reads a path that must be found.
    async fn found(&self, path: &str) -> Response {
        let response = self.get(path).await;
        assert_eq!(response.status, 200, "{path}: {}", response.body);
        response
    }
}

/// Returns a row of a minute and a node, with admissions after these waits.
fn row(minute: u64, node: u64, waits: &[u64]) -> Row {
    let mut row = Row {
        begins: Minute(FIRST.minute().0 + minute),
        minutes: 1,
        node,
        ..Row::default()
    };
    row.figures.arrivals = 10;
    row.figures.admitted = waits.len() as u64;
    for wait in waits {
        row.figures.waits.note(DurationMs(*wait));
    }
    let room = &mut row.room;
    room.samples = 1;
    room.as_of = row.begins.starts_at();
    (room.active.max, room.active.last) = (150, 150);
    (room.total_active_users.max, room.total_active_users.last) = (200, 200);
    let rate = &mut room.new_users_per_minute;
    (rate.max, rate.last) = (12, 12);
    row
}

fn stored(row: &Row) -> HistoryRow {
    HistoryRow {
        grain: HistoryGrain::Minute,
        begins: row.begins,
        node: NodeId(row.node),
        value: row.encode(),
    }
}

/// Whether a percentile is right to 10 %.
fn is_about(found: &Value, expected: u64) -> bool {
    found
        .as_u64()
        .is_some_and(|found| found.abs_diff(expected) * 10 <= expected)
}

#[tokio::test]
async fn rows_of_two_nodes_are_one_history() {
    let stage = Stage::with_rows().await;
    let body = stage.found(HISTORY).await.json();
    assert_eq!(
        (&body["room"], &body["stepMinutes"]),
        (&json!("shop"), &json!(1))
    );
    assert_eq!(body["from"], "2023-09-11T10:45:00Z");
    assert_eq!(body["until"], "2023-09-11T11:46:00Z");
    let points = body["points"].as_array().unwrap();
    assert_eq!(points.len(), 2, "{body}");
    let point = &points[0];
    assert_eq!(point["at"], "2023-09-11T11:41:00Z");
    let counts = ["nodes", "arrivals", "admitted", "waited"].map(|key| point[key].clone());
    assert_eq!(json!(counts), json!([2, 20, 10, 10]));
    assert_eq!(point["activeMax"], 150, "a figure of the room is not added");
    assert!(is_about(&point["waitP50Ms"], 1_000), "{point}");
    assert!(is_about(&point["waitP90Ms"], 1_000), "{point}");

    // Percentiles are over both minutes, and not means of those of each.
    let path = format!("{HISTORY}?from=2023-09-11T11:40:00Z&to=2023-09-11T11:44:00Z&step=4");
    let body = stage.found(&path).await.json();
    assert_eq!(body["points"].as_array().unwrap().len(), 1, "{body}");
    let point = &body["points"][0];
    assert_eq!(
        (&point["minutes"], &point["waited"]),
        (&json!(4), &json!(12))
    );
    assert!(is_about(&point["waitP50Ms"], 1_000), "{point}");
    assert!(is_about(&point["waitP90Ms"], 2_000), "{point}");
    stage.bench.stop().await;
}

#[tokio::test]
async fn a_history_is_csv_or_a_page_on_request() {
    let stage = Stage::with_rows().await;
    let csv = stage.found(&format!("{HISTORY}?format=csv")).await;
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8"));
    let lines: Vec<&str> = csv.body.lines().collect();
    assert_eq!(lines.len(), 3, "{}", csv.body);
    assert!(lines[0].starts_with("at,minutes,nodes,arrivals,admitted,"));
    assert!(lines[1].starts_with("2023-09-11T11:41:00Z,1,2,20,10,"));
    let json = stage.found(HISTORY).await.json();
    let names: Vec<&str> = lines[0].split(',').collect();
    let point = json["points"][0].as_object().unwrap();
    assert_eq!(
        names.len(),
        point.len(),
        "CSV and JSON have the same values"
    );
    assert!(names.iter().all(|name| point.contains_key(*name)));
    let page = stage.found(&format!("{HISTORY}?format=html")).await;
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert!(page.body.contains("<svg"), "{}", page.body);
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    stage.bench.stop().await;
}

#[tokio::test]
async fn a_report_of_an_event_says_whether_the_limits_held() {
    let stage = Stage::with_rows().await;
    let report = stage.found(&format!("{REPORT}?event=friday")).await.json();
    assert_eq!(report["event"], "friday");
    assert_eq!(
        (&report["from"], &report["until"]),
        (
            &json!("2023-09-11T11:40:00Z"),
            &json!("2023-09-11T11:43:00Z")
        )
    );
    assert_eq!(report["admissions"]["held"], true, "{report}");
    let nearest = json!({ "at": "2023-09-11T11:41:00Z", "count": 10, "limit": 12 });
    assert_eq!(report["admissions"]["nearest"], nearest);
    assert_eq!(report["active"]["nearest"]["limit"], 200);
    assert_eq!(
        (&report["waits"]["count"], &report["missingPoints"]),
        (&json!(12), &json!(1))
    );
    let text = stage
        .found(&format!("{REPORT}?event=friday&format=text"))
        .await;
    assert_eq!(
        text.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    assert!(
        text.body.starts_with("Room shop, event friday\n"),
        "{}",
        text.body
    );
    let page = stage
        .found(&format!("{REPORT}?event=friday&format=html"))
        .await;
    assert!(
        page.body.contains("<h1>Room shop, event friday</h1>"),
        "{}",
        page.body
    );
    let path = "?from=2023-09-11T11:42:00Z&to=2023-09-11T11:43:00Z";
    let report = stage.found(&format!("{REPORT}{path}")).await.json();
    assert_eq!(
        (&report["event"], &report["arrivals"]),
        (&json!(null), &json!(20))
    );
    stage.bench.stop().await;
}

#[tokio::test]
async fn mistakes_in_a_query_are_refused_together_with_what_is_allowed() {
    let stage = Stage::new().await;
    let check = async |path: &str, expected: &[(&str, &str)]| {
        let response = stage.get(path).await;
        assert_eq!(response.status, 422, "{path}: {}", response.body);
        let body = response.json();
        assert_eq!(body["error"], "not_allowed");
        let problems = body["problems"].as_array().unwrap();
        assert_eq!(problems.len(), expected.len(), "{path}: {body}");
        for (problem, (pointer, part)) in problems.iter().zip(expected) {
            assert_eq!(problem["pointer"], *pointer, "{path}: {body}");
            assert!(
                problem["message"].as_str().unwrap().contains(part),
                "{path}: {body}"
            );
        }
    };
    let all = "?from=yesterday&to=1&step=5m&format=xml";
    check(
        &format!("{HISTORY}{all}"),
        &[
            ("/from", "allowed is a time such as"),
            ("/to", "found \"1\""),
            ("/step", "a number of minutes from 1 to 1440"),
            ("/format", "json, csv, html"),
        ],
    )
    .await;
    check(
        &format!("{HISTORY}?step=0"),
        &[("/step", "1 to 1440 minutes")],
    )
    .await;
    check(
        &format!("{HISTORY}?step=1441"),
        &[("/step", "1 to 1440 minutes")],
    )
    .await;
    let backwards = "?from=2023-09-11T11:42:00Z&to=2023-09-11T11:41:00Z";
    check(
        &format!("{HISTORY}{backwards}"),
        &[("/to", "later than `from`")],
    )
    .await;
    let years = "?from=1990-01-01T00:00:00Z";
    check(
        &format!("{HISTORY}{years}&step=1"),
        &[("/step", "more than 3000")],
    )
    .await;
    check(&format!("{REPORT}{years}"), &[("/from", "more than 3000")]).await;
    check(
        &format!("{REPORT}?format=csv"),
        &[("/format", "json, text, html")],
    )
    .await;
    let both = "?event=friday&to=2023-09-11T11:41:00Z";
    check(&format!("{REPORT}{both}"), &[("/event", "either an event")]).await;
    check(
        &format!("{REPORT}?event=later"),
        &[("/event", "it begins at 2023-09-12T11:40:00Z")],
    )
    .await;
    let unknown = stage.get(&format!("{HISTORY}?until=x")).await;
    assert_eq!(unknown.status, 422, "{}", unknown.body);
    stage.bench.stop().await;
}

#[tokio::test]
async fn an_unknown_event_is_not_found_and_the_known_ones_are_named() {
    let stage = Stage::new().await;
    let response = stage.get(&format!("{REPORT}?event=monday")).await;
    assert_eq!(response.status, 404);
    let body = response.json();
    assert_eq!(body["error"], "unknown_event");
    assert_eq!(body["problems"][0]["message"], "there are: friday, later");
    stage.bench.stop().await;
}

#[tokio::test]
async fn a_room_without_rows_has_an_empty_history() {
    let stage = Stage::new().await;
    let body = stage.found(HISTORY).await.json();
    assert_eq!(body["points"], json!([]));
    let csv = stage.found(&format!("{HISTORY}?format=csv")).await;
    assert_eq!(csv.body.lines().count(), 1, "{}", csv.body);
    let report = stage.found(REPORT).await.json();
    assert_eq!(report["admissions"]["held"], json!(null));
    assert_eq!(
        (&report["missingPoints"], &report["arrivals"]),
        (&json!(61), &json!(0))
    );
    for format in ["text", "html"] {
        stage.found(&format!("{REPORT}?format={format}")).await;
    }
    stage.bench.stop().await;
}

#[tokio::test]
async fn a_store_that_fails_is_no_empty_history() {
    let stage = Stage::with_rows().await;
    stage.store.set_unavailable(true);
    for path in [HISTORY, REPORT] {
        let response = stage.get(path).await;
        assert_eq!(response.status, 503, "{path}: {}", response.body);
        assert_eq!(response.json()["error"], "store_unavailable");
    }
    let room = stage.bench.room("shop");
    let error = report_of(&room, ReportOf::Event("friday"))
        .await
        .unwrap_err();
    assert!(matches!(error, HistoryError::Store(_)), "{error:?}");
    stage.store.set_unavailable(false);
    stage.found(HISTORY).await;
    stage.bench.stop().await;
}
