//! What does a question cost of one who waits, and what do as many as come cost in memory?

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};
use tokio::process::Command;

use crate::load::Requests;
use crate::peers::{Course, Nursery, QUIET};

/// How many ask in turn.
const ASKING: usize = 1_000;
const BURST: Duration = Duration::from_secs(4);
const QUESTION: &str = "/.well-known/anteroom/place?room=own";

/// What they cost.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Waiting {
    /// Newcomers who got the page and a ticket, over sockets.
    pub(crate) came: u64,
    /// Memory of the gateway, when it had served some and when it had served all of them.
    pub(crate) idle_bytes: u64,
    pub(crate) bytes: u64,
    pub(crate) cpu_s_per_million_questions: f64,
    /// Questions a second that two processors answer, by that.
    pub(crate) answered_per_s: f64,
    pub(crate) in_process: InProcess,
}

/// The same at a node without HTTP, where all of them wait at the same time; by `anteroom-bench`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct InProcess {
    pub(crate) came: u64,
    /// How many the node said are waiting.
    pub(crate) said_waiting: u64,
    pub(crate) idle_bytes: u64,
    pub(crate) bytes: u64,
    /// Questions a second of all of them, each asking when it is told to.
    pub(crate) asked_per_s: f64,
    /// The most in any second, newcomers included.
    pub(crate) most_per_s: u64,
}

/// Sends so many newcomers into a room where nobody goes in; then some of them ask where they
/// stand.
pub(crate) async fn run(anteroom: &Path, bench: &Path, count: u64) -> anyhow::Result<Waiting> {
    let folder = tempfile::tempdir()?;
    let nursery = Nursery {
        folder: folder.path(),
    };
    // Nobody gets as far as an origin.
    let behind = "127.0.0.1:9".parse().expect("it is legal");
    let peer = nursery.gateway("anteroom", anteroom, QUIET, behind).await?;
    let course = Course::OwnPage;
    let newcomers = Requests::with(&[String::new()])?;
    let come = async |time| newcomers.send(peer.address, course.path(), time).await;
    // What serving costs is no cost of those who wait.
    let mut came = come(Duration::from_secs(1)).await?.requests;
    let idle_bytes = peer.process.resident_bytes()?;
    while came < count {
        came += come(BURST).await?.requests;
        eprintln!("{came} of {count} have come");
    }
    let bytes = peer.process.resident_bytes()?;
    let cookies = match &peer.crowd {
        Some(crowd) => crowd.cookies(course, ASKING).await?,
        None => Vec::new(),
    };
    let questions = Requests::with(&cookies)?;
    let before = peer.process.cpu_s()?;
    let burst = questions.send(peer.address, QUESTION, BURST).await?;
    let cost = (peer.process.cpu_s()? - before) / burst.requests as f64;
    Ok(Waiting {
        came,
        idle_bytes,
        bytes,
        cpu_s_per_million_questions: cost * 1e6,
        answered_per_s: 2.0 / cost,
        in_process: in_process(bench, count).await?,
    })
}

async fn in_process(bench: &Path, count: u64) -> anyhow::Result<InProcess> {
    eprintln!("{count} wait in one process ...");
    let mut command = Command::new(bench);
    let output = command
        .args(["--waiting", &count.to_string()])
        .output()
        .await;
    let output = output.with_context(|| format!("starting {}", bench.display()))?;
    ensure!(
        output.status.success(),
        "{} failed:\n{}",
        bench.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).context("reading what anteroom-bench printed")
}
