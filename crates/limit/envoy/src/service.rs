//! Running service: its endpoints, and the background tasks for its files and its memory.

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

use crate::budget::Budget;
use crate::counting::Counts;
use crate::folder::{self, FolderError, Limits, Stamp};
use crate::grpc::{GrpcEndpoint, REQUESTS_MAX};
use crate::http_endpoint::HttpEndpoint;
use crate::quota::Quotas;
use crate::request_handler::RequestHandler;
use crate::serve;
use crate::stats::ServiceStats;

/// Interval of checks for changed files; short enough for someone who just saved one.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// Interval of sweeps that evict idle clients.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// Connections that may wait in the kernel to be accepted; the usual number.
const BACKLOG: u32 = 1_024;
/// Service names of health checks, as the reference service has them.
const HEALTH_NAMES: [&str; 4] = [
    "",
    "ratelimit",
    "envoy.service.ratelimit.v3.RateLimitService",
    "envoy.service.rate_limit_quota.v3.RateLimitQuotaService",
];

/// Error of starting the service.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address is in use, or belongs to another machine.
    #[error("cannot listen at {address} (rate_limit_service.{key})")]
    Listen {
        /// Key of the setting.
        key: &'static str,
        /// Address.
        address: SocketAddr,
        /// Underlying error.
        source: std::io::Error,
    },
    /// The files have mistakes.
    #[error("{}", .0.lines().join("\n"))]
    Folder(FolderError),
    /// The system has no random bytes for the secret of the counters.
    #[error("cannot draw a secret")]
    Secret(#[from] getrandom::Error),
}

/// Running service. Dropping it ends the service, though not gracefully.
pub struct RateLimitService {
    handler: Arc<RequestHandler>,
    is_healthy: Arc<AtomicBool>,
    health: HealthReporter,
    grpc: Option<SocketAddr>,
    http: Option<SocketAddr>,
    stop: watch::Sender<bool>,
    servers: Mutex<Vec<JoinHandle<()>>>,
    watching: JoinHandle<()>,
    sweeping: JoinHandle<()>,
    /// Task that assigns quotas.
    actor: JoinHandle<()>,
}

/// Listening sockets. A successor process gets the same ones: connections that the kernel has
/// queued belong to a socket, and are reset when the last process closes it.
#[derive(Debug)]
pub struct ServiceSockets {
    /// Listener of gRPC.
    pub grpc: Option<TcpListener>,
    /// Listener of JSON.
    pub http: Option<TcpListener>,
}

impl ServiceSockets {
    /// Opens the sockets that the configuration names.
    ///
    /// # Errors
    ///
    /// [`StartError::Listen`] if an address cannot be bound.
    pub fn open(config: &RateLimitServiceConfig) -> Result<Self, StartError> {
        Ok(Self {
            grpc: listen("grpc", config.grpc)?,
            http: listen("http", config.http)?,
        })
    }
}

impl RateLimitService {
    /// Reads the files, and serves the sockets.
    ///
    /// # Errors
    ///
    /// [`StartError`] if the files have mistakes.
    pub async fn start(
        sockets: ServiceSockets,
        config: &RateLimitServiceConfig,
        counts: Counts,
        now: Now,
    ) -> Result<Self, StartError> {
        let ServiceSockets { grpc, http } = sockets;
        let address = |listener: &Option<TcpListener>| listener.as_ref()?.local_addr().ok();
        let addresses = [&grpc, &http].map(address);
        let files = Files::of(config);
        // Taken before the files are read, so that a change meanwhile is read again.
        let stamp = files.stamp().await;
        let limits = files.read(&counts).await.map_err(StartError::Folder)?;
        let handler = Arc::new(RequestHandler::new(config, limits, counts, now)?);
        handler.counters.load(true);
        let (stop, stopped) = watch::channel(false);
        let is_healthy = Arc::new(AtomicBool::new(true));
        let (health, health_server) = health_reporter();
        set_health(&health, ServingStatus::Serving).await;
        let (budget, permits) = (Budget::default(), Arc::new(Semaphore::new(REQUESTS_MAX)));
        let (quotas, actor) = Quotas::start(&handler, stopped.clone());
        let mut servers = Vec::new();
        if let Some(listener) = grpc {
            let endpoint = GrpcEndpoint {
                handler: Arc::clone(&handler),
                health: health_server,
                budget: budget.clone(),
                permits: Arc::clone(&permits),
                quotas,
            };
            let call = move |request| endpoint.clone().call(request);
            servers.push(tokio::spawn(serve::grpc(listener, stopped.clone(), call)));
        }
        if let Some(listener) = http {
            let endpoint = HttpEndpoint {
                handler: Arc::clone(&handler),
                is_healthy: Arc::clone(&is_healthy),
                budget,
                permits,
            };
            let call = move |request| endpoint.clone().call(request);
            servers.push(tokio::spawn(serve::http(listener, stopped, call)));
        }
        Ok(Self {
            watching: tokio::spawn(files.watch(stamp, Arc::clone(&handler))),
            sweeping: tokio::spawn(sweep(Arc::clone(&handler))),
            actor,
            handler,
            is_healthy,
            health,
            grpc: addresses[0],
            http: addresses[1],
            stop,
            servers: Mutex::new(servers),
        })
    }

    /// Returns the address of gRPC.
    #[must_use]
    pub const fn grpc(&self) -> Option<SocketAddr> {
        self.grpc
    }

    /// Returns the address of JSON.
    #[must_use]
    pub const fn http(&self) -> Option<SocketAddr> {
        self.http
    }

    /// Returns the statistics so far.
    #[must_use]
    pub fn stats(&self) -> ServiceStats {
        self.handler.counters.read(self.handler.counts.fill())
    }

    /// Reports itself as unhealthy, accepts no further clients and lets open requests finish.
    pub fn stop(&self) -> impl Future<Output = ()> + Send + use<> {
        self.is_healthy.store(false, Ordering::Relaxed);
        self.watching.abort();
        self.sweeping.abort();
        let (health, stop) = (self.health.clone(), self.stop.clone());
        let servers = std::mem::take(&mut *self.servers.lock());
        async move {
            set_health(&health, ServingStatus::NotServing).await;
            stop.send_replace(true);
            // A task that panicked has logged it already.
            join_all(servers).await;
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

async fn set_health(health: &HealthReporter, status: ServingStatus) {
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

/// Reads in a thread that may block. If the reader panics, which is logged by the panic hook, the
/// result is an error like a mistake: the old limits stay, and the files are read again when they
/// change.
async fn off_thread(
    read: impl FnOnce() -> Result<Limits, FolderError> + Send + 'static,
) -> Result<Limits, FolderError> {
    let read = spawn_blocking(read).await;
    read.unwrap_or(Err(FolderError::Panicked))
}

/// Files of the service.
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

    /// Returns the fingerprint of the files; `None` if it cannot be determined, which equals no
    /// other.
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

    /// Reads the files whenever they change. Files with mistakes change nothing.
    async fn watch(self, mut known: Option<Stamp>, handler: Arc<RequestHandler>) {
        let mut checks = interval(CHECK_EVERY);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last_mistakes = Vec::new();
        loop {
            checks.tick().await;
            let stamp = self.stamp().await;
            if stamp.is_some() && stamp == known {
                continue;
            }
            match self.read(&handler.counts).await {
                Ok(limits) => {
                    handler.limits.store(Arc::new(limits));
                    handler.counters.load(true);
                    last_mistakes.clear();
                    tracing::info!(folder = %self.folder.display(), "rate limits loaded");
                }
                Err(error) => {
                    let mistakes = error.lines();
                    // A missing folder is checked every second, and logged once.
                    if stamp.is_some() || mistakes != last_mistakes {
                        handler.counters.load(false);
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

async fn sweep(handler: Arc<RequestHandler>) {
    let mut sweeps = interval(SWEEP_EVERY);
    sweeps.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        sweeps.tick().await;
        if let Counts::Local(counts) = &handler.counts {
            let (counts, now) = (Arc::clone(counts), handler.now());
            let _ = spawn_blocking(move || counts.sweep(now)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_reader_that_panics_fails_and_ends_nothing_else() {
        let read = off_thread(|| panic!("a mistake of the program")).await;
        assert!(matches!(read, Err(FolderError::Panicked)), "{read:?}");
    }
}
