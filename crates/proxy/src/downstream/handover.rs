//! A process hands its listening sockets to its successor, and goes on until that one is ready.
//!
//! The sockets themselves are handed on, not their addresses: who waits in a socket's queue while
//! one process ends and another begins is accepted by whichever comes to it. Two ways to get them:
//!
//! - from a supervisor that opened them (`LISTEN_FDS`, as systemd does), told apart by
//!   `LISTEN_FDNAMES`;
//! - from a **predecessor**: a process that started this one, with one end of a socket pair as its
//!   standard input. The sockets come over it; when this one is ready it says so over it, and the
//!   predecessor leaves. If it ends without a word, the predecessor goes on as if nothing had
//!   happened.

mod passing;

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

/// Says that standard input is a predecessor.
const VARIABLE: &str = "ANTEROOM_PREDECESSOR";

/// What a successor says when it is ready.
const READY: u8 = b'R';

/// How long a successor may take to start. A store that is slow to answer takes half of it.
const START_WAIT: Duration = Duration::from_secs(60);

/// Why sockets could not be taken over, or a successor not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandoverError {
    /// What was handed on is no listening socket.
    #[error("cannot take over the listening socket {name}")]
    Socket {
        /// Which.
        name: String,
        /// Why not.
        #[source]
        source: IoError,
    },
    /// Two sockets have one name, and only one would be served.
    #[error(
        "two sockets are called {name}; with [::] one serves IPv4 and IPv6, and each unit has one \
         ListenStream"
    )]
    Twice {
        /// Which.
        name: String,
    },
    /// There is no predecessor where there should be one.
    #[error("cannot hear the predecessor")]
    Predecessor(#[source] IoError),
    /// The successor could not even be started.
    #[error("cannot start the successor {}", .program.display())]
    Start {
        /// What was to be run.
        program: PathBuf,
        /// Why not.
        #[source]
        source: IoError,
    },
    /// The successor ended before it was ready.
    #[error("the successor ended before it was ready: {status}")]
    Ended {
        /// How.
        status: String,
    },
    /// The successor did not get ready.
    #[error("the successor was not ready after {} s", .after.as_secs())]
    TooSlow {
        /// How long was waited.
        after: Duration,
    },
}

/// What was handed on to this process.
#[derive(Debug, Default)]
pub struct Inherited {
    sockets: BTreeMap<String, StdListener>,
    predecessor: Option<StdStream>,
}

impl Inherited {
    /// Takes what there is: nothing, most of the time. To be called once, before anything else
    /// reads standard input.
    ///
    /// # Errors
    ///
    /// [`HandoverError`] if something was handed on that cannot be used.
    pub fn take() -> Result<Self, HandoverError> {
        if std::env::var_os(VARIABLE).is_some() {
            return Self::from_predecessor().map_err(HandoverError::Predecessor);
        }
        Self::from_supervisor()
    }

    fn from_predecessor() -> Result<Self, IoError> {
        let input = rustix::stdio::stdin().try_clone_to_owned()?;
        // Nobody else should talk to the predecessor by accident.
        rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
        let predecessor = StdStream::from(input);
        let mut sockets = BTreeMap::new();
        for (name, socket) in passing::receive(&predecessor)? {
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

    /// The socket of this name, if there is one.
    ///
    /// # Errors
    ///
    /// [`HandoverError::Socket`] if it does not listen.
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

    /// Names of sockets that nobody has asked for.
    pub(crate) fn unused(&self) -> impl Iterator<Item = &str> {
        self.sockets.keys().map(String::as_str)
    }

    /// Who waits for this process to be ready, if anybody does.
    #[must_use]
    pub fn predecessor(&mut self) -> Option<Predecessor> {
        self.predecessor.take().map(|stream| Predecessor { stream })
    }
}

/// Names of so many sockets, each in its place; where none has one, the first is the first of those
/// that we have.
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
            // Two without a name are not two of one name.
            *name = format!("number {}", at + 1);
        }
    }
    // What systemd calls sockets that have no `FileDescriptorName`: the unit's name.
    if let [only] = &mut names[..]
        && !NAMES.contains(&only.as_str())
    {
        *only = VISITORS.to_owned();
    }
    names
}

/// The socket to which visitors connect.
pub const VISITORS: &str = "visitors";
/// The socket to which operators connect.
pub const OPERATORS: &str = "operators";
/// The socket to which visitors of http connect who are sent to https.
pub(crate) const REDIRECT: &str = "redirect";

/// The sockets to which Envoy connects, by gRPC and with JSON.
pub(crate) const RATE_LIMITS_GRPC: &str = "rate_limits_grpc";
/// See [`RATE_LIMITS_GRPC`].
pub(crate) const RATE_LIMITS_HTTP: &str = "rate_limits_http";

const NAMES: [&str; 5] = [
    VISITORS,
    OPERATORS,
    REDIRECT,
    RATE_LIMITS_GRPC,
    RATE_LIMITS_HTTP,
];

/// A process that goes on until this one is ready.
#[derive(Debug)]
pub struct Predecessor {
    stream: StdStream,
}

impl Predecessor {
    /// Says that this process serves from now on.
    ///
    /// # Errors
    ///
    /// [`HandoverError::Predecessor`] if it cannot be told: it is gone already.
    pub async fn say_ready(self) -> Result<(), HandoverError> {
        let say = async {
            self.stream.set_nonblocking(true)?;
            let mut stream = UnixStream::from_std(self.stream)?;
            stream.write_all(&[READY]).await
        };
        say.await.map_err(HandoverError::Predecessor)
    }
}

/// The sockets of this process, to be handed on.
#[derive(Debug, Default)]
pub struct Legacy {
    sockets: Vec<(&'static str, OwnedFd)>,
}

impl Legacy {
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

    /// Starts a successor, the same program with the same arguments, and waits until it is ready.
    /// Returns its process id.
    ///
    /// # Errors
    ///
    /// [`HandoverError`] if it does not get ready; it is gone then, and nothing has changed.
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
            // Whatever it still does, it must not serve beside us.
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
        passing::send(&near, &self.sockets)?;
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

/// A successor that is not ready yet: it ends with whoever waits for it.
struct Unready(Option<Child>);

impl Unready {
    /// Ends it; returns how it ended.
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
            // It may have ended by itself.
            let _ = child.start_kill();
        }
    }
}

/// The program of this process, as it lies on the disk now: an update puts another file there.
fn program() -> Result<PathBuf, IoError> {
    let program = std::env::current_exe()?;
    let replaced = program
        .to_str()
        .and_then(|path| path.strip_suffix(" (deleted)"));
    Ok(replaced.map_or_else(|| program.clone(), PathBuf::from))
}

#[cfg(test)]
mod tests;
