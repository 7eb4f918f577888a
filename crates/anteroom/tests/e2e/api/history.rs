//! `anteroom history` and `anteroom report`, at two gateways on one Redis.

use std::fs;

use http::{Method, StatusCode};
use serde_json::Value;

use super::Nodes;
use crate::support::client::Client;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_node_shows_what_another_one_counted() {
    let mut nodes = Nodes::start().await;
    let mut visitor = Client::new(nodes.gateways[1].address);
    let headers = [("host", "shop.example"), ("accept", "text/html")];
    let first = visitor.send(Method::GET, "/checkout", &headers, "").await;
    assert_eq!(first.status, StatusCode::OK);
    // A process that ends writes the rows of the running minute.
    let gateway = &mut nodes.gateways[1];
    gateway.signal("TERM");
    assert_eq!(gateway.ended().await, Some(0));

    let json = ["history", "checkout", "--json"];
    let history: Value = serde_json::from_str(&nodes.succeed(0, &json).await).unwrap();
    let points = history["points"].as_array().unwrap();
    let arrivals = points
        .iter()
        .map(|point| point["arrivals"].as_u64().unwrap());
    assert_eq!(arrivals.sum::<u64>(), 1, "{history}");
    let table = nodes.succeed(0, &["history", "checkout"]).await;
    assert!(table.contains("TIME (UTC)"), "{table}");
    let csv = nodes.succeed(0, &["history", "checkout", "--csv"]).await;
    assert_eq!(csv.lines().count(), points.len() + 1, "{csv}");
    let page = nodes.temp.path().join("page.html").display().to_string();
    let chart = ["history", "checkout", "--chart", &page];
    let wrote = nodes.succeed(0, &chart).await;
    assert_eq!(wrote, format!("wrote {page}\n"));
    assert!(fs::read_to_string(&page).unwrap().contains("<svg"));

    let from = ["report", "checkout", "--from", "2020-01-01T00:00:00Z"];
    let parts = ["points are more than"];
    nodes.refuse(0, &from, &parts).await;
    let begin = history["from"].as_str().unwrap().to_owned();
    let report = ["report", "checkout", "--from", &begin];
    let text = nodes.succeed(0, &report).await;
    assert!(text.contains("1 came, 1 were admitted"), "{text}");
    let html = [&report[..], &["--html", &page]].concat();
    nodes.succeed(0, &html).await;
    let step = ["history", "checkout", "--step", "0"];
    nodes.refuse(0, &step, &["1 to 1440 minutes"]).await;
    let unknown = nodes.command(0, &["report", "checkout", "friday"]).await;
    assert_eq!(unknown.code, Some(1), "{}", unknown.err);
    assert!(unknown.err.contains("there are: none"), "{}", unknown.err);
}
