//! Real memcached servers for tests, each at a free port of this machine; one ends when it is
//! dropped.

use std::io;
use std::net::Ipv4Addr;
use std::process::Command;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{interval, timeout};

use crate::process::{Process, TRIES, free_port};
use crate::waiting::{LOOK_EVERY, PATIENCE};

/// What a server says to a command that asks for nothing: so it is known that nothing more comes.
const END: &[u8] = b"MN\r\n";
/// How it refuses a list while it makes another.
const BUSY: &str = "BUSY";

/// A memcached of this test.
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

    /// Sends a command and returns what is answered.
    ///
    /// # Panics
    ///
    /// If the server does not answer.
    pub async fn ask(&self, command: &str) -> String {
        let asked = ask(self.port, command).await;
        asked.unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    /// A number that the server says of itself.
    ///
    /// # Panics
    ///
    /// If it does not say it.
    pub async fn stat(&self, name: &str) -> u64 {
        let stats = self.ask("stats").await;
        let prefix = format!("STAT {name} ");
        let line = stats.lines().find_map(|line| line.strip_prefix(&prefix));
        let number = line.and_then(|number| number.parse().ok());
        number.unwrap_or_else(|| panic!("no {name} in {stats}"))
    }

    /// The names of all values, and when each is forgotten: seconds since the Unix epoch.
    ///
    /// # Panics
    ///
    /// If the server does not say it.
    pub async fn values(&self) -> Vec<(String, u64)> {
        let listed = timeout(PATIENCE, self.listed()).await;
        let listed = listed.expect("it has time for a list within a minute");
        let lines = listed.lines().filter_map(|line| line.strip_prefix("key="));
        let value = |line: &str| {
            let (key, rest) = line.split_once(" exp=")?;
            let exp = rest.split(' ').next()?.parse().ok()?;
            Some((key.replace("%3A", ":"), exp))
        };
        let values = lines.map(|line| value(line).unwrap_or_else(|| panic!("no value: {line}")));
        values.collect()
    }

    /// The server goes through its values for one list at a time, and now and then for itself.
    async fn listed(&self) -> String {
        let mut looks = interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            let listed = self.ask("lru_crawler metadump hash").await;
            if !listed.starts_with(BUSY) {
                return listed;
            }
        }
    }

    /// Ends the server as a crash does.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Ends the server as a crash does and starts it again, at the same port, with nothing in it.
    ///
    /// # Panics
    ///
    /// If it does not start again.
    pub async fn restart(&mut self) {
        self.kill();
        assert!(self.run().await, "memcached does not start again");
    }

    /// Stops the process where it is; it keeps its connections and says nothing.
    ///
    /// # Panics
    ///
    /// If the server has ended.
    pub fn pause(&self) {
        self.running().pause();
    }

    /// Lets a paused process go on.
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

    /// Whether the server has started; it has not if its port was taken meanwhile.
    async fn run(&mut self) -> bool {
        let mut command = Command::new("memcached");
        // Root must say so; for everybody else the name means nothing.
        command.args(["-u", "root", "-l", "127.0.0.1", "-U", "0"]);
        command
            .args(["-p", &self.port.to_string()])
            .args(&self.arguments);
        let port = self.port;
        let answers = async || ask(port, "version").await.is_ok();
        self.process = Process::start(&mut command, answers).await;
        self.process.is_some()
    }
}

/// Sends a command over a connection of its own, and returns what comes before the answer to one
/// that asks for nothing.
async fn ask(port: u16, command: &str) -> io::Result<String> {
    let asking = async {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        stream
            .write_all(format!("{command}\r\n").as_bytes())
            .await?;
        // What lists much answers from another thread, and only to a client that says nothing
        // meanwhile.
        let is_list = command.starts_with("lru_crawler");
        let end = if is_list { b"END\r\n".as_slice() } else { END };
        if !is_list {
            stream.write_all(b"mn\r\n").await?;
        }
        let mut heard = Vec::new();
        let is_refused =
            |heard: &[u8]| is_list && heard.starts_with(BUSY.as_bytes()) && heard.ends_with(b"\n");
        while !heard.ends_with(end) && !is_refused(&heard) {
            if stream.read_buf(&mut heard).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let answer = heard.strip_suffix(end).unwrap_or(&heard);
        Ok(String::from_utf8_lossy(answer).into_owned())
    };
    timeout(PATIENCE, asking).await?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_keeps_what_it_is_told_until_it_crashes() {
        let mut server = MemcachedServer::start().await;
        assert_eq!(server.ask("ms a:b 5 T60\r\nvalue").await, "HD\r\n");
        assert_eq!(server.ask("mg a:b v").await, "VA 5\r\nvalue\r\n");
        let values = server.values().await;
        let now = server.stat("time").await;
        assert_eq!(values.len(), 1);
        let (key, exp) = &values[0];
        assert_eq!(key, "a:b");
        assert!((now + 50..=now + 61).contains(exp), "{now} {exp}");
        server.restart().await;
        assert_eq!(server.ask("mg a:b v").await, "EN\r\n");
        assert_eq!(server.values().await, []);
    }
}
