//! Stores that the nodes of a demo share: servers that are started and stopped with it.
//!
//! One for each data center, and a global one if there are several. They listen on this machine
//! only, keep nothing on disk and are stopped when dropped. A demo that is killed (SIGKILL) leaves
//! them running.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, interval, timeout};

/// Programs that can serve as a store, the preferred one first.
const PROGRAMS: [&str; 2] = ["valkey-server", "redis-server"];
/// Longest time until a server responds. It takes some 20 ms; on a machine so busy that it takes
/// longer than this, a demo would show nothing.
const START_TIMEOUT: Duration = Duration::from_secs(15);
/// Time between two checks whether a server responds.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Longest time of one check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);
/// Number of ports that are tried: another process may take a free one before the server listens on
/// it.
const TRIES: u32 = 5;
/// Longest reply that is read, in bytes: the section about the server takes some 500.
const REPLY_BYTES_MAX: u64 = 16 * 1024;

/// Stores of a demo. Dropping them stops them.
#[derive(Debug)]
pub struct DemoStores {
    data_centers: Vec<Server>,
    global: Option<Server>,
}

/// Addresses of the stores, as in the configuration of a node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StoreAddresses {
    /// `store.local`.
    pub local: String,
    /// `store.global`, if there is more than one data center.
    pub global: Option<String>,
}

/// Error of stores that did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartStoresError {
    /// No `valkey-server` and no `redis-server` is installed.
    #[error(
        "several nodes share a store, and no valkey-server or redis-server is installed; \
         install the package redis-server (Debian, Ubuntu: apt-get install redis-server), or leave \
         out --nodes and --data-centers: one node needs no store"
    )]
    NotInstalled,
    /// The program cannot be run.
    #[error("cannot run {program}")]
    Run {
        /// Name of the program.
        program: &'static str,
        /// Underlying error.
        source: io::Error,
    },
    /// The folder for its files cannot be created.
    #[error("cannot make the folder {}", folder.display())]
    MakeFolder {
        /// Path of the folder.
        folder: PathBuf,
        /// Underlying error.
        source: io::Error,
    },
    /// Finding a free port failed.
    #[error("cannot find a free port")]
    FindPort(#[source] io::Error),
    /// The status of the process cannot be read.
    #[error("cannot read the status of {program}")]
    Status {
        /// Name of the program.
        program: &'static str,
        /// Underlying error.
        source: io::Error,
    },
    /// The program ended instead of responding.
    #[error("{program} ended as soon as it was started ({status}): {last_log_line}")]
    Ended {
        /// Name of the program.
        program: &'static str,
        /// Status of the process.
        status: ExitStatus,
        /// Last line of its log.
        last_log_line: String,
    },
    /// The program does not respond in time.
    #[error("{program} does not respond within {} s", START_TIMEOUT.as_secs())]
    NoReply {
        /// Name of the program.
        program: &'static str,
    },
}

impl DemoStores {
    /// Starts the stores for this number of data centers, in folders below `folder`, and returns
    /// once all of them respond. If this fails or is cancelled, nothing keeps running.
    ///
    /// # Errors
    ///
    /// [`StartStoresError`], if a server does not start.
    pub async fn start(data_centers: u32, folder: &Path) -> Result<Self, StartStoresError> {
        Self::start_any_of(&PROGRAMS, data_centers, folder).await
    }

    async fn start_any_of(
        programs: &[&'static str],
        data_centers: u32,
        folder: &Path,
    ) -> Result<Self, StartStoresError> {
        let mut stores = Self {
            data_centers: Vec::new(),
            global: None,
        };
        for number in 1..=data_centers {
            let server = Server::start(programs, folder.join(format!("store-dc{number}"))).await?;
            stores.data_centers.push(server);
        }
        if data_centers > 1 {
            stores.global = Some(Server::start(programs, folder.join("store-global")).await?);
        }
        Ok(stores)
    }

    /// Returns the addresses for the nodes of data center `number` (from 1); `None` if there is
    /// none.
    #[must_use]
    pub fn addresses(&self, number: u32) -> Option<StoreAddresses> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        Some(StoreAddresses {
            local: self.data_centers.get(index)?.url(),
            global: self.global.as_ref().map(Server::url),
        })
    }
}

/// Running server. Killed when dropped, because it has nothing to save.
#[derive(Debug)]
struct Server {
    program: &'static str,
    process: Child,
    address: SocketAddr,
    folder: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already. The wait is needed because its folder is removed next.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    /// Starts the first of `programs` that is installed.
    async fn start(programs: &[&'static str], folder: PathBuf) -> Result<Self, StartStoresError> {
        if let Err(source) = std::fs::create_dir(&folder) {
            return Err(StartStoresError::MakeFolder { folder, source });
        }
        let mut tries_left = TRIES;
        loop {
            let mut server = Self::spawn(programs, &folder)?;
            tries_left -= 1;
            match server.wait_until_ready().await {
                Ok(()) => return Ok(server),
                Err(StartStoresError::Ended { .. }) if tries_left > 0 => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn spawn(programs: &[&'static str], folder: &Path) -> Result<Self, StartStoresError> {
        let address = free_address().map_err(StartStoresError::FindPort)?;
        for program in programs {
            let spawned = Command::new(program)
                .args(["--bind", &address.ip().to_string()])
                .args(["--port", &address.port().to_string()])
                .args(["--save", "", "--appendonly", "no", "--daemonize", "no"])
                .args(["--logfile", "log", "--dir"])
                .arg(folder)
                // Ctrl-C in a terminal goes to the whole process group: the nodes must return their
                // leases before their store stops.
                .process_group(0)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            match spawned {
                Ok(process) => {
                    return Ok(Self {
                        program,
                        process,
                        address,
                        folder: folder.to_owned(),
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(StartStoresError::Run { program, source }),
            }
        }
        Err(StartStoresError::NotInstalled)
    }

    async fn wait_until_ready(&mut self) -> Result<(), StartStoresError> {
        let program = self.program;
        let deadline = Instant::now() + START_TIMEOUT;
        let mut looks = interval(CHECK_INTERVAL);
        while Instant::now() < deadline {
            looks.tick().await;
            match self.process.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) => {
                    return Err(StartStoresError::Ended {
                        program,
                        status,
                        last_log_line: self.last_log_line(),
                    });
                }
                Err(source) => return Err(StartStoresError::Status { program, source }),
            }
            // Connection errors are expected until it listens. Another server may have taken the
            // port.
            let reply = timeout(CHECK_TIMEOUT, fetch_process_id(self.address)).await;
            if matches!(reply, Ok(Ok(Some(id))) if id == self.process.id()) {
                return Ok(());
            }
        }
        Err(StartStoresError::NoReply { program })
    }

    fn last_log_line(&self) -> String {
        let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let last = log.lines().rfind(|line| !line.trim().is_empty());
        last.unwrap_or("it logged nothing").to_owned()
    }

    fn url(&self) -> String {
        format!("redis://{}", self.address)
    }
}

/// Returns an address on this machine that was free a moment ago.
fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// Pings the server at an address and returns its process id: a server at this port may be another
/// one. `None` if it does not report an id.
async fn fetch_process_id(address: SocketAddr) -> io::Result<Option<u32>> {
    let mut stream = TcpStream::connect(address).await?;
    // The server closes the connection after the last command, so that the replies have an end.
    stream.write_all(b"PING\r\nINFO server\r\nQUIT\r\n").await?;
    let mut replies = Vec::new();
    stream
        .take(REPLY_BYTES_MAX)
        .read_to_end(&mut replies)
        .await?;
    Ok(process_id(&replies))
}

/// Returns the process id in these replies, if the first one is to the ping.
fn process_id(replies: &[u8]) -> Option<u32> {
    let replies = std::str::from_utf8(replies).ok()?;
    let mut lines = replies.strip_prefix("+PONG\r\n")?.lines();
    lines.find_map(|line| line.strip_prefix("process_id:")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a process exists, even one that has ended and was not waited for.
    fn is_there(id: u32) -> bool {
        Path::new("/proc").join(id.to_string()).exists()
    }

    fn ids(stores: &DemoStores) -> Vec<u32> {
        let servers = stores.data_centers.iter().chain(&stores.global);
        servers.map(|server| server.process.id()).collect()
    }

    #[tokio::test]
    async fn two_data_centers_have_three_servers_that_end_with_them() {
        let folder = tempfile::tempdir().unwrap();
        let stores = DemoStores::start(2, folder.path()).await.unwrap();
        let (first, second) = (stores.addresses(1).unwrap(), stores.addresses(2).unwrap());
        assert_ne!(first.local, second.local);
        assert!(first.global.is_some() && first.global == second.global);
        assert_eq!(stores.addresses(0), None);
        assert_eq!(stores.addresses(3), None);
        let ids = ids(&stores);
        assert_eq!(ids.len(), 3);
        assert!(ids.iter().all(|id| is_there(*id)));
        drop(stores);
        assert!(ids.iter().all(|id| !is_there(*id)));
    }

    #[tokio::test]
    async fn one_data_center_has_one_server_and_no_global_store() {
        let folder = tempfile::tempdir().unwrap();
        let stores = DemoStores::start(1, folder.path()).await.unwrap();
        assert_eq!(ids(&stores).len(), 1);
        assert_eq!(stores.addresses(1).unwrap().global, None);
    }

    #[tokio::test]
    async fn without_a_program_the_error_names_what_to_install() {
        let folder = tempfile::tempdir().unwrap();
        let programs = ["no-such-valkey-server", "no-such-redis-server"];
        let error = DemoStores::start_any_of(&programs, 2, folder.path()).await;
        let error = error.unwrap_err();
        assert!(matches!(error, StartStoresError::NotInstalled), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("apt-get install redis-server"), "{text}");
        assert!(text.contains("leave out --nodes"), "{text}");
    }

    #[tokio::test]
    async fn the_second_program_is_used_without_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let programs = ["no-such-valkey-server", "redis-server"];
        let stores = DemoStores::start_any_of(&programs, 1, folder.path()).await;
        assert_eq!(stores.unwrap().data_centers[0].program, "redis-server");
    }

    #[tokio::test]
    async fn a_program_that_ends_at_once_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let stores = DemoStores::start_any_of(&["true"], 1, folder.path()).await;
        let text = stores.unwrap_err().to_string();
        assert!(text.starts_with("true ended as soon as"), "{text}");
        assert!(text.ends_with("it logged nothing"), "{text}");
    }

    #[test]
    fn a_server_is_recognised_by_its_process_id() {
        let check = |replies: &[u8], expected| {
            assert_eq!(process_id(replies), expected, "{}", replies.escape_ascii());
        };
        let info = b"+PONG\r\n$40\r\n# Server\r\nprocess_id:4711\r\nrun_id:0\r\n\r\n+OK\r\n";
        check(info, Some(4711));
        check(b"", None);
        check(b"+PONG\r\n", None);
        check(b"-NOAUTH Authentication required.\r\n", None);
        check(b"+PONG\r\nprocess_id:-1\r\n", None);
        check(b"+PONG\r\nprocess_id:99999999999\r\n", None);
        check(b"process_id:4711\r\n", None);
        check(b"+PONG\r\n\xff\xfeprocess_id:4711\r\n", None);
    }
}
