//! Handover of listening sockets to a successor, while the predecessor serves until it is ready.
//!
//! The sockets themselves are passed, not their addresses, so connections in a socket's queue are
//! accepted by either process. A process gets them in one of two ways:
//!
//! - from a supervisor that opened them (`LISTEN_FDS`, as systemd does), named by
//!   `LISTEN_FDNAMES`;
//! - from a **predecessor**: a process that started this one, with one end of a socket pair as its
//!   standard input. The sockets arrive over it. When this process is ready it reports so over it,
//!   and the predecessor leaves. If this process ends before that, the predecessor continues as if
//!   nothing had happened.

mod descriptors;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{Error as IoError, ErrorKind};
use std::net::TcpListener as StdListener;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixStream};
use tokio::process::{Child, Command};

/// Environment variable that marks standard input as a socket to the predecessor.
const VARIABLE: &str = "ANTEROOM_PREDECESSOR";

/// Message of a successor that is ready.
const READY: u8 = b'R';

/// Longest time for the start of a successor. An unavailable store takes half of it.
const START_WAIT: Duration = Duration::from_secs(60);

/// Error of taking over sockets or of starting a successor.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandoverError {
    /// An inherited descriptor is not a listening socket.
    #[error("cannot take over the listening socket {name}")]
    Socket {
        /// Name of the socket.
        name: String,
        /// Underlying error.
        #[source]
        source: IoError,
    },
    /// Two inherited sockets have the same name, and only one would be served.
    #[error(
        "two sockets are called {name}; with [::] one serves IPv4 and IPv6, and each unit has one \
         ListenStream"
    )]
    Twice {
        /// Name of the sockets.
        name: String,
    },
    /// The socket to the predecessor does not work.
    #[error("cannot read from the predecessor")]
    Predecessor(#[source] IoError),
    /// The program of the successor could not be started.
    #[error("cannot start the successor {}", .program.display())]
    Start {
        /// Program of the successor.
        program: PathBuf,
        /// Underlying error.
        #[source]
        source: IoError,
    },
    /// The successor ended before it was ready.
    #[error("the successor ended before it was ready: {status}")]
    Ended {
        /// Exit status of the successor.
        status: String,
    },
    /// The successor was not ready in time.
    #[error("the successor was not ready after {} s", .after.as_secs())]
    TooSlow {
        /// Time that the process waited.
        after: Duration,
    },
}

/// Sockets that this process has inherited.
#[derive(Debug, Default)]
pub struct Inherited {
    sockets: BTreeMap<String, StdListener>,
    predecessor: Option<StdStream>,
}

impl Inherited {
    /// Takes the inherited sockets; usually there are none. Call it once, before anything else
    /// reads standard input.
    ///
    /// # Errors
    ///
    /// [`HandoverError`] if an inherited socket cannot be used.
    pub fn take() -> Result<Self, HandoverError> {
        if std::env::var_os(VARIABLE).is_some() {
            return Self::from_predecessor().map_err(HandoverError::Predecessor);
        }
        Self::from_supervisor()
    }

    fn from_predecessor() -> Result<Self, IoError> {
        let input = rustix::stdio::stdin().try_clone_to_owned()?;
        // No other code may use the socket by accident.
        rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
        let predecessor = StdStream::from(input);
        let mut sockets = BTreeMap::new();
        for (name, socket) in descriptors::receive(&predecessor)? {
            sockets.insert(name, StdListener::from(socket));
        }
        Ok(Self {
            sockets,
            predecessor: Some(predecessor),
        })
    }

    fn from_supervisor() -> Result<Self, HandoverError> {
        let mut fds = listenfd::ListenFd::from_env();
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let names = names_of(&names, fds.len());
        let mut sockets = BTreeMap::new();
        for (at, name) in names.into_iter().enumerate() {
            match fds.take_tcp_listener(at) {
                Ok(Some(socket)) => {
                    if sockets.insert(name.clone(), socket).is_some() {
                        return Err(HandoverError::Twice { name });
                    }
                }
                Ok(None) => {}
                Err(source) => return Err(HandoverError::Socket { name, source }),
            }
        }
        Ok(Self {
            sockets,
            predecessor: None,
        })
    }

    /// Returns the socket of this name, if there is one.
    ///
    /// # Errors
    ///
    /// [`HandoverError::Socket`] if it is not a listening socket.
    pub fn socket(&mut self, name: &str) -> Result<Option<TcpListener>, HandoverError> {
        let Some(socket) = self.sockets.remove(name) else {
            return Ok(None);
        };
        let adopted = socket.set_nonblocking(true).and_then(|()| {
            let is_listening = rustix::net::sockopt::socket_acceptconn(&socket)?;
            if !is_listening {
                return Err(ErrorKind::InvalidInput.into());
            }
            TcpListener::from_std(socket)
        });
        adopted.map(Some).map_err(|source| HandoverError::Socket {
            name: name.to_owned(),
            source,
        })
    }

    /// Returns the names of sockets that were not taken.
    pub(crate) fn unused(&self) -> impl Iterator<Item = &str> {
        self.sockets.keys().map(String::as_str)
    }

    /// Returns the process that waits for this one to be ready, if there is one.
    #[must_use]
    pub fn predecessor(&mut self) -> Option<Predecessor> {
        self.predecessor.take().map(|stream| Predecessor { stream })
    }
}

/// Assigns names to `count` sockets by position. A single socket without a known name gets the
/// first of our names.
fn names_of(names: &str, count: usize) -> Vec<String> {
    let mut names: Vec<String> = names.split(':').map(str::to_owned).collect();
    names.resize_with(count, String::new);
    if names.iter().all(String::is_empty)
        && let Some(first) = names.first_mut()
    {
        *first = VISITORS.to_owned();
    }
    for (at, name) in names.iter_mut().enumerate() {
        if name.is_empty() {
            // Two sockets without a name are not duplicates.
            *name = format!("number {}", at + 1);
        }
    }
    // systemd names sockets without a `FileDescriptorName` after their unit.
    if let [only] = &mut names[..]
        && !NAMES.contains(&only.as_str())
    {
        *only = VISITORS.to_owned();
    }
    names
}

/// Name of the socket for visitors.
pub const VISITORS: &str = "visitors";
/// Name of the socket for operators.
pub const OPERATORS: &str = "operators";
/// Name of the socket that redirects http to https.
pub(crate) const REDIRECT: &str = "redirect";

/// Name of the socket for Envoy's rate limit requests over gRPC.
pub(crate) const RATE_LIMITS_GRPC: &str = "rate_limits_grpc";
/// Name of the socket for rate limit requests in JSON.
pub(crate) const RATE_LIMITS_HTTP: &str = "rate_limits_http";

const NAMES: [&str; 5] = [
    VISITORS,
    OPERATORS,
    REDIRECT,
    RATE_LIMITS_GRPC,
    RATE_LIMITS_HTTP,
];

/// Process that serves until this one is ready.
#[derive(Debug)]
pub struct Predecessor {
    stream: StdStream,
}

impl Predecessor {
    /// Notifies the predecessor that this process is ready.
    ///
    /// # Errors
    ///
    /// [`HandoverError::Predecessor`] if the predecessor has ended.
    pub async fn notify_ready(self) -> Result<(), HandoverError> {
        let report = async {
            self.stream.set_nonblocking(true)?;
            let mut stream = UnixStream::from_std(self.stream)?;
            stream.write_all(&[READY]).await
        };
        report.await.map_err(HandoverError::Predecessor)
    }
}

/// Sockets of this process, for a successor.
#[derive(Debug, Default)]
pub struct SocketHandover {
    sockets: Vec<(&'static str, OwnedFd)>,
}

impl SocketHandover {
    /// Adds a socket.
    ///
    /// # Errors
    ///
    /// If there are no more file descriptors.
    pub fn add(&mut self, name: &'static str, listener: &TcpListener) -> Result<(), IoError> {
        self.sockets
            .push((name, listener.as_fd().try_clone_to_owned()?));
        Ok(())
    }

    /// Starts a successor with the same program and arguments, and waits until it is ready. Returns
    /// its process id.
    ///
    /// # Errors
    ///
    /// [`HandoverError`] if the successor does not get ready; it is killed then, and nothing has
    /// changed.
    pub async fn start_successor(&self) -> Result<u32, HandoverError> {
        let program = program().map_err(|source| HandoverError::Start {
            program: PathBuf::new(),
            source,
        })?;
        self.start(program, std::env::args_os().skip(1).collect())
            .await
    }

    async fn start(
        &self,
        program: PathBuf,
        arguments: Vec<OsString>,
    ) -> Result<u32, HandoverError> {
        let started = self.spawn(&program, arguments);
        let (child, mut stream) =
            started.map_err(|source| HandoverError::Start { program, source })?;
        let mut child = Unready(Some(child));
        let ready = async {
            let mut word = [0];
            let read = stream.read_exact(&mut word).await;
            read.is_ok() && word == [READY]
        };
        match tokio::time::timeout(START_WAIT, ready).await {
            Ok(true) => {
                let ready = child.0.take();
                Ok(ready.and_then(|child| child.id()).unwrap_or_default())
            }
            // A successor that is not ready must not serve beside this process.
            Ok(false) => Err(HandoverError::Ended {
                status: child.end().await,
            }),
            Err(_) => {
                child.end().await;
                Err(HandoverError::TooSlow { after: START_WAIT })
            }
        }
    }

    fn spawn(
        &self,
        program: &PathBuf,
        arguments: Vec<OsString>,
    ) -> Result<(Child, UnixStream), IoError> {
        let (near, far) = StdStream::pair()?;
        descriptors::send(&near, &self.sockets)?;
        let child = Command::new(program)
            .args(arguments)
            .env(VARIABLE, "1")
            .env_remove("LISTEN_FDS")
            .env_remove("LISTEN_PID")
            .env_remove("LISTEN_FDNAMES")
            .stdin(Stdio::from(OwnedFd::from(far)))
            .spawn()?;
        near.set_nonblocking(true)?;
        Ok((child, UnixStream::from_std(near)?))
    }
}

/// Successor that is not ready yet; dropping it kills the process.
struct Unready(Option<Child>);

impl Unready {
    /// Kills the successor and returns its exit status.
    async fn end(&mut self) -> String {
        let Some(child) = &mut self.0 else {
            return String::new();
        };
        let _ = child.start_kill();
        let status = child.wait().await;
        status.map_or_else(|error| error.to_string(), |status| status.to_string())
    }
}

impl Drop for Unready {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // The process may have ended already.
            let _ = child.start_kill();
        }
    }
}

/// Returns the program of this process, as it is on disk now: an update puts another file there.
fn program() -> Result<PathBuf, IoError> {
    let program = std::env::current_exe()?;
    let replaced = program
        .to_str()
        .and_then(|path| path.strip_suffix(" (deleted)"));
    Ok(replaced.map_or_else(|| program.clone(), PathBuf::from))
}

#[cfg(test)]
mod tests;
