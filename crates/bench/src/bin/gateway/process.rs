//! Process on its own processor, and its resource usage.

use std::collections::BTreeMap;
use std::fs;
use std::io::Error as IoError;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

/// Timeout of the start of a process, which valgrind may slow down.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of the end of a process, and the time after which it gets another signal.
const END_TIMEOUT: Duration = Duration::from_secs(60);
const SIGNAL_PERIOD: Duration = Duration::from_secs(5);
const PROBE_PERIOD: Duration = Duration::from_millis(10);

/// Processor of the proxies; [`OF_OTHERS`] is that of everything else, if there are two.
pub(crate) const OF_PROXIES: &str = "0";
pub(crate) const OF_OTHERS: &str = "1";

/// Files that this process and those it starts may open, if the system allows: ten thousand
/// connections and as many towards the origin, with a reserve that keeps the gateway's table of
/// connections far from full.
const OPEN_FILES: u64 = 100_000;

/// Raises the limit on open files as far as the system allows, for all processes to come. Returns
/// the limit.
pub(crate) fn raise_file_limit() -> u64 {
    let before = getrlimit(Resource::Nofile);
    let limit = |both| Rlimit {
        current: Some(both),
        maximum: Some(both),
    };
    let maximum = before.maximum.unwrap_or(OPEN_FILES);
    let _ = setrlimit(Resource::Nofile, limit(maximum));
    if maximum < OPEN_FILES {
        // Only root may do this.
        let _ = setrlimit(Resource::Nofile, limit(OPEN_FILES));
    }
    getrlimit(Resource::Nofile).current.unwrap_or(OPEN_FILES)
}

/// Returns a command for a program on one processor, if there are two.
pub(crate) fn pinned(processor: &str, program: &Path) -> Command {
    match std::thread::available_parallelism() {
        Ok(count) if count.get() > 1 => {
            let mut command = Command::new("taskset");
            command.args(["-c", processor]).arg(program);
            command
        }
        _ => Command::new(program),
    }
}

/// Process that ends with its owner.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
}

impl Process {
    /// Starts a program on one processor. Its output goes to a file.
    pub(crate) fn start(
        processor: &str,
        program: &Path,
        arguments: &[&str],
        log: &Path,
    ) -> anyhow::Result<Self> {
        let out = fs::File::create(log).with_context(|| format!("creating {}", log.display()))?;
        let child = pinned(processor, program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        Ok(Self { child })
    }

    /// Waits until an address accepts connections.
    pub(crate) async fn until_listening(
        &mut self,
        address: SocketAddr,
        log: &Path,
    ) -> anyhow::Result<()> {
        let began = Instant::now();
        while TcpStream::connect(address).await.is_err() {
            let ended = self.child.try_wait()?;
            ensure!(
                ended.is_none() && began.elapsed() < START_TIMEOUT,
                "the process does not listen on {address}:\n{}",
                fs::read_to_string(log).unwrap_or_default()
            );
            sleep(PROBE_PERIOD).await;
        }
        Ok(())
    }

    /// Returns the processor time of this process and its children, in seconds.
    pub(crate) fn cpu_s(&self) -> anyhow::Result<f64> {
        let ticks: u64 = self.family()?.iter().map(|(_, stat)| stat.ticks).sum();
        Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
    }

    /// Returns the resident memory of this process and its children.
    pub(crate) fn resident_bytes(&self) -> anyhow::Result<u64> {
        let mut sum = 0;
        for (id, _) in self.family()? {
            let path = format!("/proc/{id}/status");
            let status = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            let kib = line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok());
            let kib: u64 = kib.with_context(|| format!("{path} has no VmRSS"))?;
            sum += 1_024 * kib;
        }
        Ok(sum)
    }

    /// Returns this process and its children.
    fn family(&self) -> anyhow::Result<Vec<(u32, Stat)>> {
        let mut processes = processes()?;
        let mut family = Vec::new();
        let mut pending = vec![self.child.id()];
        while let Some(id) = pending.pop() {
            family.extend(processes.remove(&id).map(|stat| (id, stat)));
            let children = processes.iter().filter(|(_, stat)| stat.parent == id);
            pending.extend(children.map(|(child, _)| *child));
        }
        Ok(family)
    }

    /// Ends the process and waits until it has written its output.
    ///
    /// Without a master process, nginx overlooks a signal that arrives just before it waits for
    /// sockets. So the signal is repeated.
    pub(crate) async fn end(&mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        let mut sent = 0;
        while self.child.try_wait()?.is_none() {
            let elapsed = began.elapsed();
            ensure!(elapsed < END_TIMEOUT, "a process does not end");
            if elapsed >= SIGNAL_PERIOD * sent {
                self.terminate();
                sent += 1;
            }
            sleep(PROBE_PERIOD).await;
        }
        Ok(())
    }

    /// Sends SIGTERM, so that a master process ends its workers.
    fn terminate(&self) {
        let id = i32::try_from(self.child.id()).ok();
        if let Some(id) = id.and_then(Pid::from_raw) {
            let _ = kill_process(id, Signal::TERM);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // After `end` there is nothing to end: the number may belong to another process.
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.terminate();
            let _ = self.child.wait();
        }
    }
}

struct Stat {
    parent: u32,
    ticks: u64,
}

fn processes() -> anyhow::Result<BTreeMap<u32, Stat>> {
    let mut processes = BTreeMap::new();
    for entry in fs::read_dir("/proc").context("reading /proc")? {
        let Some(id) = entry
            .ok()
            .and_then(|entry| entry.file_name().to_str()?.parse().ok())
        else {
            continue;
        };
        // The process may have ended meanwhile.
        let stat = fs::read_to_string(format!("/proc/{id}/stat"));
        if let Some(stat) = stat.ok().and_then(|text| Stat::parse(&text)) {
            processes.insert(id, stat);
        }
    }
    Ok(processes)
}

impl Stat {
    /// Parses the fields after the name, which may contain any character: see proc(5).
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            ticks: number(11)? + number(12)?,
        })
    }
}

/// Returns the path of a program, searching `/usr/sbin`, too.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin")])
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Returns a port that is free now.
pub(crate) fn free_port() -> Result<u16, IoError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_times_are_parsed_after_a_name_with_parentheses() {
        let stat =
            Stat::parse("7 (a) b (c) S 3 7 7 0 -1 4194304 1 0 0 0 250 50 9 9 20 0 1 0").unwrap();
        assert_eq!((stat.parent, stat.ticks), (3, 300));
        assert!(Stat::parse("7 (a").is_none());
    }
}
