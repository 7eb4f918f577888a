//! Which stores do the nodes of a demo share? Servers that are started for it and gone with it.
//!
//! One for each data center, and one for the world if there are several. They listen on this
//! machine alone, keep nothing on disk and end when they are dropped. What cannot be helped: a
//! demo that is killed (SIGKILL) leaves them behind.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, interval, timeout};

/// Programs that will do, the better one first.
const PROGRAMS: [&str; 2] = ["valkey-server", "redis-server"];
/// How long a server may take until it answers. It takes some 20 ms; on a machine that is so busy
/// that it takes longer than this, a demo would show nothing.
const STARTS_WITHIN: Duration = Duration::from_secs(15);
/// How often is looked whether it answers.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long one look may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);
/// How many ports are tried: somebody else may take one between the moment it was found free and
/// the moment the server listens.
const TRIES: u32 = 5;
/// The longest answer that is read: the section of the server takes about 500 bytes.
const ANSWER_BYTES_MAX: u64 = 16 * 1024;

/// The stores of a demo. Dropping it ends them.
#[derive(Debug)]
pub struct DemoStores {
    data_centers: Vec<Server>,
    global: Option<Server>,
}

/// Addresses as the configuration of a node has them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StoreAddresses {
    /// `store.local`.
    pub local: String,
    /// `store.global`, if there is more than one data center.
    pub global: Option<String>,
}

/// Why the stores of a demo did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartStoresError {
    /// Neither `valkey-server` nor `redis-server` is there.
    #[error(
        "several nodes share a store, and neither valkey-server nor redis-server is installed: \
         install the package redis-server (Debian, Ubuntu: apt-get install redis-server), or leave \
         out --nodes and --data-centers, for with one node the demo needs nothing"
    )]
    NotInstalled,
    /// It is there and cannot be run.
    #[error("cannot run {program}")]
    Run {
        /// Which one.
        program: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// There is no place for its files.
    #[error("cannot make the folder {}", folder.display())]
    MakeFolder {
        /// Which one.
        folder: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// No port is free.
    #[error("cannot find a free port")]
    FindPort(#[source] io::Error),
    /// Whether it runs cannot be told.
    #[error("cannot look after {program}")]
    LookAfter {
        /// Which one.
        program: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// It ended instead of answering.
    #[error("{program} ended as soon as it was started ({status}): {last_words}")]
    Ended {
        /// Which one.
        program: &'static str,
        /// How.
        status: ExitStatus,
        /// The last line of its log.
        last_words: String,
    },
    /// It does not answer.
    #[error("{program} does not answer within {} s", STARTS_WITHIN.as_secs())]
    Silent {
        /// Which one.
        program: &'static str,
    },
}

impl DemoStores {
    /// Starts what so many data centers need, in folders below `folder`, and returns once all of it
    /// answers. If this fails or is given up half-way, nothing is left running.
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
            stores.global = Some(Server::start(programs, folder.join("store-world")).await?);
        }
        Ok(stores)
    }

    /// What the nodes of data center `number` (from 1) are told; `None` if there is no such one.
    #[must_use]
    pub fn addresses(&self, number: u32) -> Option<StoreAddresses> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        Some(StoreAddresses {
            local: self.data_centers.get(index)?.url(),
            global: self.global.as_ref().map(Server::url),
        })
    }
}

/// A running server. Killed when dropped: there is nothing that it should save.
#[derive(Debug)]
struct Server {
    program: &'static str,
    process: Child,
    address: SocketAddr,
    folder: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself. It is waited for, because its folder goes next.
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
            match server.wait_until_it_answers().await {
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
                // Ctrl-C in a terminal goes to a whole group: the nodes must give back what they
                // hold before their store is gone.
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

    async fn wait_until_it_answers(&mut self) -> Result<(), StartStoresError> {
        let program = self.program;
        let deadline = Instant::now() + STARTS_WITHIN;
        let mut looks = interval(LOOK_EVERY);
        while Instant::now() < deadline {
            looks.tick().await;
            match self.process.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) => {
                    return Err(StartStoresError::Ended {
                        program,
                        status,
                        last_words: self.last_words(),
                    });
                }
                Err(source) => return Err(StartStoresError::LookAfter { program, source }),
            }
            // Not there yet is no error, and neither is a stranger: ours ends if its port is taken.
            let answer = timeout(ANSWERS_WITHIN, ask_for_process_id(self.address)).await;
            if matches!(answer, Ok(Ok(Some(id))) if id == self.process.id()) {
                return Ok(());
            }
        }
        Err(StartStoresError::Silent { program })
    }

    fn last_words(&self) -> String {
        let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let last = log.lines().rfind(|line| !line.trim().is_empty());
        last.unwrap_or("it logged nothing").to_owned()
    }

    fn url(&self) -> String {
        format!("redis://{}", self.address)
    }
}

/// An address on this machine that was free a moment ago.
fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// Pings whoever listens, and asks who it is: a server that answers at this port need not be ours.
/// `None` if it does not say.
async fn ask_for_process_id(address: SocketAddr) -> io::Result<Option<u32>> {
    let mut stream = TcpStream::connect(address).await?;
    // The server closes the connection after the last one, so that the answers have an end.
    stream.write_all(b"PING\r\nINFO server\r\nQUIT\r\n").await?;
    let mut answers = Vec::new();
    stream
        .take(ANSWER_BYTES_MAX)
        .read_to_end(&mut answers)
        .await?;
    Ok(process_id(&answers))
}

/// The process that these answers name, if the first one is to the ping.
fn process_id(answers: &[u8]) -> Option<u32> {
    let answers = std::str::from_utf8(answers).ok()?;
    let mut lines = answers.strip_prefix("+PONG\r\n")?.lines();
    lines.find_map(|line| line.strip_prefix("process_id:")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a process is there, be it one that has ended and that nobody has waited for.
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
    async fn without_a_program_the_error_says_what_to_install() {
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
    async fn the_second_program_will_do() {
        let folder = tempfile::tempdir().unwrap();
        let programs = ["no-such-valkey-server", "redis-server"];
        let stores = DemoStores::start_any_of(&programs, 1, folder.path()).await;
        assert_eq!(stores.unwrap().data_centers[0].program, "redis-server");
    }

    #[tokio::test]
    async fn a_program_that_ends_at_once_is_no_server() {
        let folder = tempfile::tempdir().unwrap();
        let stores = DemoStores::start_any_of(&["true"], 1, folder.path()).await;
        let text = stores.unwrap_err().to_string();
        assert!(text.starts_with("true ended as soon as"), "{text}");
        assert!(text.ends_with("it logged nothing"), "{text}");
    }

    #[test]
    fn only_the_server_that_says_so_is_the_server() {
        let check = |answers: &[u8], expected| {
            assert_eq!(process_id(answers), expected, "{}", answers.escape_ascii());
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
