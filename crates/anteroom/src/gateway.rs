//! A whole gateway in this process: store, node, listeners and admin address, started and stopped
//! in order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anteroom_admin::{Control, ReloadRequest, Reloader, Tokens};
use anteroom_config::{Config, LimitStores, RateLimitServiceConfig, ServerConfig, StoreConfig};
use anteroom_embedded::{DataDir, Embedded};
use anteroom_envoy::{RateLimitService, ServiceSockets};
use anteroom_node::{Node, NodeClock, RoomClock};
use anteroom_proxy::downstream::connection_table::{ConnectionLimits, ConnectionTable};
use anteroom_proxy::downstream::handover::{Inherited, SocketHandover};
use anteroom_proxy::downstream::sockets::Sockets;
use anteroom_proxy::downstream::tls::Tls;
use anteroom_proxy::downstream::workers::Workers;
use anteroom_room_http::layer::WaitingRoomLayer;
use anteroom_store::Clock;
use anteroom_tower::{Layers, OpenedStores};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::admin_tokens;
use crate::descriptors;
use crate::listeners::Listeners;
use crate::other_stats::{Connections, OtherStats};
use crate::rate_limit_service;

/// Time for which a gateway with a successor serves its open connections, before it closes idle
/// ones.
const LEAVE_FOR: Duration = Duration::from_secs(5);

/// A running gateway.
pub struct Gateway {
    layers: Layers,
    rate_limits: Option<Arc<RateLimitService>>,
    extras: Arc<OtherStats>,
    tokens: Arc<Tokens>,
    reload_requests: tokio::sync::Mutex<mpsc::Receiver<ReloadRequest>>,
    address: SocketAddr,
    admin: SocketAddr,
    legacy: SocketHandover,
    tls: Option<Tls>,
    listeners: JoinHandle<()>,
    control: JoinHandle<()>,
    stop_control: watch::Sender<bool>,
    server: ServerConfig,
    store: StoreConfig,
    limit_stores: LimitStores,
    rate_limit_service: Option<RateLimitServiceConfig>,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Gateway({})", self.address)
    }
}

impl Gateway {
    /// Starts everything. Active visitors pass at once; new ones are admitted when the journal is
    /// open.
    ///
    /// # Errors
    ///
    /// If an address is taken, the data folder cannot be used, or a room cannot be served.
    pub async fn start(config: &Config) -> anyhow::Result<Self> {
        Self::start_after(config, Inherited::default(), Workers::default()).await
    }

    /// Starts a gateway like [`Gateway::start`], with sockets of a predecessor, and with visitors
    /// on worker threads.
    ///
    /// # Errors
    ///
    /// As [`Gateway::start`].
    pub async fn start_after(
        config: &Config,
        inherited: Inherited,
        workers: Workers,
    ) -> anyhow::Result<Self> {
        WaitingRoomLayer::check(config)?;
        let server = &config.server;
        let dir = DataDir::open(&server.data_dir)?;
        let clock = Arc::new(RoomClock::start(dir.clock()));
        let opened = OpenedStores::of(config, &dir, Arc::clone(&clock) as Arc<dyn Clock>).await?;
        let process = (inherited, workers);
        Self::start_opened(config, dir, clock, opened, process).await
    }

    /// Starts a gateway like [`Gateway::start`], with a clock of the caller.
    ///
    /// # Errors
    ///
    /// As [`Gateway::start`].
    pub async fn start_with<C: NodeClock>(
        config: &Config,
        dir: DataDir,
        clock: Arc<C>,
    ) -> anyhow::Result<Self> {
        let opened = OpenedStores::of(config, &dir, Arc::clone(&clock) as Arc<dyn Clock>).await?;
        Self::start_opened(config, dir, clock, opened, Default::default()).await
    }

    /// Starts a gateway like [`Gateway::start_with`], on a journal of the caller.
    ///
    /// # Errors
    ///
    /// As [`Gateway::start`].
    pub async fn start_on<C: NodeClock>(
        config: &Config,
        dir: DataDir,
        clock: Arc<C>,
        store: Arc<Embedded>,
    ) -> anyhow::Result<Self> {
        let opened = OpenedStores::alone(&dir, store)?;
        Self::start_opened(config, dir, clock, opened, Default::default()).await
    }

    async fn start_opened<C: NodeClock>(
        config: &Config,
        dir: DataDir,
        clock: Arc<C>,
        opened: OpenedStores,
        (inherited, workers): (Inherited, Workers),
    ) -> anyhow::Result<Self> {
        let server = &config.server;
        // Everything that may fail comes before the first visitor: an accepted visitor is served
        // here.
        let tls = (!server.tls.is_empty())
            .then(|| Tls::load(&server.tls))
            .transpose()?;
        let tokens = Arc::new(Tokens::new(admin_tokens::load(server, &dir)?));
        let sockets = Sockets::open(server, config.rate_limit_service.as_ref(), inherited).await?;
        let legacy = sockets.for_successor()?;
        let layers = Layers::on(config, dir, clock, opened).await?;
        let table = table_of(server);
        let connections = Arc::new(Connections::of(table.clone()));
        let service_sockets = ServiceSockets {
            grpc: sockets.rate_limits_grpc,
            http: sockets.rate_limits_http,
        };
        let rate_limits =
            rate_limit_service::start_service(config, service_sockets, layers.clock()).await?;
        let service = rate_limits.clone();
        let extras = OtherStats::new(&layers, Arc::clone(&connections), tls.clone(), service);
        let address = sockets.visitors.local_addr()?;
        let admin = sockets.operators.local_addr()?;
        let listeners = Listeners {
            visitors: sockets.visitors,
            redirect: sockets.redirect,
            tls: tls.clone(),
            rooms: layers.waiting_rooms(),
            limits: layers.rate_limits(),
            at_once: layers.at_once(),
            connections,
            table,
            clock: Arc::clone(layers.clock()),
            workers,
        };
        let listeners = listeners.serve(server, address, layers.draining());
        let (reloader, reload_requests) = Reloader::new();
        let control = Control::new(
            Arc::clone(layers.node()),
            (Arc::clone(layers.limits()), Arc::clone(layers.api_rooms())),
            Arc::clone(&extras) as Arc<_>,
            (Arc::clone(&tokens), reloader),
        );
        let (control, stop_control) =
            serve_operators(sockets.operators, (server, tls.clone()), &control);
        Ok(Self {
            address,
            admin,
            legacy,
            tls,
            listeners,
            control,
            layers,
            rate_limits,
            extras,
            tokens,
            reload_requests: tokio::sync::Mutex::new(reload_requests),
            stop_control,
            server: server.clone(),
            store: config.store.clone(),
            limit_stores: config.limit_stores.clone(),
            rate_limit_service: config.rate_limit_service.clone(),
        })
    }

    /// Returns the address for visitors.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the scheme for visitors: `http` or `https`.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// Returns the scheme for operators: `http` or `https`.
    #[must_use]
    pub fn admin_scheme(&self) -> &'static str {
        if self.server.admin_tls {
            "https"
        } else {
            "http"
        }
    }

    /// Returns the sockets that a successor gets.
    #[must_use]
    pub fn legacy(&self) -> &SocketHandover {
        &self.legacy
    }

    /// Returns the address for operators.
    #[must_use]
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Returns Envoy's rate limit service, if it runs here.
    #[must_use]
    pub fn rate_limits(&self) -> Option<&RateLimitService> {
        self.rate_limits.as_deref()
    }

    /// Returns the node.
    #[must_use]
    pub fn node(&self) -> &Arc<Node> {
        self.layers.node()
    }

    /// Applies a changed configuration: rooms, limits and ticket keys at once. Addresses, folders,
    /// sizes and timeouts keep their values until a restart.
    ///
    /// # Errors
    ///
    /// If a room cannot be served as configured; nothing changes then.
    pub fn reload(&self, config: &Config) -> anyhow::Result<()> {
        // Everything that may fail comes first: a half-applied config would serve unknown rooms.
        let next = self.layers.prepare(config)?;
        let tokens = admin_tokens::load(&config.server, self.layers.dir())?;
        if let Some(tls) = &self.tls
            && !config.server.tls.is_empty()
        {
            // Last, because it changes at once or not at all.
            tls.reload(&config.server.tls)?;
        }
        self.layers.commit(config, next)?;
        self.tokens.set(tokens);
        for key in self.server.changed_until_restart(&config.server) {
            tracing::warn!("server.{key} has changed in the file; it takes effect with a restart");
        }
        for name in self.tables_changed_until_restart(config) {
            tracing::warn!("[{name}] has changed in the file; it takes effect with a restart");
        }
        Ok(())
    }

    /// Returns the tables besides `[server]` that differ from those at the start of the process.
    fn tables_changed_until_restart(&self, next: &Config) -> Vec<&'static str> {
        let has_other_store = next.store != self.store;
        let has_other_service = next.rate_limit_service != self.rate_limit_service;
        let store = has_other_store.then_some("store").into_iter();
        let changed = store.chain(self.limit_stores.changed(&next.limit_stores));
        changed
            .chain(has_other_service.then_some("rate_limit_service"))
            .collect()
    }

    /// Waits for an operator's request to read the configuration file again.
    pub async fn reload_requested(&self) -> ReloadRequest {
        match self.reload_requests.lock().await.recv().await {
            Some(request) => request,
            // The admin address has ended.
            None => std::future::pending().await,
        }
    }

    /// Records the result of a reload, for metrics and health.
    pub fn note_reload(&self, problem: Option<String>) {
        self.extras.note_reload(problem);
    }

    /// Returns all leases, closes the journal so that a successor may grant leases, then lets open
    /// requests finish.
    pub async fn stop(mut self) {
        self.layers.close().await;
        // While it is kept, the listening sockets stay open and no connection is refused.
        self.legacy = SocketHandover::default();
        self.end().await;
        self.layers.finish(false).await;
    }

    /// Stops for a successor that serves already; visitors with open connections are served on.
    pub async fn leave(mut self) {
        self.legacy = SocketHandover::default();
        self.layers.drain().leave();
        // Operators connect to the successor.
        self.stop_control.send_replace(true);
        let rate_limits = rate_limit_service::stop_service(self.rate_limits.as_ref());
        self.layers.close().await;
        if tokio::time::timeout(LEAVE_FOR, &mut self.listeners)
            .await
            .is_err()
        {
            self.end().await;
        }
        let _ = rate_limits.await;
        // Includes what was counted meanwhile.
        self.layers.finish(true).await;
    }

    async fn end(&mut self) {
        self.layers.drain().start();
        let rate_limits = rate_limit_service::stop_service(self.rate_limits.as_ref());
        // Tasks that panicked have reported it already.
        let _ = tokio::join!(&mut self.listeners, rate_limits);
        self.stop_control.send_replace(true);
        let _ = (&mut self.control).await;
    }

    /// Stops without waiting for requests without end.
    pub async fn stop_soon(self) {
        // The requests that are still open are streams; ending them does no harm.
        let _ = tokio::time::timeout(Duration::from_secs(1), self.stop()).await;
    }
}

/// Creates the table of connections with the limits of the config.
fn table_of(server: &ServerConfig) -> ConnectionTable {
    ConnectionTable::new(ConnectionLimits {
        connections: descriptors::make_room(server.size_limits.connections),
        per_address: server.size_limits.connections_per_address,
        trusted_proxies: server.trusted_proxies.clone(),
    })
}

/// Serves operators until the sender sends `true` or is dropped.
fn serve_operators(
    listener: TcpListener,
    (server, tls): (&ServerConfig, Option<Tls>),
    control: &Control,
) -> (JoinHandle<()>, watch::Sender<bool>) {
    let (stop, mut stopped) = watch::channel(false);
    let stopping = async move {
        // The sender is part of the gateway; when it is dropped, this ends.
        let _ = stopped.wait_for(|is_stopped| *is_stopped).await;
    };
    let tls = tls.filter(|_| server.admin_tls);
    let settings = (server.admin_hosts.clone(), tls);
    let serving = anteroom_admin::serve(listener, settings, control.router(), stopping);
    (tokio::spawn(serving), stop)
}
