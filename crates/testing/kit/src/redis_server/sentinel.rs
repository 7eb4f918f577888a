//! Sentinel that watches one master.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use super::{Process, RedisServer, Reply, TRIES, as_config, free_port, send_command, start};

/// Sentinel with a quorum of one, which needs half a second to notice a failure.
#[derive(Debug)]
pub struct RedisSentinel {
    service: String,
    port: u16,
    _process: Process,
    folder: TempDir,
}

impl RedisSentinel {
    /// Starts a sentinel that watches `master` as `service`.
    ///
    /// # Panics
    ///
    /// If redis-server is not installed or does not start.
    pub async fn start(service: &str, master: &RedisServer) -> Self {
        for _ in 0..TRIES {
            let folder = tempfile::tempdir().expect("a folder for a sentinel");
            let port = free_port();
            let config = folder.path().join("sentinel.conf");
            let text = as_config(&[
                &format!("port {port}"),
                "bind 127.0.0.1",
                &format!("dir {}", folder.path().display()),
                "logfile log",
                &format!("sentinel monitor {service} 127.0.0.1 {} 1", master.port()),
                &format!("sentinel down-after-milliseconds {service} 500"),
                &format!("sentinel failover-timeout {service} 5000"),
            ]);
            fs::write(&config, text).expect("the folder is ours");
            let mut command = Command::new("redis-server");
            command.arg(&config).arg("--sentinel");
            if let Some(process) = start(&mut command, port).await {
                return Self {
                    service: service.to_owned(),
                    port,
                    _process: process,
                    folder,
                };
            }
        }
        panic!("no sentinel starts");
    }

    /// Returns the port of this sentinel, at 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the log of the sentinel: why it replaced a master, or why not.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Returns the port of the master at present.
    ///
    /// # Panics
    ///
    /// If the sentinel does not reply.
    pub async fn master(&self) -> Option<u16> {
        let question = ["SENTINEL", "get-master-addr-by-name", &self.service];
        match self.send_command(&question).await {
            Reply::Array(parts) => parts.get(1)?.text().parse().ok(),
            _ => None,
        }
    }

    /// Returns the number of known replicas that could take over.
    ///
    /// # Panics
    ///
    /// If the sentinel does not reply.
    pub async fn replicas(&self) -> usize {
        match self
            .send_command(&["SENTINEL", "REPLICAS", &self.service])
            .await
        {
            Reply::Array(replicas) => replicas.len(),
            _ => 0,
        }
    }

    /// Sends a command and returns its reply.
    ///
    /// # Panics
    ///
    /// If the sentinel does not reply.
    pub async fn send_command(&self, command: &[&str]) -> Reply {
        let reply = send_command(self.port, &[command]).await;
        reply.unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }
}
