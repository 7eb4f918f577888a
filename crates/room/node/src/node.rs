//! Node: its rooms, their loops, reload and shutdown.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::held_commands_file::HeldFile;
use crate::history::{HistoryBuffer, HistoryStats};
use crate::processes::ProcessFile;
use anteroom_config::{RoomConfig, RoomId, RoomName};
use anteroom_room::hash::LotteryKey;
use anteroom_room::id::{DataCenterId, DeploymentId, NodeId};
use anteroom_room::room::RoomIdentity;
use anteroom_room::time::Timestamp;
use anteroom_store::{Store, register_data_center};
use anteroom_ticket::KeyRing;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, timeout};

use crate::clock::{NodeClock, SLEW_PERIOD};
use crate::clock_watch::ClockWatch;
use crate::random::{self, Random};
use crate::room::{RoomHandle, Shared};
use crate::stores::Stores;

/// Most attempts at registering the data center's name. Without it, operators see a number.
const REGISTRATIONS_MAX: u32 = 5;
const REGISTRATION_PAUSE: Duration = Duration::from_secs(2);
/// Longest time for closing a store: that of a last write.
const CLOSE_TIME_OUT: Duration = Duration::from_secs(2);
/// Interval at which a process looks for held stops of another one on its data folder.
const HELD_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which a node looks for minutes that have ended, and retries a write that failed.
const HISTORY_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Settings of a node.
pub struct NodeSettings {
    /// Ticket keys, newest first; at least one.
    pub ticket_keys: Vec<[u8; 32]>,
    /// Id of the deployment.
    pub deployment_id: DeploymentId,
    /// Secret key of the deployment's lotteries.
    pub lottery_key: LotteryKey,
    /// Name of the data center.
    pub data_center: String,
    /// Most bytes of the history of rooms in the store.
    pub history_bytes: u64,
    /// Rooms of the node.
    pub rooms: Vec<RoomConfig>,
    /// Data folder, in which processes register for their successors; `None` if no other process
    /// serves visitors.
    pub folder: Option<PathBuf>,
}

/// Error of starting a node.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The system has no random bytes.
    #[error("cannot draw random bytes")]
    Random(#[from] getrandom::Error),
    /// The data folder cannot be used.
    #[error("cannot register this process in {}", folder.display())]
    Folder {
        /// Data folder.
        folder: PathBuf,
        /// Underlying error.
        source: io::Error,
    },
}

/// Running node.
pub struct Node {
    shared: Arc<Shared>,
    id: NodeId,
    lottery_key: LotteryKey,
    rooms: ArcSwap<BTreeMap<RoomId, Arc<RoomHandle>>>,
    tasks: Mutex<BTreeMap<RoomId, RoomTask>>,
    slew_task: JoinHandle<()>,
    /// Background tasks.
    background: Mutex<Vec<JoinHandle<()>>>,
    incarnations: AtomicU64,
    is_stopping: AtomicBool,
    /// Whether [`Node::forget_predecessors`] was called.
    is_forgetting: AtomicBool,
    /// Loops of removed rooms that still return their leases.
    closing: Mutex<Vec<JoinHandle<()>>>,
}

struct RoomTask {
    stop: watch::Sender<bool>,
    done: JoinHandle<()>,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Node({:016x})", self.id.0)
    }
}

impl Node {
    /// Starts all rooms. Each syncs at once, and admits nobody before its first reply.
    ///
    /// # Errors
    ///
    /// [`StartError`] if the system has no random bytes, or the data folder cannot be used.
    pub fn start(
        settings: NodeSettings,
        stores: Stores,
        clock: Arc<dyn NodeClock>,
    ) -> Result<Arc<Self>, StartError> {
        let id = random::node_id()?;
        let register = |folder: PathBuf| {
            let registered = ProcessFile::register(&folder, id);
            registered.map_err(|source| StartError::Folder { folder, source })
        };
        let folder = settings.folder.clone();
        let shared = Arc::new(Shared {
            process: settings.folder.clone().map(register).transpose()?,
            folder: settings.folder,
            clock: Arc::clone(&clock),
            stores,
            ring: ArcSwap::from_pointee(KeyRing::new(&settings.ticket_keys)),
            deployment_id: settings.deployment_id,
            random: Random::new()?,
            data_center: settings.data_center,
            clocks: Arc::default(),
            history: HistoryBuffer::new(settings.history_bytes),
        });
        let name = shared.data_center.clone();
        let common = shared.stores.common().cloned();
        let registering = common.map(|store| tokio::spawn(register_name(store, name)));
        let watching_clocks: Vec<_> = shared.watch_clocks().collect();
        let node = Arc::new(Self {
            shared,
            id,
            lottery_key: settings.lottery_key,
            rooms: ArcSwap::default(),
            tasks: Mutex::default(),
            slew_task: tokio::spawn(slew(clock)),
            background: Mutex::new(registering.into_iter().chain(watching_clocks).collect()),
            incarnations: AtomicU64::new(0),
            is_stopping: AtomicBool::new(false),
            is_forgetting: AtomicBool::new(false),
            closing: Mutex::default(),
        });
        node.reload(settings.rooms);
        let writing = write_history(Arc::downgrade(&node));
        node.background.lock().push(tokio::spawn(writing));
        if let Some(folder) = folder {
            let watching = watch_held(Arc::downgrade(&node), folder);
            node.background.lock().push(tokio::spawn(watching));
        }
        Ok(node)
    }

    /// Returns the room of this name.
    #[must_use]
    pub fn room(&self, name: &RoomName) -> Option<Arc<RoomHandle>> {
        let rooms = self.rooms.load();
        rooms.values().find(|room| room.name() == *name).cloned()
    }

    /// Returns the room of this id.
    #[must_use]
    pub fn room_of_id(&self, id: &RoomId) -> Option<Arc<RoomHandle>> {
        self.rooms.load().get(id).cloned()
    }

    /// Returns all rooms, sorted by name.
    #[must_use]
    pub fn rooms(&self) -> Vec<Arc<RoomHandle>> {
        let mut rooms: Vec<_> = self.rooms.load().values().cloned().collect();
        rooms.sort_by_cached_key(|room| room.name());
        rooms
    }

    /// Returns the id of this process, under which other nodes know it.
    #[must_use]
    pub fn process(&self) -> NodeId {
        self.id
    }

    /// Returns a name of this process for operators: the name of its machine, and its id.
    #[must_use]
    pub fn name(&self) -> String {
        let system = rustix::system::uname();
        let machine = system.nodename().to_string_lossy();
        format!("{machine}/{:016x}", self.id.0)
    }

    /// Returns the clocks that are compared with that of the node.
    #[must_use]
    pub fn clock_watch(&self) -> &ClockWatch {
        &self.shared.clocks
    }

    /// Returns the name of the data center of this node.
    #[must_use]
    pub fn data_center(&self) -> &str {
        &self.shared.data_center
    }

    /// Returns the clock of the node.
    #[must_use]
    pub fn clock(&self) -> &dyn NodeClock {
        &*self.shared.clock
    }

    /// Applies a changed list of rooms. Changed limits take effect at once, and no visitor loses
    /// its position. A removed room returns its leases. A room with another id or cookie is another
    /// room to its visitors.
    pub fn reload(&self, configs: Vec<RoomConfig>) {
        let present = self.rooms.load_full();
        let mut next = BTreeMap::new();
        let mut tasks = self.tasks.lock();
        if self.is_stopping() {
            // Nobody would end a room that opens now.
            return;
        }
        for config in configs {
            let id = config.id.clone();
            let handle = match present.get(&id) {
                Some(handle) => {
                    handle.handle_config(config);
                    Arc::clone(handle)
                }
                None => self.open_room(config, &mut tasks),
            };
            next.insert(id, handle);
        }
        let removed: Vec<_> = tasks
            .keys()
            .filter(|id| !next.contains_key(*id))
            .cloned()
            .collect();
        for (id, task) in removed.into_iter().filter_map(|id| tasks.remove_entry(&id)) {
            let name = present.get(&id).map(|room| room.name().to_string());
            tracing::warn!(
                room = name,
                "room removed: its visitors start anew elsewhere"
            );
            task.stop.send_replace(true);
            self.closing.lock().push(task.done);
        }
        self.closing.lock().retain(|task| !task.is_finished());
        self.rooms.store(Arc::new(next));
    }

    /// Lets the ledgers of deleted rooms end one session after their last sync. Call it before the
    /// rooms are removed: a room that is still served ends its ledger when it is.
    pub fn end_ledgers(&self, deleted: &[RoomId]) {
        let present = self.rooms.load();
        let (served, others): (Vec<&RoomId>, Vec<&RoomId>) =
            deleted.iter().partition(|id| present.contains_key(*id));
        for room in served.into_iter().filter_map(|id| present.get(id)) {
            room.end_ledgers_when_removed();
        }
        let here = data_center_id(&self.shared.data_center);
        let ledgers = others.into_iter().map(|id| {
            let (stores, deployment) = (&self.shared.stores, self.shared.deployment_id);
            stores.ledgers(id.as_str(), deployment, here)
        });
        let ledgers: Vec<_> = ledgers.collect();
        if !ledgers.is_empty() {
            let ending = async move {
                for ledgers in ledgers {
                    ledgers.end().await;
                }
            };
            self.background.lock().push(tokio::spawn(ending));
        }
    }

    /// Replaces the ticket keys: newest first, at least one.
    pub fn set_ticket_keys(&self, keys: &[[u8; 32]]) {
        self.shared.ring.store(Arc::new(KeyRing::new(keys)));
    }

    /// Waits until the ledgers of all rooms know this process or its predecessor. Tickets are not
    /// trusted before: their sessions may have been ended.
    pub async fn joined(&self) {
        for room in self.rooms() {
            room.joined().await;
        }
    }

    /// Deletes the files of ended processes as soon as the ledgers of all present rooms know that
    /// these have ended. Call it when all rooms are there; later calls do nothing.
    pub fn forget_predecessors(&self) {
        if self.is_forgetting.swap(true, Ordering::Relaxed) {
            return;
        }
        let (shared, rooms) = (Arc::clone(&self.shared), self.rooms());
        let forgetting = async move {
            for room in rooms {
                room.acknowledged().await;
            }
            if let Some(process) = &shared.process {
                process.forget_predecessors();
            }
        };
        self.background.lock().push(tokio::spawn(forgetting));
    }

    /// Whether every room has a live lease.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        let rooms = self.rooms.load();
        rooms.values().all(|room| room.stats().has_live_lease)
    }

    /// Whether [`Node::stop`] was called: no new visitor should be sent here.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Returns all leases and closes the store. Active visitors still pass afterwards.
    pub async fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.slew_task.abort();
        for task in self.background.lock().drain(..) {
            task.abort();
        }
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for task in tasks.values() {
            task.stop.send_replace(true);
        }
        let closing = std::mem::take(&mut *self.closing.lock());
        for done in tasks.into_values().map(|task| task.done).chain(closing) {
            // A panic of a loop is logged already.
            let _ = done.await;
        }
        // All events of this minute have happened.
        let ends_at = self.shared.clock.now().minute().next().starts_at();
        let _ = timeout(CLOSE_TIME_OUT, self.collect_history(ends_at)).await;
        // A disk that hangs must not keep the process from draining.
        if timeout(CLOSE_TIME_OUT, self.shared.stores.close())
            .await
            .is_err()
        {
            tracing::error!("the store did not close in time: shutting down without it");
        }
    }

    /// Returns counts of the rows of history.
    #[must_use]
    pub fn history_stats(&self) -> HistoryStats {
        self.shared.history.stats()
    }

    /// Collects the rows of the minutes that have ended by now, and writes them together with those
    /// that still wait. The node does so by itself, once a second.
    pub async fn write_history(&self) {
        self.collect_history(self.shared.clock.now()).await;
    }

    async fn collect_history(&self, now: Timestamp) {
        let rooms = self.rooms.load_full();
        for room in rooms.values() {
            room.collect_history(self.id.0, now);
        }
        let store = self.shared.stores.of_history();
        let count = u64::try_from(rooms.len()).unwrap_or(u64::MAX);
        self.shared.history.write(&**store, count).await;
    }

    /// Draws the id of a room's next incarnation: a room that is closed and opened again numbers
    /// its requests from the start.
    fn next_incarnation(&self) -> NodeId {
        let incarnation = self.incarnations.fetch_add(1, Ordering::Relaxed);
        NodeId(self.id.0.wrapping_add(incarnation.wrapping_mul(2)))
    }

    fn open_room(
        &self,
        config: RoomConfig,
        tasks: &mut BTreeMap<RoomId, RoomTask>,
    ) -> Arc<RoomHandle> {
        let identity = RoomIdentity {
            node: self.next_incarnation(),
            process: self.id,
            is_alone: !self.shared.stores.are_shared(),
            data_center: data_center_id(&self.shared.data_center),
            lottery_key: self.lottery_key,
        };
        let id = config.id.clone();
        let handle = Arc::new(RoomHandle::new(Arc::clone(&self.shared), identity, config));
        let (stop, stopped) = watch::channel(false);
        let watching = Arc::clone(&handle).watch_overrides(stopped.clone());
        let writing = Arc::clone(&handle).write_held(stopped.clone());
        let scheduled = Arc::clone(&handle).watch_events(stopped.clone());
        let latching = Arc::clone(&handle).write_phases(stopped.clone());
        let running = Arc::clone(&handle).run(stopped);
        let ending = Arc::clone(&handle);
        let done = tokio::spawn(async move {
            tokio::join!(running, watching, writing, scheduled, latching);
            ending.end_ledgers_if_deleted().await;
        });
        tasks.insert(id, RoomTask { stop, done });
        handle
    }
}

/// Writes the name of this data center to the store, as soon as that is available.
async fn register_name(store: Arc<dyn Store>, name: String) {
    let id = data_center_id(&name);
    for _ in 0..REGISTRATIONS_MAX {
        if register_data_center(&*store, id, &name).await.is_ok() {
            return;
        }
        tokio::time::sleep(REGISTRATION_PAUSE).await;
    }
}

/// Makes rooms read their held stops when another process has written to the data folder: while one
/// replaces the other, operators reach either.
async fn watch_held(node: Weak<Node>, data_dir: PathBuf) {
    let data_dir: Arc<Path> = data_dir.into();
    let mut known = None;
    let mut ticks = tokio::time::interval(HELD_CHECK_INTERVAL);
    loop {
        ticks.tick().await;
        let folder = Arc::clone(&data_dir);
        let checking = tokio::task::spawn_blocking(move || HeldFile::changed_at(&folder));
        let Ok(changed_at) = checking.await else {
            return;
        };
        let Some(node) = node.upgrade() else { return };
        if changed_at != known {
            known = changed_at;
            for room in node.rooms() {
                room.check_held();
            }
        }
    }
}

/// Writes the rows of finished minutes as long as the node exists.
async fn write_history(node: Weak<Node>) {
    let mut ticks = tokio::time::interval(HISTORY_CHECK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(node) = node.upgrade() else { return };
        node.write_history().await;
    }
}

async fn slew(clock: Arc<dyn NodeClock>) {
    let mut ticks = tokio::time::interval(Duration::from_millis(SLEW_PERIOD.0));
    loop {
        ticks.tick().await;
        let clock = Arc::clone(&clock);
        // A slew may write a file, and a disk may hang.
        let _ = tokio::task::spawn_blocking(move || clock.slew()).await;
    }
}

/// Returns the id of a data center: a 32-bit hash of its name.
fn data_center_id(name: &str) -> DataCenterId {
    // FNV-1a: no secret is involved, and names are few.
    let digest = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    DataCenterId(digest)
}
