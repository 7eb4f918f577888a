//! Real memcached servers for tests, each at a free port of this machine; one ends when it is
//! dropped.

use std::io;
use std::net::Ipv4Addr;
use std::process::Command;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{interval, timeout};

use crate::process::{Process, TRIES, free_port};
use crate::waiting::{POLL_INTERVAL, TIMEOUT};

/// Reply to a command without an effect: it shows that no more comes.
const END: &[u8] = b"MN\r\n";
/// Reply while the server makes another list.
const BUSY: &str = "BUSY";

/// Memcached server of this test.
#[derive(Debug)]
pub struct MemcachedServer {
    port: u16,
    arguments: Vec<String>,
    process: Option<Process>,
}

impl MemcachedServer {
    /// Starts a server.
    ///
    /// # Panics
    ///
    /// If memcached is not installed or does not start.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts a server with further arguments, as `["-m", "8"]`.
    ///
    /// # Panics
    ///
    /// If memcached is not installed or does not start.
    pub async fn start_with(arguments: &[&str]) -> Self {
        for _ in 0..TRIES {
            let mut server = Self {
                port: free_port(),
                arguments: arguments.iter().map(|&text| text.to_owned()).collect(),
                process: None,
            };
            if server.run().await {
                return server;
            }
        }
        panic!("memcached {arguments:?} does not start");
    }

    /// Port of this server, at 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sends a command and returns its reply.
    ///
    /// # Panics
    ///
    /// If the server does not reply.
    pub async fn send(&self, command: &str) -> String {
        let reply = send_command(self.port, command).await;
        reply.unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    /// Returns a number of the server's statistics.
    ///
    /// # Panics
    ///
    /// If it has no such number.
    pub async fn stat(&self, name: &str) -> u64 {
        let stats = self.send("stats").await;
        let prefix = format!("STAT {name} ");
        let line = stats.lines().find_map(|line| line.strip_prefix(&prefix));
        let number = line.and_then(|number| number.parse().ok());
        number.unwrap_or_else(|| panic!("no {name} in {stats}"))
    }

    /// Returns the names of all values, and the time at which each expires, in seconds since the
    /// Unix epoch.
    ///
    /// # Panics
    ///
    /// If the server does not list them.
    pub async fn values(&self) -> Vec<(String, u64)> {
        let list = timeout(TIMEOUT, self.list()).await;
        let list = list.expect("it has time for a list within a minute");
        let lines = list.lines().filter_map(|line| line.strip_prefix("key="));
        let value = |line: &str| {
            let (key, rest) = line.split_once(" exp=")?;
            let exp = rest.split(' ').next()?.parse().ok()?;
            Some((key.replace("%3A", ":"), exp))
        };
        let values = lines.map(|line| value(line).unwrap_or_else(|| panic!("no value: {line}")));
        values.collect()
    }

    /// Lists the values. The server makes one list at a time, sometimes for itself.
    async fn list(&self) -> String {
        let mut looks = interval(POLL_INTERVAL);
        loop {
            looks.tick().await;
            let list = self.send("lru_crawler metadump hash").await;
            if !list.starts_with(BUSY) {
                return list;
            }
        }
    }

    /// Ends the server like a crash.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Ends the server like a crash and starts it again, empty, at the same port.
    ///
    /// # Panics
    ///
    /// If it does not start again.
    pub async fn restart(&mut self) {
        self.kill();
        assert!(self.run().await, "memcached does not start again");
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
        let mut command = Command::new("memcached");
        // Root must set a user; others may not change it, and the flag has no effect.
        command.args(["-u", "root", "-l", "127.0.0.1", "-U", "0"]);
        command
            .args(["-p", &self.port.to_string()])
            .args(&self.arguments);
        let port = self.port;
        let is_up = async || send_command(port, "version").await.is_ok();
        self.process = Process::start(&mut command, is_up).await;
        self.process.is_some()
    }
}

/// Sends a command over its own connection, and returns all before the reply to a command without
/// an effect.
async fn send_command(port: u16, command: &str) -> io::Result<String> {
    let asking = async {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        stream
            .write_all(format!("{command}\r\n").as_bytes())
            .await?;
        // Another thread writes long lists, and only to a client that sends nothing meanwhile.
        let is_list = command.starts_with("lru_crawler");
        let end = if is_list { b"END\r\n".as_slice() } else { END };
        if !is_list {
            stream.write_all(b"mn\r\n").await?;
        }
        let mut received = Vec::new();
        let is_rejected =
            |data: &[u8]| is_list && data.starts_with(BUSY.as_bytes()) && data.ends_with(b"\n");
        while !received.ends_with(end) && !is_rejected(&received) {
            if stream.read_buf(&mut received).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let response = received.strip_suffix(end).unwrap_or(&received);
        Ok(String::from_utf8_lossy(response).into_owned())
    };
    timeout(TIMEOUT, asking).await?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_keeps_values_until_it_crashes() {
        let mut server = MemcachedServer::start().await;
        assert_eq!(server.send("ms a:b 5 T60\r\nvalue").await, "HD\r\n");
        assert_eq!(server.send("mg a:b v").await, "VA 5\r\nvalue\r\n");
        let values = server.values().await;
        let now = server.stat("time").await;
        assert_eq!(values.len(), 1);
        let (key, exp) = &values[0];
        assert_eq!(key, "a:b");
        assert!((now + 50..=now + 61).contains(exp), "{now} {exp}");
        server.restart().await;
        assert_eq!(server.send("mg a:b v").await, "EN\r\n");
        assert_eq!(server.values().await, []);
    }
}
