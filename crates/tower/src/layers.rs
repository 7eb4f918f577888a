//! A node with its rooms and its limits.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anteroom_admin::overrides::{LiveLimits, Prepared};
use anteroom_config::{Config, ServerConfig};
use anteroom_embedded::{DataDir, Embedded};
use anteroom_limit_http::{Limiter, RateLimitLayer, Tokens, TokensError};
use anteroom_node::{Node, NodeClock, NodeSettings, RoomClock};
use anteroom_proxy::downstream::drain::{DrainSignal, DrainTrigger, drain};
use anteroom_room_http::layer::{NextRooms, WaitingRoomLayer};
use anteroom_store::Clock;
use tokio::task::JoinHandle;

use crate::around::Around;
use crate::clients::ClientLayer;
use crate::open_error::OpenError;
use crate::stores::{FIRST_CONTACT, Opened};

/// A store that has not answered by then is worth a line in the log.
const COMPLAIN_AFTER: Duration = Duration::from_secs(1);

/// What stands before a service: rooms, limits, and the node that runs them.
///
/// Dropping it ends the limits' upkeep; [`Layers::close`] also gives back what was lent.
pub struct Layers {
    node: Arc<Node>,
    rooms: WaitingRoomLayer,
    meter: Arc<Limiter>,
    limits: Arc<LiveLimits>,
    clock: Arc<dyn NodeClock>,
    server: ServerConfig,
    dir: DataDir,
    /// The journal, if there is one.
    embedded: Option<Arc<Embedded>>,
    /// Lives as long as the layers: whoever it has gone from is told that the process ends.
    drain: DrainTrigger,
    draining: DrainSignal,
    upkeep: Vec<JoinHandle<()>>,
}

/// A changed configuration that nothing is wrong with; to be let hold, or thrown away.
#[derive(Debug)]
pub struct NextLayers {
    keys: Vec<[u8; 32]>,
    rooms: NextRooms,
    limits: Prepared,
}

impl Layers {
    /// Starts everything that stands before a service. Nobody is admitted before the store has
    /// answered. Visitors inside pass at once if an earlier process on the data folder ended
    /// without a goodbye; otherwise this waits for the store, for half a minute at most.
    ///
    /// # Errors
    ///
    /// [`OpenError`] if the data folder or the store cannot be used, or a room or a limit cannot be
    /// kept.
    pub async fn open(config: &Config) -> Result<Self, OpenError> {
        WaitingRoomLayer::check(config)?;
        let dir = DataDir::open(&config.server.data_dir)?;
        let clock = Arc::new(RoomClock::start(dir.clock()));
        let opened = Opened::of(config, &dir, Arc::clone(&clock) as Arc<dyn Clock>).await?;
        Self::on(config, dir, clock, opened).await
    }

    /// The same on stores and a clock of the caller's.
    ///
    /// # Errors
    ///
    /// As [`Layers::open`].
    pub async fn on<C: NodeClock>(
        config: &Config,
        dir: DataDir,
        clock: Arc<C>,
        opened: Opened,
    ) -> Result<Self, OpenError> {
        let is_shared = opened.stores.are_shared();
        let settings = settings(config, &opened, &dir);
        let said = (opened.stores.clone(), opened.deployment.birth);
        let clock = clock as Arc<dyn NodeClock>;
        let node = Node::start(settings, opened.stores, Arc::clone(&clock))?;
        if is_shared {
            join_ledgers(&node).await?;
        }
        let (drain, draining) = drain();
        let rooms = WaitingRoomLayer::new(Arc::clone(&node), config, draining.clone())?;
        let around = Around {
            clock: Arc::clone(&clock),
            rooms: rooms.clone(),
        };
        let meter = Limiter::new(&[], opened.counts, around)?;
        meter.commit(meter.prepare(&config.limits)?.with_tokens(tokens(config)?));
        let limits = LiveLimits::new(
            Arc::clone(&meter),
            &config.limits,
            (&said.0, said.1),
            Arc::clone(&clock),
        );
        limits.learn().await;
        let mut upkeep = vec![
            tokio::spawn(Arc::clone(&meter).sweep()),
            tokio::spawn(Arc::clone(&limits).watch()),
        ];
        upkeep.extend(opened.keeper);
        Ok(Self {
            node,
            rooms,
            meter,
            limits,
            clock,
            server: config.server.clone(),
            dir,
            embedded: opened.embedded,
            drain,
            draining,
            upkeep,
        })
    }

    /// The layer that finds out who asks; outside of the others.
    #[must_use]
    pub fn clients(&self) -> ClientLayer {
        ClientLayer::new(&self.server)
    }

    /// The layer of `[[limit]]`.
    #[must_use]
    pub fn rate_limits(&self) -> RateLimitLayer {
        RateLimitLayer::new(Arc::clone(&self.meter))
    }

    /// The layer of `[[room]]`.
    #[must_use]
    pub fn waiting_rooms(&self) -> WaitingRoomLayer {
        self.rooms.clone()
    }

    /// The node that runs the rooms.
    #[must_use]
    pub const fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// What counts calls.
    #[must_use]
    pub const fn meter(&self) -> &Arc<Limiter> {
        &self.meter
    }

    /// The limits, with what operators say about single clients.
    #[must_use]
    pub const fn limits(&self) -> &Arc<LiveLimits> {
        &self.limits
    }

    /// The clock of rooms and limits.
    #[must_use]
    pub const fn clock(&self) -> &Arc<dyn NodeClock> {
        &self.clock
    }

    /// The data folder.
    #[must_use]
    pub const fn dir(&self) -> &DataDir {
        &self.dir
    }

    /// The journal, if that is the store.
    #[must_use]
    pub const fn journal(&self) -> Option<&Arc<Embedded>> {
        self.embedded.as_ref()
    }

    /// Tells all that goes on, such as what waiting pages listen to, that the process ends.
    #[must_use]
    pub const fn drain(&self) -> &DrainTrigger {
        &self.drain
    }

    /// What [`Layers::drain`] tells.
    #[must_use]
    pub fn draining(&self) -> DrainSignal {
        self.draining.clone()
    }

    /// Reads and finds out everything about a changed configuration that may go wrong; nothing has
    /// changed yet.
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
        Ok(NextLayers {
            keys: ticket_keys(config, &self.dir.ticket_keys()?),
            rooms: self.rooms.plan(config)?,
            limits: self
                .limits
                .prepare(&config.limits)?
                .with_tokens(tokens(config)?),
        })
    }

    /// Lets a changed configuration hold. What each limit has counted stays.
    ///
    /// # Errors
    ///
    /// [`OpenError::Rooms`] if the node does not run a room; the limits and rooms stay as they are
    /// then.
    pub fn commit(&self, config: &Config, next: NextLayers) -> Result<(), OpenError> {
        self.node.reload(config.rooms.clone());
        self.rooms.commit(next.rooms)?;
        self.limits.commit(next.limits);
        self.node.set_ticket_keys(&next.keys);
        Ok(())
    }

    /// Gives back what was lent to this node, and lets go of the store. Calls that are counted by
    /// nodes that tell each other are still told until [`Layers::finish`].
    pub async fn close(&self) {
        for task in &self.upkeep {
            task.abort();
        }
        // First, for it takes a moment and a successor waits for it.
        self.meter.release_stores().await;
        self.node.stop().await;
    }

    /// Nothing more is served: tells other nodes, and a successor on this machine if there is one,
    /// the last calls. To be called after [`Layers::close`].
    pub async fn finish(&self, has_successor: bool) {
        self.meter.finish_stores(has_successor).await;
    }
}

impl fmt::Debug for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layers({:?})", self.meter)
    }
}

impl Drop for Layers {
    fn drop(&mut self) {
        for task in &self.upkeep {
            task.abort();
        }
    }
}

/// Waits until the ledgers know of this process, or of a dead one on its data folder. Before that a
/// ticket says nothing here: its session may have been ended, and its seat be somebody else's.
async fn join_ledgers(node: &Node) -> Result<(), OpenError> {
    let has_joined = tokio::time::timeout(COMPLAIN_AFTER, node.joined()).await;
    if has_joined.is_ok() {
        return Ok(());
    }
    tracing::warn!(
        "no store has answered yet, and no process that ended without a goodbye ran on this data \
         folder before: nobody is let through before the store answers; check [store]"
    );
    let has_joined = tokio::time::timeout(FIRST_CONTACT, node.joined()).await;
    has_joined.map_err(|_| OpenError::NotJoined)
}

fn settings(config: &Config, opened: &Opened, dir: &DataDir) -> NodeSettings {
    let folder = opened.stores.are_shared().then(|| dir.path().to_owned());
    NodeSettings {
        folder,
        ticket_keys: ticket_keys(config, &opened.ticket_keys),
        birth: opened.deployment.birth,
        lottery_key: opened.deployment.lottery_key,
        data_center: config.server.data_center.clone(),
        rooms: config.rooms.clone(),
    }
}

/// The configuration's keys, or else those that were drawn.
fn ticket_keys(config: &Config, drawn: &[[u8; 32]]) -> Vec<[u8; 32]> {
    if config.server.ticket_keys.is_empty() {
        drawn.to_vec()
    } else {
        config.server.ticket_keys.clone()
    }
}

/// The signed tokens by which limits may know clients.
fn tokens(config: &Config) -> Result<Option<Tokens>, TokensError> {
    let jwt = config.jwt.as_ref();
    jwt.map(|jwt| Tokens::new(jwt, &config.limits)).transpose()
}
