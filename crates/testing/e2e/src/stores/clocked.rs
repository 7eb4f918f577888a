//! redis-server whose wall clock can be stepped while it runs.

use std::net::TcpListener;
use std::process::Stdio;

use anteroom_testkit::eventually;
use anteroom_testkit::redis_server::{Reply, send_command};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::at;
use crate::stepped::{Shim, SteppedClock};
use anteroom_testkit::clock::now;

/// Largest difference at which a step counts as seen: far less than any step, far more than the
/// delay of a reply.
const SEEN_WITHIN_MS: u64 = 500;

/// Server with its own clock; ends when dropped.
#[derive(Debug)]
pub struct ClockedServer {
    port: u16,
    clock: SteppedClock,
    _process: Child,
    _folder: TempDir,
}

impl ClockedServer {
    pub(super) async fn start(shim: &Shim, ahead_ms: i64) -> Self {
        let folder = tempfile::tempdir().expect("a folder for a redis-server");
        // Another process may take the free port within the next moments. Then the server does not
        // reply, and the run fails with a message.
        let port = TcpListener::bind(at(0)).and_then(|listener| listener.local_addr());
        let port = port.expect("this machine has a free port").port();
        let clock = shim.clock(&format!("server-{port}"), ahead_ms);
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
        eventually("a redis-server with its own clock replies", async || {
            server.ahead_ms().await.is_some()
        })
        .await;
        server
    }

    /// Returns its port, at 127.0.0.1.
    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    /// Steps its clock to so many milliseconds ahead of the machine's; returns when the server uses
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

    /// Returns how far its clock is ahead of the machine's; `None` without a reply.
    async fn ahead_ms(&self) -> Option<i64> {
        let Ok(Reply::Array(time)) = send_command(self.port, &[&["TIME"]]).await else {
            return None;
        };
        let part = |index: usize| time.get(index)?.text().parse::<i64>().ok();
        let shown = part(0)? * 1_000 + part(1)? / 1_000;
        Some(shown - i64::try_from(now().0).ok()?)
    }
}
