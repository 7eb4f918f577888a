//! Node as a process of the real program, with a config file, a data folder and a log.
//!
//! The test does not look inside, except for the log line with its addresses.

use std::ffi::OsString;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anteroom_testkit::eventually;
use anteroom_testkit::load::NodeAddress;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::stepped::SteppedClock;

/// Longest time until a node ends after a signal. Its drain time is shorter.
const ENDS_WITHIN: Duration = Duration::from_secs(20);

/// Node; killed when dropped.
#[derive(Debug)]
pub struct Node {
    name: String,
    binary: PathBuf,
    folder: PathBuf,
    address: NodeAddress,
    admin: NodeAddress,
    /// Variables in addition to the test's environment.
    environment: Vec<(&'static str, OsString)>,
    child: Option<Child>,
    /// Number of starts; each has its own log.
    starts: u32,
}

impl Node {
    /// Creates a node that does not run yet, with all its files in `folder`.
    ///
    /// # Panics
    ///
    /// If the folder cannot be made.
    #[must_use]
    pub fn new(name: &str, binary: &Path, folder: PathBuf, config: &str) -> Self {
        fs::create_dir_all(&folder).expect("a folder for a node");
        fs::write(folder.join("anteroom.toml"), config).expect("a config file in a new folder");
        Self {
            name: name.to_owned(),
            binary: binary.to_owned(),
            folder,
            address: NodeAddress::default(),
            admin: NodeAddress::default(),
            environment: Vec::new(),
            child: None,
            starts: 0,
        }
    }

    /// Gives the node its own wall clock.
    #[must_use]
    pub(crate) fn with_clock(mut self, clock: &SteppedClock) -> Self {
        self.environment.extend(clock.environment());
        self
    }

    /// Adds a variable to its environment.
    #[must_use]
    pub(crate) fn with_variable(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    /// Returns its name, as in logs.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its address for visitors.
    #[must_use]
    pub const fn address(&self) -> &NodeAddress {
        &self.address
    }

    /// Returns its address for operators.
    #[must_use]
    pub const fn admin(&self) -> &NodeAddress {
        &self.admin
    }

    /// Starts the process; [`Node::serves`] waits until it is ready.
    ///
    /// # Panics
    ///
    /// If the program cannot be started.
    pub fn spawn(&mut self) {
        self.starts += 1;
        let log = File::create(self.log_file(self.starts)).expect("a log file in a new folder");
        let child = Command::new(&self.binary)
            .arg("serve")
            .arg("--config")
            .arg(self.folder.join("anteroom.toml"))
            .args(["--log-format", "json", "--log", "info,access=off"])
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn();
        match child {
            Ok(child) => self.child = Some(child),
            Err(error) => panic!("{} does not start: {error}", self.binary.display()),
        }
    }

    /// Waits until the node serves, and publishes its address.
    ///
    /// # Panics
    ///
    /// If it does not serve within a minute.
    pub async fn serves(&mut self) {
        let log = self.log_file(self.starts);
        eventually(&format!("{} serves", self.name), async || {
            serving_line(&log).is_some()
        })
        .await;
        let addresses = serving_line(&log);
        self.admin
            .set(addresses.map(|addresses| addresses.operators));
        self.address
            .set(addresses.map(|addresses| addresses.visitors));
    }

    /// Kills it (`kill -9`), and waits until it is gone.
    ///
    /// # Panics
    ///
    /// If it does not run.
    pub async fn kill(&mut self) {
        self.leaves();
        let mut child = self.child.take().expect("the node runs");
        child.kill().await.expect("it is a child of this process");
    }

    /// Sends SIGTERM, and waits for the end. Visitors go to other nodes at once, as behind a load
    /// balancer.
    ///
    /// # Panics
    ///
    /// If it does not run, or ends with an error.
    pub async fn terminate(&mut self) {
        self.leaves();
        self.signal(Signal::TERM);
        let mut child = self.child.take().expect("the node runs");
        let ended = timeout(ENDS_WITHIN, child.wait()).await;
        let status = ended.expect("a node ends after SIGTERM");
        let status = status.expect("it is a child of this process");
        assert!(status.success(), "{} ended with {status}", self.name);
    }

    /// Sends SIGTERM only; [`Node::ends`] waits for the end.
    ///
    /// # Panics
    ///
    /// If it does not run.
    pub fn request_end(&self) {
        self.signal(Signal::TERM);
    }

    /// Changes its configuration. A node reads it at its start, or after [`Node::reload`].
    ///
    /// # Panics
    ///
    /// If nothing changes.
    pub fn edit(&self, edit: impl FnOnce(&str) -> String) {
        let path = self.folder.join("anteroom.toml");
        let before = fs::read_to_string(&path).expect("the node has a configuration");
        let after = edit(&before);
        assert_ne!(before, after, "nothing changes in the configuration");
        fs::write(&path, after).expect("a file that was written before");
    }

    /// Changes its configuration and reloads it (SIGHUP).
    ///
    /// # Panics
    ///
    /// If it does not run, or nothing changes.
    pub fn reload(&self, edit: impl FnOnce(&str) -> String) {
        self.edit(edit);
        self.signal(Signal::HUP);
    }

    /// Pauses it (SIGSTOP): it keeps its connections and sends nothing. Its address stays open.
    ///
    /// # Panics
    ///
    /// If it does not run.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Continues it (SIGCONT).
    ///
    /// # Panics
    ///
    /// If it does not run.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Starts a successor (SIGUSR2).
    ///
    /// # Panics
    ///
    /// If it does not run.
    pub fn replace(&self) {
        self.signal(Signal::USR2);
    }

    /// Waits until it ends, and returns whether it succeeded. Its address stays open, because a
    /// successor may use it.
    ///
    /// # Panics
    ///
    /// If it does not run, or does not end.
    pub async fn ends(&mut self) -> bool {
        let mut child = self.child.take().expect("the node runs");
        let ended = timeout(ENDS_WITHIN, child.wait()).await;
        let status = ended.expect("a node that is replaced ends");
        status.expect("it is a child of this process").success()
    }

    /// Returns the log of the newest start, successors included.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file(self.starts)).unwrap_or_default()
    }

    fn leaves(&self) {
        self.address.set(None);
        self.admin.set(None);
    }

    fn signal(&self, signal: Signal) {
        let id = self.child.as_ref().and_then(Child::id);
        let pid = id
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        let pid = pid.expect("the node runs");
        kill_process(pid, signal).expect("it is a child of this process");
    }

    fn log_file(&self, start: u32) -> PathBuf {
        self.folder.join(format!("log-{start}"))
    }

    /// Returns the last lines of its logs, of each start.
    #[must_use]
    pub fn log_tail(&self, lines: usize) -> String {
        let mut text = String::new();
        for start in 1..=self.starts {
            let log = fs::read_to_string(self.log_file(start)).unwrap_or_default();
            let all: Vec<&str> = log.lines().collect();
            let tail = all.get(all.len().saturating_sub(lines)..).unwrap_or(&[]);
            text.push_str(&format!("== {}, start {start} ==\n", self.name));
            text.push_str(&tail.join("\n"));
            text.push('\n');
        }
        text
    }
}

/// Addresses of a node.
#[derive(Clone, Copy, Debug)]
struct Addresses {
    visitors: SocketAddr,
    operators: SocketAddr,
}

/// Reads the addresses from the log, once it serves.
fn serving_line(log: &Path) -> Option<Addresses> {
    let log = fs::read_to_string(log).ok()?;
    let line = log
        .lines()
        .find(|line| line.contains("\"message\":\"serving\""))?;
    let line: Value = serde_json::from_str(line).ok()?;
    let address = |key: &str| {
        let url = line.get(key)?.as_str()?;
        let (_, address) = url.trim_end_matches('/').split_once("://")?;
        address.parse().ok()
    };
    Some(Addresses {
        visitors: address("visitors")?,
        operators: address("operators")?,
    })
}
