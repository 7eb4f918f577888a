//! Load on one proxy, from a process of its own.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, ensure};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::generator::{Burst, Headers, Pace, Protocol};
use crate::process::{OF_OTHERS, pinned};

/// Connections of a load, if nothing else is said.
pub(crate) const CONNECTIONS: usize = 64;

/// Target and kind of requests.
#[derive(Clone, Copy)]
pub(crate) struct Load<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) path: &'a str,
    /// Cookies that are sent in turn; a single empty one means no cookie.
    pub(crate) cookies: &'a [String],
    pub(crate) connections: usize,
    pub(crate) protocol: Protocol,
    pub(crate) headers: Headers,
    /// Certificate of the proxy, for TLS.
    pub(crate) certificate: Option<&'a Path>,
}

/// Load generator whose connections are open, each after one request.
pub(crate) struct Generator {
    child: Child,
    orders: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    folder: TempDir,
}

impl Generator {
    /// Starts a generator and waits until its connections are open.
    pub(crate) async fn start(load: &Load<'_>) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let cookies = folder.path().join("cookies");
        fs::write(&cookies, load.cookies.join("\n") + "\n")?;
        let errors = fs::File::create(folder.path().join("errors"))?;
        let myself = std::env::current_exe().context("a running program has a path")?;
        let mut command = tokio::process::Command::from(pinned(OF_OTHERS, &myself));
        command
            .args(["generate", "--path", load.path])
            .args(["--address", &load.address.to_string()])
            .args(["--connections", &load.connections.to_string()])
            .args(["--protocol", load.protocol.name()])
            .args(["--headers", load.headers.name()])
            .arg("--cookies")
            .arg(cookies);
        if let Some(certificate) = load.certificate {
            command.arg("--certificate").arg(certificate);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .kill_on_drop(true);
        let mut child = command.spawn().context("starting the load generator")?;
        let orders = child.stdin.take().context("standard input is a pipe")?;
        let output = child.stdout.take().context("standard output is a pipe")?;
        let mut generator = Self {
            child,
            orders,
            output: BufReader::new(output).lines(),
            folder,
        };
        let ready = generator.line().await?;
        ensure!(ready == "ready", "the load generator printed {ready}");
        Ok(generator)
    }

    /// Sends requests at a pace.
    pub(crate) async fn send(&mut self, pace: Pace) -> anyhow::Result<Burst> {
        let order = serde_json::to_string(&pace)? + "\n";
        // If the generator has ended, its error follows instead of a line.
        let _ = self.orders.write_all(order.as_bytes()).await;
        let line = self.line().await?;
        serde_json::from_str(&line).context("reading the output of the load generator")
    }

    async fn line(&mut self) -> anyhow::Result<String> {
        if let Some(line) = self.output.next_line().await? {
            return Ok(line);
        }
        let status = self.child.wait().await?;
        let errors = fs::read_to_string(self.folder.path().join("errors"));
        anyhow::bail!(
            "the load generator failed ({status}): {}",
            errors.unwrap_or_default()
        )
    }

    /// Closes the connections and waits for the end of the process.
    pub(crate) async fn end(mut self) -> anyhow::Result<()> {
        drop(self.orders);
        self.child.wait().await?;
        Ok(())
    }
}
