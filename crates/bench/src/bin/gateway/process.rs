//! A process on a processor of its own, what it has used, and its end.

use std::collections::BTreeMap;
use std::fs;
use std::io::Error as IoError;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

/// Nothing that is measured here takes longer to start.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The processor of proxies, and the one of everything else, if there are two.
pub(crate) const OF_PROXIES: &str = "0";
pub(crate) const OF_OTHERS: &str = "1";

/// A process that ends with its owner.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
}

impl Process {
    /// Starts a program on one processor. What it says goes into a file.
    pub(crate) fn start(
        processor: &str,
        program: &Path,
        arguments: &[&str],
        log: &Path,
    ) -> anyhow::Result<Self> {
        let out = fs::File::create(log).with_context(|| format!("creating {}", log.display()))?;
        let mut command = match std::thread::available_parallelism() {
            Ok(count) if count.get() > 1 => {
                let mut command = Command::new("taskset");
                command.args(["-c", processor]).arg(program);
                command
            }
            _ => Command::new(program),
        };
        let child = command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        Ok(Self { child })
    }

    /// Waits until somebody answers at an address.
    pub(crate) async fn until_listening(
        &mut self,
        address: SocketAddr,
        log: &Path,
    ) -> anyhow::Result<()> {
        let began = Instant::now();
        while TcpStream::connect(address).await.is_err() {
            let ended = self.child.try_wait()?;
            ensure!(
                ended.is_none() && began.elapsed() < PATIENCE,
                "it does not listen on {address}:\n{}",
                fs::read_to_string(log).unwrap_or_default()
            );
            sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// What this process and its children have used, in seconds of a processor.
    pub(crate) fn cpu_s(&self) -> anyhow::Result<f64> {
        let processes = processes()?;
        let mut ticks = 0;
        let mut family = vec![self.child.id()];
        while let Some(id) = family.pop() {
            ticks += processes.get(&id).map_or(0, |stat| stat.ticks);
            let children = processes.iter().filter(|(_, stat)| stat.parent == id);
            family.extend(children.map(|(child, _)| *child));
        }
        Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
    }

    /// Bytes of memory that are its own, in use now.
    pub(crate) fn resident_bytes(&self) -> anyhow::Result<u64> {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
        Ok(1_024 * kib.with_context(|| format!("{path} does not say VmRSS"))?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Gently first: a master ends its workers.
        if let Some(id) = i32::try_from(self.child.id())
            .ok()
            .and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
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
        // It may have ended meanwhile.
        let stat = fs::read_to_string(format!("/proc/{id}/stat"));
        if let Some(stat) = stat.ok().and_then(|text| Stat::parse(&text)) {
            processes.insert(id, stat);
        }
    }
    Ok(processes)
}

impl Stat {
    /// Fields after the name, which may hold anything: see proc(5).
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

/// Where a program is; also where only root looks for it.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin")])
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// A port that nobody uses now.
pub(crate) fn free_port() -> Result<u16, IoError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernel_is_read_whatever_a_process_is_called() {
        let stat =
            Stat::parse("7 (a) b (c) S 3 7 7 0 -1 4194304 1 0 0 0 250 50 9 9 20 0 1 0").unwrap();
        assert_eq!((stat.parent, stat.ticks), (3, 300));
        assert!(Stat::parse("7 (a").is_none());
    }
}
