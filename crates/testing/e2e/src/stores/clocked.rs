//! A redis-server whose wall clock can be stepped while it runs.

use std::net::TcpListener;
use std::process::Stdio;

use anteroom_testkit::eventually;
use anteroom_testkit::redis_server::{Reply, ask};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::at;
use crate::clock::now;
use crate::stepped::{Shim, SteppedClock};

/// How exactly a step must be seen: far less than any step, far more than an answer takes.
const SEEN_WITHIN_MS: u64 = 500;

/// A server with a clock of its own; ends when dropped.
#[derive(Debug)]
pub struct ClockedServer {
    port: u16,
    clock: SteppedClock,
    _process: Child,
    _folder: TempDir,
}

impl ClockedServer {
    pub(super) async fn start(shim: &Shim) -> Self {
        let folder = tempfile::tempdir().expect("a folder for a redis-server");
        // The port is free until somebody else takes it within the next moments; then the server
        // does not answer, and the run says so.
        let port = TcpListener::bind(at(0)).and_then(|listener| listener.local_addr());
        let port = port.expect("this machine has a free port").port();
        let clock = shim.clock(&format!("server-{port}"), 0);
        let process = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(folder.path())
            .envs(clock.environment())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("redis-server is installed");
        let server = Self {
            port,
            clock,
            _process: process,
            _folder: folder,
        };
        eventually(
            "a redis-server with a clock of its own answers",
            async || server.ahead_ms().await.is_some(),
        )
        .await;
        server
    }

    /// Its port, at 127.0.0.1.
    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    /// Steps its clock to so many milliseconds ahead of the machine's; returns when the server sees
    /// it.
    ///
    /// # Panics
    ///
    /// If the server does not see it.
    pub async fn step_to(&self, offset_ms: i64) {
        self.clock.step_to(offset_ms);
        eventually(
            &format!("the store's clock is at {offset_ms} ms"),
            async || {
                let ahead = self.ahead_ms().await;
                ahead.is_some_and(|ahead| ahead.abs_diff(offset_ms) < SEEN_WITHIN_MS)
            },
        )
        .await;
    }

    /// How far its clock is ahead of the machine's; `None` if it does not answer.
    async fn ahead_ms(&self) -> Option<i64> {
        let Ok(Reply::Array(time)) = ask(self.port, &[&["TIME"]]).await else {
            return None;
        };
        let part = |index: usize| time.get(index)?.text().parse::<i64>().ok();
        let shown = part(0)? * 1_000 + part(1)? / 1_000;
        Some(shown - i64::try_from(now().0).ok()?)
    }
}
