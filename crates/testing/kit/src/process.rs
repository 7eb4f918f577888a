//! A server of a test as a process: started at a port, stopped where it is, and ended with its
//! owner.
//!
//! Nothing waits for a fixed time: a server counts as started once it answers.

use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tokio::time::{Instant, interval};

use crate::waiting::{LOOK_EVERY, PATIENCE};

/// How often another port is tried when somebody else was faster.
pub(crate) const TRIES: u32 = 10;

/// A process that ends with its owner.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    /// Starts a server and waits until it answers. `None` if its process ends before: its port was
    /// taken meanwhile.
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
        let deadline = Instant::now() + PATIENCE;
        let mut looks = interval(LOOK_EVERY);
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

    /// Stops it where it is; it keeps its connections and says nothing.
    ///
    /// # Panics
    ///
    /// If it has ended.
    pub(crate) fn pause(&self) {
        let id = self.signal(Signal::STOP);
        // On a busy machine its threads go on for a moment, and answer.
        waitpid(Some(id), WaitOptions::UNTRACED).expect("it is a child that stops");
    }

    /// Lets it go on after a pause.
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
        // It may have ended by itself. SIGKILL reaches one that is stopped, too.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .expect("this machine has a free port")
        .port()
}
