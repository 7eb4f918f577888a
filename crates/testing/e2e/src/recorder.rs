//! What did the nodes say of the room, and when? Twice a second each one is asked for its state, as
//! an operator would, and the answers are written down: evidence for runs that fail, and nothing
//! else.

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

use crate::clock::now;
use crate::judge::ROOM;
use crate::node::Door;

/// How often.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// A node that is paused says nothing.
const ANSWER_WITHIN: Duration = Duration::from_millis(400);

/// What a run counts must not be missing because the machine is busy.
const METRICS_WITHIN: Duration = Duration::from_secs(10);

/// Writes down what nodes say; stops when dropped.
#[derive(Debug)]
pub(crate) struct Recorder {
    file: PathBuf,
    task: JoinHandle<()>,
}

impl Recorder {
    /// Asks the nodes of these names at their addresses for operators.
    pub(crate) fn start(folder: &Path, nodes: Vec<(String, Door)>) -> Self {
        let file = folder.join("states");
        let task = tokio::spawn(record(file.clone(), nodes));
        Self { file, task }
    }

    /// The last lines.
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

/// What a node says of the room at present; `None` if it does not answer.
pub(crate) async fn state(door: &Door) -> Option<Value> {
    let client = Client::builder(TokioExecutor::new()).build_http();
    timeout(ANSWER_WITHIN, ask(&client, door)).await.ok()?
}

/// A metric of the room at present; `None` if the node does not answer, or has none of this name.
pub(crate) async fn metric<T: FromStr>(door: &Door, name: &str) -> Option<T> {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let metrics = timeout(METRICS_WITHIN, read(&client, door, "/metrics"));
    let metrics = metrics.await.ok()??;
    let metrics = std::str::from_utf8(&metrics).ok()?;
    let sample = format!("{name}{{room=\"{ROOM}\"}} ");
    let mut lines = metrics.lines();
    let value = lines.find_map(|line| line.strip_prefix(&sample))?;
    value.parse().ok()
}

async fn record(path: PathBuf, nodes: Vec<(String, Door)>) {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let mut file = std::fs::File::create(path).expect("a file in a new folder");
    let mut looks = interval(ASK_EVERY);
    loop {
        looks.tick().await;
        for (name, door) in &nodes {
            if door.address().is_none() {
                continue;
            }
            let state = timeout(ANSWER_WITHIN, ask(&client, door)).await;
            let state = state.ok().flatten().map(|state| state.to_string());
            let state = state.unwrap_or_else(|| "no answer".to_owned());
            // Evidence that cannot be written down is no reason to end a run.
            let _ = writeln!(file, "{} {name} {state}", now().0);
        }
    }
}

async fn ask(client: &Client<HttpConnector, Empty<Bytes>>, door: &Door) -> Option<Value> {
    let body = read(client, door, &format!("/rooms/{ROOM}/state")).await?;
    serde_json::from_slice(&body).ok()
}

async fn read(
    client: &Client<HttpConnector, Empty<Bytes>>,
    door: &Door,
    path: &str,
) -> Option<Bytes> {
    let url = format!("http://{}{path}", door.address()?);
    let request = Request::get(url).body(Empty::new()).ok()?;
    let response = client.request(request).await.ok()?;
    let body = response.into_body().collect().await.ok()?;
    Some(body.to_bytes())
}
