//! Node with its rooms and its rate limits, as layers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anteroom_admin::api_rooms::LiveApiRooms;
use anteroom_admin::overrides::{LiveLimits, Prepared};
use anteroom_config::{Config, ServerConfig};
use anteroom_embedded::{DataDir, Embedded};
use anteroom_limit_http::{Limiter, RateLimitLayer, Tokens, TokensError};
use anteroom_node::{Node, NodeClock, NodeSettings, RoomClock, Stores};
use anteroom_proxy::downstream::drain::{DrainSignal, DrainTrigger, drain};
use anteroom_room_http::CHECKS;
use anteroom_room_http::layer::WaitingRoomLayer;
use anteroom_store::{Clock, Deployment};
use tokio::task::JoinHandle;

use crate::at_once::Decider;
use crate::clients::ClientLayer;
use crate::open_error::OpenError;
use crate::rooms_host::NodeRooms;
use crate::stores::{FIRST_CONTACT, OpenedStores};
use crate::surroundings::Around;

/// Time after which a store that has sent no reply is logged.
const WARN_AFTER: Duration = Duration::from_secs(1);

/// Layers in front of a service, and the node that runs them.
///
/// Dropping it ends the limits' upkeep; [`Layers::close`] also returns the leases.
pub struct Layers {
    node: Arc<Node>,
    rooms: WaitingRoomLayer,
    limiter: Arc<Limiter>,
    limits: Arc<LiveLimits>,
    api_rooms: Arc<LiveApiRooms>,
    clock: Arc<dyn NodeClock>,
    server: ServerConfig,
    dir: DataDir,
    /// The journal, if there is one.
    embedded: Option<Arc<Embedded>>,
    /// Lives as long as the layers: dropping it would signal the end of the process.
    drain: DrainTrigger,
    draining: DrainSignal,
    upkeep: Vec<JoinHandle<()>>,
}

/// Checked configuration, for [`Layers::commit`].
#[derive(Debug)]
pub struct NextLayers {
    keys: Vec<[u8; 32]>,
    limits: Prepared,
}

impl Layers {
    /// Starts the node and all layers. Nobody is admitted before the store has replied.
    ///
    /// If an earlier process on the data folder ended without returning its leases, this returns at
    /// once and active visitors pass. Otherwise it waits for the store, for half a minute at most.
    ///
    /// # Errors
    ///
    /// [`OpenError`] if the data folder or the store cannot be used, or a room or a limit cannot be
    /// kept.
    pub async fn open(config: &Config) -> Result<Self, OpenError> {
        WaitingRoomLayer::check(config)?;
        let dir = DataDir::open(&config.server.data_dir)?;
        let clock = Arc::new(RoomClock::start(dir.clock()));
        let opened = OpenedStores::of(config, &dir, Arc::clone(&clock) as Arc<dyn Clock>).await?;
        Self::on(config, dir, clock, opened).await
    }

    /// Starts the layers on the caller's stores and clock.
    ///
    /// # Errors
    ///
    /// As [`Layers::open`].
    pub async fn on<C: NodeClock>(
        config: &Config,
        dir: DataDir,
        clock: Arc<C>,
        opened: OpenedStores,
    ) -> Result<Self, OpenError> {
        let is_shared = opened.stores.are_shared();
        let settings = settings(config, &opened, &dir);
        let overrides = (opened.stores.clone(), opened.deployment.deployment_id);
        let clock = clock as Arc<dyn NodeClock>;
        let node = Node::start(settings, opened.stores, Arc::clone(&clock))?;
        if is_shared {
            join_ledgers(&node).await?;
        }
        let (drain, draining) = drain();
        let rooms = WaitingRoomLayer::new(Arc::clone(&node), config, draining.clone())?;
        let api_rooms = api_rooms(
            (&node, &rooms, &dir),
            config,
            (&overrides.0, opened.deployment),
            &clock,
        );
        api_rooms.learn().await;
        if api_rooms.are_known() {
            node.forget_predecessors();
        }
        let around = Around {
            clock: Arc::clone(&clock),
            rooms: rooms.clone(),
        };
        let limiter = Limiter::new(&[], opened.counts, around)?;
        limiter.commit(
            limiter
                .prepare(&config.limits)?
                .with_tokens(tokens(config)?),
        );
        let limits = LiveLimits::new(
            Arc::clone(&limiter),
            &config.limits,
            (&overrides.0, overrides.1),
            Arc::clone(&clock),
        );
        limits.learn().await;
        let mut upkeep = vec![
            tokio::spawn(Arc::clone(&limiter).sweep()),
            tokio::spawn(Arc::clone(&limits).watch()),
            tokio::spawn(Arc::clone(&api_rooms).watch()),
        ];
        upkeep.extend(opened.keeper);
        Ok(Self {
            node,
            rooms,
            limiter,
            limits,
            api_rooms,
            clock,
            server: config.server.clone(),
            dir,
            embedded: opened.embedded,
            drain,
            draining,
            upkeep,
        })
    }

    /// Returns the layer that finds out the client; it belongs outside the others.
    #[must_use]
    pub fn clients(&self) -> ClientLayer {
        ClientLayer::new(&self.server)
    }

    /// Returns the layer of `[[limit]]`.
    #[must_use]
    pub fn rate_limits(&self) -> RateLimitLayer {
        RateLimitLayer::new(Arc::clone(&self.limiter))
    }

    /// Returns the layer of `[[room]]`.
    #[must_use]
    pub fn waiting_rooms(&self) -> WaitingRoomLayer {
        self.rooms.clone()
    }

    /// Returns the decisions of all layers that need no future.
    #[must_use]
    pub fn at_once(&self) -> Decider {
        Decider::new(self.rate_limits(), self.waiting_rooms())
    }

    /// Returns the node that runs the rooms.
    #[must_use]
    pub const fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Returns the limiter, which counts requests.
    #[must_use]
    pub const fn limiter(&self) -> &Arc<Limiter> {
        &self.limiter
    }

    /// Returns the limits, with the overrides of single clients.
    #[must_use]
    pub const fn limits(&self) -> &Arc<LiveLimits> {
        &self.limits
    }

    /// Returns the rooms that are made over the API.
    #[must_use]
    pub const fn api_rooms(&self) -> &Arc<LiveApiRooms> {
        &self.api_rooms
    }

    /// Returns the clock of rooms and limits.
    #[must_use]
    pub const fn clock(&self) -> &Arc<dyn NodeClock> {
        &self.clock
    }

    /// Returns the data folder.
    #[must_use]
    pub const fn dir(&self) -> &DataDir {
        &self.dir
    }

    /// Returns the journal, if that is the store.
    #[must_use]
    pub const fn journal(&self) -> Option<&Arc<Embedded>> {
        self.embedded.as_ref()
    }

    /// Returns the trigger that ends long responses, such as the event streams of waiting pages.
    #[must_use]
    pub const fn drain(&self) -> &DrainTrigger {
        &self.drain
    }

    /// Returns the signal that [`Layers::drain`] triggers.
    #[must_use]
    pub fn draining(&self) -> DrainSignal {
        self.draining.clone()
    }

    /// Prepares a changed configuration: finds all errors, and changes nothing yet.
    ///
    /// # Errors
    ///
    /// [`OpenError`] if a room or a limit cannot be kept, or keys of tickets would have to be
    /// mixed.
    pub fn prepare(&self, config: &Config) -> Result<NextLayers, OpenError> {
        WaitingRoomLayer::check(config)?;
        if config.server.ticket_keys.is_empty() != self.server.ticket_keys.is_empty() {
            return Err(OpenError::TicketKeys);
        }
        self.rooms.plan(&self.api_rooms.beside(config))?;
        Ok(NextLayers {
            keys: ticket_keys(config, &self.dir.ticket_keys()?),
            limits: self
                .limits
                .prepare(&config.limits)?
                .with_tokens(tokens(config)?),
        })
    }

    /// Applies a changed configuration. The counts of each limit stay.
    ///
    /// # Errors
    ///
    /// [`OpenError::Reload`] if a room cannot be served; the limits and rooms stay as they are
    /// then.
    pub fn commit(&self, config: &Config, next: NextLayers) -> Result<(), OpenError> {
        self.api_rooms
            .replace_file(config)
            .map_err(OpenError::Reload)?;
        self.limits.commit(next.limits);
        self.node.set_ticket_keys(&next.keys);
        Ok(())
    }

    /// Returns the leases of this node and releases the store. A store of limits that spreads
    /// counts continues to do so until [`Layers::finish`].
    pub async fn close(&self) {
        for task in &self.upkeep {
            task.abort();
        }
        self.api_rooms.leave().await;
        // First: it takes a moment, and a successor waits for it.
        self.limiter.release_stores().await;
        self.node.stop().await;
    }

    /// Sends the last counts to other nodes, and to a successor on this machine if there is one.
    /// Call it after [`Layers::close`], when the last request is served.
    pub async fn finish(&self, has_successor: bool) {
        self.limiter.finish_stores(has_successor).await;
    }
}

impl fmt::Debug for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layers({:?})", self.limiter)
    }
}

impl Drop for Layers {
    fn drop(&mut self) {
        for task in &self.upkeep {
            task.abort();
        }
    }
}

/// Waits until the ledgers know this process, or a crashed one on its data folder. Before that a
/// ticket proves nothing: the session may have been ended, and its seat given to another visitor.
async fn join_ledgers(node: &Node) -> Result<(), OpenError> {
    let has_joined = tokio::time::timeout(WARN_AFTER, node.joined()).await;
    if has_joined.is_ok() {
        return Ok(());
    }
    tracing::warn!(
        "no store has replied yet, and no earlier process left its leases in this data folder: \
         nobody is admitted before the store replies; check [store]"
    );
    let has_joined = tokio::time::timeout(FIRST_CONTACT, node.joined()).await;
    has_joined.map_err(|_| OpenError::NotJoined)
}

/// Returns the rooms of the API for a node.
fn api_rooms(
    (node, rooms, dir): (&Arc<Node>, &WaitingRoomLayer, &DataDir),
    config: &Config,
    (stores, deployment): (&Stores, Deployment),
    clock: &Arc<dyn NodeClock>,
) -> Arc<LiveApiRooms> {
    let host = NodeRooms {
        node: Arc::clone(node),
        rooms: rooms.clone(),
        dir: dir.clone(),
    };
    LiveApiRooms::new(
        Arc::new(host),
        config,
        (stores, deployment.deployment_id),
        Arc::clone(clock),
        CHECKS,
    )
}

fn settings(config: &Config, opened: &OpenedStores, dir: &DataDir) -> NodeSettings {
    let folder = opened.stores.are_shared().then(|| dir.path().to_owned());
    NodeSettings {
        folder,
        ticket_keys: ticket_keys(config, &opened.ticket_keys),
        deployment_id: opened.deployment.deployment_id,
        lottery_key: opened.deployment.lottery_key,
        data_center: config.server.data_center.clone(),
        history_bytes: config.server.history_bytes,
        rooms: config.rooms.clone(),
    }
}

/// Returns the keys of the configuration, or the generated ones if it has none.
fn ticket_keys(config: &Config, generated: &[[u8; 32]]) -> Vec<[u8; 32]> {
    if config.server.ticket_keys.is_empty() {
        generated.to_vec()
    } else {
        config.server.ticket_keys.clone()
    }
}

/// Returns the signed tokens that identify clients of limits, if there are any.
fn tokens(config: &Config) -> Result<Option<Tokens>, TokensError> {
    let jwt = config.jwt.as_ref();
    jwt.map(|jwt| Tokens::new(jwt, &config.limits)).transpose()
}
