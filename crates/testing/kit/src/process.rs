//! Server process of a test: started at a port, paused, and ended with its owner.
//!
//! No fixed waits: a server counts as started once it responds.

use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tokio::time::{Instant, interval};

use crate::waiting::{POLL_INTERVAL, TIMEOUT};

/// Most ports that are tried when another process took one first.
pub(crate) const TRIES: u32 = 10;

/// Process that ends with its owner.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    /// Starts a server and waits until it responds. Returns `None` if its process ends before,
    /// because its port was taken.
    ///
    /// # Panics
    ///
    /// If the program is not installed.
    pub(crate) async fn start<F>(
        command: &mut Command,
        mut answers: impl FnMut() -> F,
    ) -> Option<Self>
    where
        F: Future<Output = bool>,
    {
        let mut process = Self::spawn(command);
        let deadline = Instant::now() + TIMEOUT;
        let mut looks = interval(POLL_INTERVAL);
        while Instant::now() < deadline {
            looks.tick().await;
            if !matches!(process.0.try_wait(), Ok(None)) {
                return None;
            }
            if answers().await {
                return Some(process);
            }
        }
        None
    }

    fn spawn(command: &mut Command) -> Self {
        let spawned = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match spawned {
            Ok(child) => Self(child),
            Err(error) => {
                let program = command.get_program().display();
                panic!(
                    "this test needs {program} on the path ({error}). `cargo xtask test` installs \
                     it. \
                     By hand: `apt-get install {program}` in Debian and Ubuntu; a server that this \
                     starts as a service is not needed: `systemctl disable --now {program}`"
                )
            }
        }
    }

    /// Pauses it; it keeps its connections and sends nothing.
    ///
    /// # Panics
    ///
    /// If it has ended.
    pub(crate) fn pause(&self) {
        let id = self.signal(Signal::STOP);
        // On a busy machine its threads run on for a moment, and respond.
        waitpid(Some(id), WaitOptions::UNTRACED).expect("it is a child that stops");
    }

    /// Continues it after a pause.
    ///
    /// # Panics
    ///
    /// If it has ended.
    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) -> Pid {
        let id = Pid::from_child(&self.0);
        kill_process(id, signal).expect("it is a child of this process");
        id
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already. SIGKILL also ends a stopped process.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns a port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .expect("this machine has a free port")
        .port()
}
