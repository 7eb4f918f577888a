//! Real redis-servers for tests: alone, with replicas and sentinels, as a cluster.
//!
//! Each has its own folder and a free port of this machine, and ends when it is dropped.

mod cluster;
mod impostor;
mod resp;
mod sentinel;

use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use tokio::net::TcpSocket;

pub use self::cluster::RedisCluster;
pub use self::impostor::{Behaviour, Impostor};
pub use self::resp::{Reply, send_command};
pub use self::sentinel::RedisSentinel;
use crate::process::{self, Process, TRIES};
use crate::waiting::eventually;

/// Offset of the second port of a cluster's server.
const CLUSTER_PORT_OFFSET: u16 = 10_000;

/// Redis server of this test.
#[derive(Debug)]
pub struct RedisServer {
    folder: TempDir,
    port: u16,
    arguments: Vec<String>,
    process: Option<Process>,
    /// Keeps the port while the server is down. Otherwise the server of another test could take it,
    /// and get the requests of this one.
    reserved: Option<TcpSocket>,
}

impl RedisServer {
    /// Starts a server.
    ///
    /// # Panics
    ///
    /// If redis-server is not installed or does not start.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts a server with further arguments, as `["--requirepass", "secret"]`. `{folder}` in an
    /// argument becomes the folder of this server, `{second_port}` another free port.
    ///
    /// # Panics
    ///
    /// If redis-server is not installed or does not start.
    pub async fn start_with(arguments: &[&str]) -> Self {
        let mut last_log = String::new();
        for _ in 0..TRIES {
            let mut server = Self {
                folder: tempfile::tempdir().expect("a folder for a redis-server"),
                port: free_port(),
                arguments: arguments.iter().map(|&text| text.to_owned()).collect(),
                process: None,
                reserved: None,
            };
            if server.run().await {
                return server;
            }
            last_log = server.log();
        }
        panic!("redis-server {arguments:?} does not start:\n{last_log}");
    }

    /// Starts a replica of another server, and waits until it has all its data.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub async fn start_replica_of(master: &Self) -> Self {
        let port = master.port.to_string();
        let replica = Self::start_with(&["--replicaof", "127.0.0.1", &port]).await;
        eventually("the replica is in step with its master", async || {
            replica
                .info("replication")
                .await
                .contains("master_link_status:up")
        })
        .await;
        replica
    }

    /// Port of this server, at 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns another free port of this server, as for TLS.
    #[must_use]
    pub fn second_port(&self) -> u16 {
        self.port.saturating_add(CLUSTER_PORT_OFFSET)
    }

    /// Returns the folder of this server.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the log of the server.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Sends a command and returns its reply.
    ///
    /// # Panics
    ///
    /// If the server does not reply.
    pub async fn send(&self, command: &[&str]) -> Reply {
        let reply = send_command(self.port, &[command]).await;
        reply.unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }

    /// Sends a command that must succeed.
    ///
    /// # Panics
    ///
    /// If the server sends no reply, or an error.
    pub async fn send_ok(&self, command: &[&str]) -> Reply {
        let reply = self.send(command).await;
        assert!(!matches!(reply, Reply::Error(_)), "{command:?}: {reply:?}");
        reply
    }

    /// Returns a section of the server's `INFO`.
    ///
    /// # Panics
    ///
    /// If the server does not reply.
    pub async fn info(&self, section: &str) -> String {
        self.send_ok(&["INFO", section]).await.text()
    }

    /// Ends the server like a crash.
    pub fn kill(&mut self) {
        self.process = None;
        self.reserved = reserve(self.port);
    }

    /// Ends the server like a crash and starts it again at the same port, with the data that it had
    /// saved: none by default.
    ///
    /// # Panics
    ///
    /// If it does not start again.
    pub async fn restart(&mut self) {
        self.kill();
        let has_started = self.run().await;
        assert!(
            has_started,
            "redis-server does not start again:\n{}",
            self.log()
        );
    }

    /// Pauses the process; it keeps its connections and sends nothing.
    ///
    /// # Panics
    ///
    /// If the server has ended.
    pub fn pause(&self) {
        self.running().pause();
    }

    /// Continues a paused process.
    ///
    /// # Panics
    ///
    /// If the server has ended.
    pub fn resume(&self) {
        self.running().resume();
    }

    fn running(&self) -> &Process {
        self.process.as_ref().expect("the server runs")
    }

    /// Starts the server; returns whether it runs. It does not if its port was taken meanwhile.
    async fn run(&mut self) -> bool {
        let folder = self.folder.path().display().to_string();
        let port = self.port.to_string();
        let second_port = self.second_port().to_string();
        let mut command = Command::new("redis-server");
        command
            .args(["--port", &port, "--bind", "127.0.0.1", "--dir", &folder])
            .args(["--save", "", "--appendonly", "no", "--logfile", "log"]);
        for argument in &self.arguments {
            let argument = argument.replace("{folder}", &folder);
            command.arg(argument.replace("{second_port}", &second_port));
        }
        self.reserved = None;
        self.process = start(&mut command, self.port).await;
        self.process.is_some()
    }
}

/// Starts a redis-server. Returns `None` if its port was taken meanwhile.
async fn start(command: &mut Command, port: u16) -> Option<Process> {
    // A server that wants a password or loads its data also replies.
    let is_up = async || send_command(port, &[&["PING"]]).await.is_ok();
    Process::start(command, is_up).await
}

/// Returns a port that was free a moment ago, low enough for the second port of a cluster.
fn free_port() -> u16 {
    let free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    for _ in 0..10_000 {
        let port = process::free_port();
        let second = port.checked_add(CLUSTER_PORT_OFFSET);
        if second.is_some_and(|second| free(second).is_ok()) {
            return port;
        }
    }
    panic!("no two free ports, {CLUSTER_PORT_OFFSET} apart");
}

/// Keeps a port, and refuses connections to it. Connections of the killed server may still be in
/// their last state, so the port is shared with those.
fn reserve(port: u16) -> Option<TcpSocket> {
    let socket = TcpSocket::new_v4().ok()?;
    socket.set_reuseaddr(true).ok()?;
    socket.bind((Ipv4Addr::LOCALHOST, port).into()).ok()?;
    Some(socket)
}

/// Formats arguments as lines of a configuration file.
fn as_config(lines: &[&str]) -> String {
    lines.iter().fold(String::new(), |mut text, line| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{line}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_keeps_values_until_it_crashes() {
        let mut server = RedisServer::start().await;
        server.send_ok(&["SET", "key", "value"]).await;
        assert_eq!(server.send(&["GET", "key"]).await.text(), "value");
        server.restart().await;
        assert_eq!(server.send(&["GET", "key"]).await, Reply::Bulk(None));
    }

    #[tokio::test]
    async fn a_replica_has_what_its_master_has() {
        let master = RedisServer::start().await;
        master.send_ok(&["SET", "key", "value"]).await;
        let replica = RedisServer::start_replica_of(&master).await;
        assert_eq!(replica.send(&["GET", "key"]).await.text(), "value");
    }

    #[tokio::test]
    async fn servers_of_a_cluster_know_each_other() {
        let cluster = RedisCluster::start().await;
        let info = cluster.servers()[2]
            .send_ok(&["CLUSTER", "INFO"])
            .await
            .text();
        assert!(info.contains("cluster_known_nodes:3"), "{info}");
    }

    #[tokio::test]
    async fn a_sentinel_names_the_master() {
        let master = RedisServer::start().await;
        let sentinel = RedisSentinel::start("world", &master).await;
        assert_eq!(sentinel.master().await, Some(master.port()));
    }
}
