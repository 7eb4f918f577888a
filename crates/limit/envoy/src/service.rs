//! The running service: its doors, and whoever looks after its files and its memory.

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anteroom_config::RateLimitServiceConfig;
use anteroom_limit_store::clock::Now;
use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval};
use tonic_health::ServingStatus;
use tonic_health::server::{HealthReporter, health_reporter};

use crate::asking::RequestHandler;
use crate::budget::Budget;
use crate::counting::Counts;
use crate::folder::{self, FolderError, Limits, Stamp};
use crate::grpc::{CALLS_MAX, GrpcEndpoint};
use crate::http_door::HttpEndpoint;
use crate::quota::Quotas;
use crate::serve;
use crate::stats::ServiceStats;

/// How often is looked whether files have changed. As fast as anybody who has just saved one looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often memory of clients is swept that nobody has asked about since.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// Clients that may wait in the kernel until they are accepted; the usual number.
const BACKLOG: u32 = 1_024;
/// What the reference service calls itself where somebody asks whether it is well.
const HEALTH_NAMES: [&str; 4] = [
    "",
    "ratelimit",
    "envoy.service.ratelimit.v3.RateLimitService",
    "envoy.service.rate_limit_quota.v3.RateLimitQuotaService",
];

/// Why the service cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// An address is taken, or not this machine's.
    #[error("cannot listen at {address} (rate_limit_service.{key})")]
    Listen {
        /// Which setting.
        key: &'static str,
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// The files.
    #[error("{}", .0.lines().join("\n"))]
    Folder(FolderError),
    /// No random bytes for the secret of the counters.
    #[error("cannot draw a secret")]
    Secret(#[from] getrandom::Error),
}

/// A running service. Ends when it is dropped, though not gracefully.
pub struct RateLimitService {
    asking: Arc<RequestHandler>,
    is_well: Arc<AtomicBool>,
    health: HealthReporter,
    grpc: Option<SocketAddr>,
    http: Option<SocketAddr>,
    stop: watch::Sender<bool>,
    doors: Mutex<Vec<JoinHandle<()>>>,
    watching: JoinHandle<()>,
    sweeping: JoinHandle<()>,
    /// Where quotas are assigned.
    actor: JoinHandle<()>,
}

/// The sockets that listen. Whoever replaces this process gets the same ones: connections that the
/// kernel has taken and nobody has accepted yet belong to a socket, and are reset when the last
/// process lets go of it.
#[derive(Debug)]
pub struct ServiceSockets {
    /// Where gRPC is spoken.
    pub grpc: Option<TcpListener>,
    /// Where JSON is spoken.
    pub http: Option<TcpListener>,
}

impl ServiceSockets {
    /// Opens those that the configuration names.
    ///
    /// # Errors
    ///
    /// [`StartError::Listen`] if an address cannot be had.
    pub fn open(config: &RateLimitServiceConfig) -> Result<Self, StartError> {
        Ok(Self {
            grpc: listen("grpc", config.grpc)?,
            http: listen("http", config.http)?,
        })
    }
}

impl RateLimitService {
    /// Reads the files, and answers at doors that are open already.
    ///
    /// # Errors
    ///
    /// [`StartError`] if the files hold mistakes.
    pub async fn start(
        doors: ServiceSockets,
        config: &RateLimitServiceConfig,
        counts: Counts,
        now: Now,
    ) -> Result<Self, StartError> {
        let ServiceSockets { grpc, http } = doors;
        let address = |door: &Option<TcpListener>| door.as_ref()?.local_addr().ok();
        let addresses = [&grpc, &http].map(address);
        let files = Files::of(config);
        // Before they are read: what is changed meanwhile is read again.
        let stamp = files.stamp().await;
        let limits = files.read(&counts).await.map_err(StartError::Folder)?;
        let asking = Arc::new(RequestHandler::new(config, limits, counts, now)?);
        asking.counters.load(true);
        let (stop, stopped) = watch::channel(false);
        let is_well = Arc::new(AtomicBool::new(true));
        let (health, health_server) = health_reporter();
        tell_health(&health, ServingStatus::Serving).await;
        let (budget, calls) = (Budget::default(), Arc::new(Semaphore::new(CALLS_MAX)));
        let (quotas, actor) = Quotas::start(&asking, stopped.clone());
        let mut doors = Vec::new();
        if let Some(listener) = grpc {
            let door = GrpcEndpoint {
                asking: Arc::clone(&asking),
                health: health_server,
                budget: budget.clone(),
                calls: Arc::clone(&calls),
                quotas,
            };
            let call = move |request| door.clone().call(request);
            doors.push(tokio::spawn(serve::grpc(listener, stopped.clone(), call)));
        }
        if let Some(listener) = http {
            let door = HttpEndpoint {
                asking: Arc::clone(&asking),
                is_well: Arc::clone(&is_well),
                budget,
                calls,
            };
            let call = move |request| door.clone().call(request);
            doors.push(tokio::spawn(serve::http(listener, stopped, call)));
        }
        Ok(Self {
            watching: tokio::spawn(files.watch(stamp, Arc::clone(&asking))),
            sweeping: tokio::spawn(sweep(Arc::clone(&asking))),
            actor,
            asking,
            is_well,
            health,
            grpc: addresses[0],
            http: addresses[1],
            stop,
            doors: Mutex::new(doors),
        })
    }

    /// Where gRPC is spoken.
    #[must_use]
    pub const fn grpc(&self) -> Option<SocketAddr> {
        self.grpc
    }

    /// Where JSON is spoken.
    #[must_use]
    pub const fn http(&self) -> Option<SocketAddr> {
        self.http
    }

    /// What was counted so far.
    #[must_use]
    pub fn stats(&self) -> ServiceStats {
        self.asking.counters.read(self.asking.counts.fill())
    }

    /// Says that it is not well any more, takes no further clients and lets open calls finish.
    pub fn stop(&self) -> impl Future<Output = ()> + Send + use<> {
        self.is_well.store(false, Ordering::Relaxed);
        self.watching.abort();
        self.sweeping.abort();
        let (health, stop) = (self.health.clone(), self.stop.clone());
        let doors = std::mem::take(&mut *self.doors.lock());
        async move {
            tell_health(&health, ServingStatus::NotServing).await;
            stop.send_replace(true);
            // One that panicked has said so already.
            join_all(doors).await;
        }
    }
}

impl Drop for RateLimitService {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        self.watching.abort();
        self.sweeping.abort();
        self.actor.abort();
    }
}

impl std::fmt::Debug for RateLimitService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (grpc, http) = (self.grpc, self.http);
        write!(f, "RateLimitService({grpc:?}, {http:?})")
    }
}

async fn tell_health(health: &HealthReporter, status: ServingStatus) {
    for name in HEALTH_NAMES {
        health.set_service_status(name, status).await;
    }
}

fn listen(
    key: &'static str,
    address: Option<SocketAddr>,
) -> Result<Option<TcpListener>, StartError> {
    let Some(address) = address else {
        return Ok(None);
    };
    let listener = bind(address).map_err(|source| StartError::Listen {
        key,
        address,
        source,
    })?;
    Ok(Some(listener))
}

fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Reads where it may block. A reader that panics has said so already; it failed, as it does with a
/// mistake, so that the old limits stay and the files are read again when they change.
async fn off_thread(
    read: impl FnOnce() -> Result<Limits, FolderError> + Send + 'static,
) -> Result<Limits, FolderError> {
    let read = spawn_blocking(read).await;
    read.unwrap_or(Err(FolderError::BrokeOff))
}

/// The files of the service.
#[derive(Clone)]
struct Files {
    folder: PathBuf,
    merge_domains: bool,
}

impl Files {
    fn of(config: &RateLimitServiceConfig) -> Self {
        Self {
            folder: config.config_dir.clone(),
            merge_domains: config.merge_domains,
        }
    }

    /// What the files look like; nothing in common with any other look if that cannot be found out.
    async fn stamp(&self) -> Option<Stamp> {
        let folder = self.folder.clone();
        let stamp = spawn_blocking(move || folder::stamp(&folder)).await;
        stamp.ok()?.ok()
    }

    async fn read(&self, counts: &Counts) -> Result<crate::config::RateLimits, FolderError> {
        let Self {
            folder,
            merge_domains,
        } = self.clone();
        let counts = counts.clone();
        let read = move || folder::read(&folder, merge_domains, counts.shared());
        let Limits { limits, notices } = off_thread(read).await?;
        for notice in notices {
            tracing::warn!("{notice}");
        }
        Ok(limits)
    }

    /// Reads the files whenever they have changed. A mistake changes nothing.
    async fn watch(self, mut known: Option<Stamp>, asking: Arc<RequestHandler>) {
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last_mistakes = Vec::new();
        loop {
            looks.tick().await;
            let stamp = self.stamp().await;
            if stamp.is_some() && stamp == known {
                continue;
            }
            match self.read(&asking.counts).await {
                Ok(limits) => {
                    asking.limits.store(Arc::new(limits));
                    asking.counters.load(true);
                    last_mistakes.clear();
                    tracing::info!(folder = %self.folder.display(), "rate limits loaded");
                }
                Err(error) => {
                    let mistakes = error.lines();
                    // A folder that is gone is looked for every second, and told once.
                    if stamp.is_some() || mistakes != last_mistakes {
                        asking.counters.load(false);
                        for line in &mistakes {
                            tracing::error!("{line}");
                        }
                        tracing::error!("rate limits not loaded; the old ones stay");
                    }
                    last_mistakes = mistakes;
                }
            }
            known = stamp;
        }
    }
}

async fn sweep(asking: Arc<RequestHandler>) {
    let mut sweeps = interval(SWEEP_EVERY);
    sweeps.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        sweeps.tick().await;
        if let Counts::Local(counts) = &asking.counts {
            let (counts, now) = (Arc::clone(counts), asking.now());
            let _ = spawn_blocking(move || counts.sweep(now)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_reader_that_panics_has_failed_and_ends_nobody() {
        let read = off_thread(|| panic!("a mistake of the program")).await;
        assert!(matches!(read, Err(FolderError::BrokeOff)), "{read:?}");
    }
}
