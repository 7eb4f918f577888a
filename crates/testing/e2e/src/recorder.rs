//! Recorder of the nodes' states: twice a second it requests the state of each node like an
//! operator, and writes it down. It is evidence for failed runs, and nothing else.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::{interval, timeout};

use crate::origin::ROOM;
use anteroom_testkit::clock::now;
use anteroom_testkit::load::NodeAddress;

/// Interval of the requests.
const REQUEST_EVERY: Duration = Duration::from_millis(500);
/// Longest wait for a response; a paused node sends none.
const RESPONSE_WITHIN: Duration = Duration::from_millis(400);

/// Longest wait of a test for a state. The node reads the newest overrides first, which takes a few
/// round trips to the root after a rest.
const STATE_WITHIN: Duration = Duration::from_secs(4);
/// Longest wait for metrics, which must not be missing on a busy machine.
const METRICS_WITHIN: Duration = Duration::from_secs(10);

/// Recorder of states; stops when dropped.
#[derive(Debug)]
pub(crate) struct Recorder {
    file: PathBuf,
    task: JoinHandle<()>,
}

impl Recorder {
    /// Starts to request the nodes of these names at their addresses for operators.
    pub(crate) fn start(folder: &Path, nodes: Vec<(String, NodeAddress)>) -> Self {
        let file = folder.join("states");
        let task = tokio::spawn(record(file.clone(), nodes));
        Self { file, task }
    }

    /// Returns the last lines.
    pub(crate) fn tail(&self, lines: usize) -> String {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        let all: Vec<&str> = text.lines().collect();
        let tail = all.get(all.len().saturating_sub(lines)..);
        tail.unwrap_or_default().join("\n")
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns the present state of the room at a node; `None` without a response.
pub(crate) async fn state(address: &NodeAddress) -> Option<Value> {
    let client = Client::builder(TokioExecutor::new()).build_http();
    timeout(STATE_WITHIN, ask(&client, address)).await.ok()?
}

/// Returns a present metric of the room; `None` without a response, or if there is none of this
/// name. `labels` are those after the room, each with a comma in front.
pub(crate) async fn metric<T: FromStr>(
    address: &NodeAddress,
    name: &str,
    labels: &str,
) -> Option<T> {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let metrics = timeout(METRICS_WITHIN, read(&client, address, "/metrics"));
    let metrics = metrics.await.ok()??;
    let metrics = std::str::from_utf8(&metrics).ok()?;
    let sample = format!("{name}{{room=\"{ROOM}\"{labels}}} ");
    let mut lines = metrics.lines();
    let value = lines.find_map(|line| line.strip_prefix(&sample))?;
    value.parse().ok()
}

async fn record(path: PathBuf, nodes: Vec<(String, NodeAddress)>) {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let mut file = std::fs::File::create(path).expect("a file in a new folder");
    let mut ticks = interval(REQUEST_EVERY);
    loop {
        ticks.tick().await;
        for (name, address) in &nodes {
            if address.get().is_none() {
                continue;
            }
            let state = timeout(RESPONSE_WITHIN, ask(&client, address)).await;
            let state = state.ok().flatten().map(|state| state.to_string());
            let state = state.unwrap_or_else(|| "no response".to_owned());
            // A failed write of evidence does not end a run.
            let _ = writeln!(file, "{} {name} {state}", now().0);
        }
    }
}

async fn ask(client: &Client<HttpConnector, Empty<Bytes>>, address: &NodeAddress) -> Option<Value> {
    let body = read(client, address, &format!("/api/v1/rooms/{ROOM}/state")).await?;
    serde_json::from_slice(&body).ok()
}

async fn read(
    client: &Client<HttpConnector, Empty<Bytes>>,
    address: &NodeAddress,
    path: &str,
) -> Option<Bytes> {
    let url = format!("http://{}{path}", address.get()?);
    let request = Request::get(url).body(Empty::new()).ok()?;
    let response = client.request(request).await.ok()?;
    let body = response.into_body().collect().await.ok()?;
    Some(body.to_bytes())
}
