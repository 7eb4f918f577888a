//! How is a node run? As a process of the real program, with a config file, a data folder and a
//! log.
//!
//! What the node does in there is not looked at, except for the line that says where it serves.

use std::ffi::OsString;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anteroom_testkit::eventually;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::stepped::SteppedClock;

/// How long a node may take to end by itself. Its drain time is shorter.
const ENDS_WITHIN: Duration = Duration::from_secs(20);

/// Where a node serves at present, if it does. Nodes that are started again are elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Door(Arc<Mutex<Option<SocketAddr>>>);

impl Door {
    /// The address, while the node serves.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        *self.0.lock()
    }

    /// Sends visitors elsewhere: there is nobody, or somebody new.
    pub(crate) fn is_at(&self, address: Option<SocketAddr>) {
        *self.0.lock() = address;
    }
}

/// A node; killed when dropped.
#[derive(Debug)]
pub struct Node {
    name: String,
    binary: PathBuf,
    folder: PathBuf,
    door: Door,
    admin: Door,
    /// What it is started with beside its own environment.
    environment: Vec<(&'static str, OsString)>,
    child: Option<Child>,
    /// How often it was started; each start has a log of its own.
    starts: u32,
}

impl Node {
    /// A node that does not run yet, with everything it writes in `folder`.
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
            door: Door::default(),
            admin: Door::default(),
            environment: Vec::new(),
            child: None,
            starts: 0,
        }
    }

    /// The same node with a wall clock of its own.
    #[must_use]
    pub(crate) fn with_clock(mut self, clock: &SteppedClock) -> Self {
        self.environment.extend(clock.environment());
        self
    }

    /// The same node with one more variable in its environment.
    #[must_use]
    pub(crate) fn with_variable(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    /// Its name, as in logs.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it serves.
    #[must_use]
    pub const fn door(&self) -> &Door {
        &self.door
    }

    /// Where operators ask.
    #[must_use]
    pub const fn admin(&self) -> &Door {
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

    /// Waits until the node serves, and opens its door.
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
            .is_at(addresses.map(|addresses| addresses.operators));
        self.door
            .is_at(addresses.map(|addresses| addresses.visitors));
    }

    /// `kill -9`, and waits until it is gone.
    ///
    /// # Panics
    ///
    /// If it does not run.
    pub async fn kill(&mut self) {
        self.leaves();
        let mut child = self.child.take().expect("the node runs");
        child.kill().await.expect("it is a child of this process");
    }

    /// SIGTERM, and waits for the end. Visitors are sent elsewhere at once, as by a load balancer
    /// that was told first.
    ///
    /// # Panics
    ///
    /// If it does not run, or does not end well.
    pub async fn terminate(&mut self) {
        self.leaves();
        self.signal(Signal::TERM);
        let mut child = self.child.take().expect("the node runs");
        let ended = timeout(ENDS_WITHIN, child.wait()).await;
        let status = ended.expect("a node ends when it is told to");
        let status = status.expect("it is a child of this process");
        assert!(status.success(), "{} ended with {status}", self.name);
    }

    /// SIGTERM, and no more; [`Node::ends`] waits for the end.
    ///
    /// # Panics
    ///
    /// If it does not run.
    pub fn tell_to_end(&self) {
        self.signal(Signal::TERM);
    }

    /// Changes its configuration. A node reads it when it starts, or when it is told to
    /// ([`Node::reload`]).
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

    /// Changes its configuration, and tells it so (SIGHUP).
    ///
    /// # Panics
    ///
    /// If it does not run, or nothing changes.
    pub fn reload(&self, edit: impl FnOnce(&str) -> String) {
        self.edit(edit);
        self.signal(Signal::HUP);
    }

    /// SIGSTOP: it keeps its connections and says nothing. Its door stays open.
    ///
    /// # Panics
    ///
    /// If it does not run.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// SIGCONT.
    ///
    /// # Panics
    ///
    /// If it does not run.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// SIGUSR2: a successor is to take its place.
    ///
    /// # Panics
    ///
    /// If it does not run.
    pub fn replace(&self) {
        self.signal(Signal::USR2);
    }

    /// Waits until it ends by itself, and says whether it ended well. Its door stays open: somebody
    /// else may stand there.
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

    /// The log of the newest start, and of those who took its place.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file(self.starts)).unwrap_or_default()
    }

    fn leaves(&self) {
        self.door.is_at(None);
        self.admin.is_at(None);
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

    /// The last lines of its logs, of each start.
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

/// Where a node serves.
#[derive(Clone, Copy, Debug)]
struct Addresses {
    visitors: SocketAddr,
    operators: SocketAddr,
}

/// What a node says of that, once it serves.
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
