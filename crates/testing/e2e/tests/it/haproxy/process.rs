//! HAProxy process of a test: started, queried, killed.

use std::fs::{self, File};
use std::io::Error as IoError;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::{Instant, interval};

use crate::haproxy::recipe::Recipe;

/// Longest time until one starts. Generous, because a slow test should not fail.
const START_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Most ports that are tried when another process took one first.
pub(crate) const TRIES: usize = 10;

/// HAProxy that ends with the test.
#[derive(Debug)]
pub(crate) struct Haproxy {
    /// Name among its peers.
    name: &'static str,
    address: SocketAddr,
    folder: TempDir,
    process: Option<Child>,
}

impl Haproxy {
    /// Starts one with this file before this origin.
    pub(crate) async fn start(recipe: &Recipe, origin: SocketAddr) -> Self {
        let mut output = String::new();
        for _ in 0..TRIES {
            let [address] = free_addresses();
            match Self::try_start("a", address, recipe, origin).await {
                Ok(haproxy) => return haproxy,
                Err(log) => output = log,
            }
        }
        panic!("HAProxy does not start:\n{output}");
    }

    /// Starts one with this name at this address; an error is its output, because a port may have
    /// been taken.
    pub(crate) async fn try_start(
        name: &'static str,
        address: SocketAddr,
        recipe: &Recipe,
        origin: SocketAddr,
    ) -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let text = recipe.clone().text(address, origin, folder.path());
        fs::write(folder.path().join("haproxy.cfg"), text).unwrap();
        let mut haproxy = Self {
            name,
            address,
            folder,
            process: None,
        };
        haproxy.run().await.map(|()| haproxy)
    }

    /// Kills it like a crash.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            // It may have ended already.
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Starts it again, with the same file and at the same port.
    pub(crate) async fn start_again(&mut self) {
        let started = self.run().await;
        started.unwrap_or_else(|log| panic!("it does not start again:\n{log}"));
    }

    /// Returns the address for clients.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends an operator's command and returns the reply.
    pub(crate) async fn ask(&self, command: &str) -> String {
        let reply = ask(&self.socket(), command).await;
        reply.unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    /// Returns the clients of a table with their counts.
    pub(crate) async fn counts(&self, table: &str) -> Vec<(String, usize)> {
        let shown = self.ask(&format!("show table {table}")).await;
        assert!(shown.contains(&format!("# table: {table},")), "{shown}");
        let entries = shown.lines().filter(|line| line.contains(" key="));
        entries.map(|line| entry(line).unwrap()).collect()
    }

    /// Returns a table's count for the client of these tests; 0 if it is not there.
    pub(crate) async fn count(&self, table: &str) -> usize {
        let counts = self.counts(table).await;
        let of_client = counts.iter().find(|(key, _)| key == "::ffff:127.0.0.1");
        of_client.map_or(0, |(_, count)| *count)
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("admin.sock")
    }

    async fn run(&mut self) -> Result<(), String> {
        // A killed one leaves its socket behind, which must not be used.
        let _ = fs::remove_file(self.socket());
        let log_file = self.folder.path().join("log");
        let log = File::create(&log_file).unwrap();
        let mut process = spawn(
            Command::new(program())
                // In the foreground, and only one process.
                .args(["-db", "-L", self.name, "-f"])
                .arg(self.folder.path().join("haproxy.cfg"))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(log),
        );
        let deadline = Instant::now() + START_WITHIN;
        let mut looks = interval(LOOK_EVERY);
        let mut has_ended = false;
        while !has_ended && Instant::now() < deadline {
            looks.tick().await;
            if ask(&self.socket(), "show info").await.is_ok() {
                self.process = Some(process);
                return Ok(());
            }
            has_ended = process.try_wait().unwrap().is_some();
        }
        let _ = process.kill();
        let _ = process.wait();
        Err(fs::read_to_string(&log_file).unwrap_or_default())
    }
}

impl Drop for Haproxy {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(command: &mut Command) -> Child {
    command.spawn().unwrap_or_else(|error| {
        panic!(
            "this test needs haproxy ({error}). `cargo xtask test` installs it. By hand: `apt-get \
             install haproxy` in \
             Debian and Ubuntu; the service that this starts is not needed: `systemctl disable \
             --now haproxy`"
        )
    })
}

/// Debian installs it where only root looks.
pub(crate) fn program() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let mut programs = folders.map(|folder| folder.join("haproxy"));
    let found = programs.find(|program| program.is_file());
    found.unwrap_or_else(|| PathBuf::from("haproxy"))
}

/// Returns addresses that were free a moment ago.
pub(crate) fn free_addresses<const COUNT: usize>() -> [SocketAddr; COUNT] {
    // All at once, because otherwise one might come twice.
    let listeners = [(); COUNT].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    listeners.map(|listener| listener.local_addr().unwrap())
}

async fn ask(socket: &Path, command: &str) -> Result<String, IoError> {
    let mut stream = UnixStream::connect(socket).await?;
    stream.write_all(format!("{command}\n").as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    Ok(response)
}

/// Parses `192.0.2.1` and 7 from `0x55: key=192.0.2.1 use=0 exp=119719 http_req_rate(60000)=7`.
fn entry(line: &str) -> Option<(String, usize)> {
    let (_, rest) = line.split_once(" key=")?;
    let (key, rest) = rest.split_once(' ')?;
    let (_, count) = rest.rsplit_once('=')?;
    Some((key.to_owned(), count.trim().parse().ok()?))
}
