//! Cost of the polls of waiting visitors, and memory of many waiting visitors.

use std::path::Path;

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};
use tokio::process::Command;

use crate::generator::{Burst, Headers, Pace, Protocol};
use crate::load::{CONNECTIONS, Generator, Load};
use crate::peers::{Course, Launcher, Peer, QUIET};
use crate::visitors::cookies;

/// Name by which the measurement is chosen.
pub(crate) const NAME: &str = "waiting visitors";

/// Visitors that poll in turn.
const POLLING_VISITORS: usize = 1_000;
const BURST_MS: u64 = 4_000;
/// New visitors per second: more than this machine serves, as only their number matters.
const NEW_VISITORS_PER_S: u64 = 100_000;
/// Path of the poll of a visitor who waits for [`Course::OwnPage`].
pub(crate) const POLL_PATH: &str = "/.well-known/anteroom/position?room=own";

/// Cost of waiting visitors.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Waiting {
    /// New visitors that got the page and a ticket, over sockets.
    pub(crate) came: u64,
    /// Memory of the gateway after the first ones; `bytes` is that after all of them.
    pub(crate) idle_bytes: u64,
    pub(crate) bytes: u64,
    pub(crate) cpu_s_per_million_questions: f64,
    /// Polls per second that two processors can serve, by the measured cost.
    pub(crate) answered_per_s: f64,
    pub(crate) in_process: InProcess,
}

/// Cost at a node without HTTP, where all visitors wait at the same time; measured by
/// `anteroom-bench`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct InProcess {
    pub(crate) came: u64,
    /// Waiting visitors that the node counts.
    pub(crate) said_waiting: u64,
    pub(crate) idle_bytes: u64,
    pub(crate) bytes: u64,
    /// Polls per second of all visitors, at the instructed interval.
    pub(crate) asked_per_s: f64,
    /// Most requests in any second, including new visitors.
    pub(crate) most_per_s: u64,
}

/// Sends new visitors into a room that admits none; then some of them poll their position.
pub(crate) async fn run(
    anteroom: &Path,
    bench: &Path,
    count: u64,
    rate: u64,
) -> anyhow::Result<Waiting> {
    let folder = tempfile::tempdir()?;
    let launcher = Launcher {
        folder: folder.path(),
        certificate: None,
        wrapper: &[],
    };
    // No request reaches an origin.
    let origin = "127.0.0.1:9".parse().expect("the address is valid");
    let peer = launcher
        .gateway("anteroom", anteroom, QUIET, origin)
        .await?;
    let path = Course::OwnPage.path();
    let newcomers = [String::new()];
    // Exclude the cost of serving from that of waiting.
    let mut came = send(&peer, path, &newcomers, NEW_VISITORS_PER_S, 1_000).await?;
    let idle_bytes = peer.process.resident_bytes()?;
    while came.requests < count {
        let more = send(&peer, path, &newcomers, NEW_VISITORS_PER_S, BURST_MS).await?;
        came.requests += more.requests;
        eprintln!("{} of {count} have arrived", came.requests);
    }
    let bytes = peer.process.resident_bytes()?;
    let cookies = cookies(&peer, path, POLLING_VISITORS).await?;
    let before = peer.process.cpu_s()?;
    let polls = send(&peer, POLL_PATH, &cookies, rate, BURST_MS).await?;
    let cost = (peer.process.cpu_s()? - before) / polls.requests as f64;
    Ok(Waiting {
        came: came.requests,
        idle_bytes,
        bytes,
        cpu_s_per_million_questions: cost * 1e6,
        answered_per_s: 2.0 / cost,
        in_process: in_process(bench, count).await?,
    })
}

async fn send(
    peer: &Peer,
    path: &str,
    cookies: &[String],
    per_s: u64,
    ms: u64,
) -> anyhow::Result<Burst> {
    let mut generator = Generator::start(&Load {
        address: peer.address,
        path,
        cookies,
        connections: CONNECTIONS,
        protocol: Protocol::Http1,
        headers: Headers::Lean,
        certificate: None,
    })
    .await?;
    let burst = generator.send(Pace::Rate { per_s, ms }).await?;
    generator.end().await?;
    Ok(burst)
}

async fn in_process(bench: &Path, count: u64) -> anyhow::Result<InProcess> {
    eprintln!("{count} visitors wait in one process ...");
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
    serde_json::from_slice(&output.stdout).context("reading the output of anteroom-bench")
}
