//! `anteroom serve` as a process, on ports that the system chooses.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::{TIMEOUT, eventually};

/// The binary under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_anteroom");

/// A running gateway. Killed when dropped.
pub(crate) struct Gateway {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    log: Arc<Mutex<Vec<String>>>,
}

/// Returns the flags of one room on free ports.
pub(crate) fn room_flags(origin: SocketAddr, total: u32, rate: u32, data: &str) -> Vec<String> {
    let flags = format!(
        "--listen 127.0.0.1:0 --admin 127.0.0.1:0 --origin http://{origin} \
         --total-active-users {total} --new-users-per-minute {rate} --data {data}"
    );
    flags.split_whitespace().map(str::to_owned).collect()
}

impl Gateway {
    /// Starts `anteroom serve` with these flags and waits until it serves.
    pub(crate) async fn start(flags: &[String]) -> Self {
        let mut command = Command::new(BINARY);
        command.arg("serve").args(flags);
        Self::spawn(command).await
    }

    /// Starts any command that runs `anteroom serve` in the end.
    pub(crate) async fn spawn(mut command: Command) -> Self {
        let mut child = command
            .arg("--log-format")
            .arg("json")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let kept = Arc::clone(&log);
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                kept.lock().push(line);
            }
        });
        let serving = || async { line_with(&log, "serving").is_some() };
        eventually("the gateway serves", serving).await;
        let line: Value = serde_json::from_str(&line_with(&log, "serving").unwrap()).unwrap();
        Self {
            address: address(&line["visitors"]),
            admin: address(&line["operators"]),
            child,
            log,
        }
    }

    /// Returns all log lines so far.
    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lock().clone()
    }

    /// Waits until a line of the log has these words, and returns the log. Lines are written a
    /// moment after what they report.
    pub(crate) async fn log_with(&self, words: &str) -> Vec<String> {
        let has_words = |line: &String| line.contains(words);
        let what = format!("a line of the log has {words:?}");
        eventually(&what, async || self.log().iter().any(has_words)).await;
        self.log()
    }

    /// Sends a signal, such as `HUP`, `TERM`, `STOP`, `CONT`.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.id().to_string();
        let status = std::process::Command::new("kill")
            .args([&format!("-{name}"), &id])
            .status();
        assert!(status.unwrap().success());
    }

    /// Returns the process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id().expect("it has not ended")
    }

    /// Kills the process (`kill -9`), and waits for its end.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Waits for the end of the process, and returns its exit code.
    pub(crate) async fn ended(&mut self) -> Option<i32> {
        let ended = tokio::time::timeout(TIMEOUT, self.child.wait()).await;
        ended.unwrap().unwrap().code()
    }
}

fn line_with(log: &Mutex<Vec<String>>, message: &str) -> Option<String> {
    let wanted = format!("\"message\":\"{message}\"");
    let log = log.lock();
    log.iter().find(|line| line.contains(&wanted)).cloned()
}

fn address(url: &Value) -> SocketAddr {
    let url = url.as_str().unwrap();
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    address.parse().unwrap()
}
