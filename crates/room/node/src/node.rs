//! A node: its rooms, their loops, reload and shutdown.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::held_file::HeldFile;
use crate::processes::ProcessFile;
use anteroom_config::{RoomConfig, RoomName};
use anteroom_room::hash::LotteryKey;
use anteroom_room::id::{DataCenterId, DeploymentId, NodeId};
use anteroom_room::room::RoomIdentity;
use anteroom_store::{Store, introduce};
use anteroom_ticket::KeyRing;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::clock::{NodeClock, SLEW_PERIOD};
use crate::random::{self, Random};
use crate::room::{RoomHandle, Shared};
use crate::stores::Stores;

/// Names are for people: after so many tries they get along with a number.
const INTRODUCTIONS_MAX: u32 = 5;
const BETWEEN_INTRODUCTIONS: Duration = Duration::from_secs(2);
/// How long a store may take to close: a last write.
const CLOSE_TIME_OUT: Duration = Duration::from_secs(2);
/// How soon a process obeys what another one on its data folder was told.
const LOOK_AT_HELD_EVERY: Duration = Duration::from_secs(1);

/// What a node needs to start.
pub struct NodeSettings {
    /// Keys of tickets, newest first; at least one.
    pub ticket_keys: Vec<[u8; 32]>,
    /// The deployment's birth.
    pub birth: DeploymentId,
    /// The deployment's secret for lotteries.
    pub lottery_key: LotteryKey,
    /// Name of the data center.
    pub data_center: String,
    /// Its rooms.
    pub rooms: Vec<RoomConfig>,
    /// The data folder, in which processes leave their names for their successors; `None` where no
    /// other process meets visitors.
    pub folder: Option<PathBuf>,
}

/// Why a node could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The system has no random bytes to offer.
    #[error("cannot draw random bytes")]
    Random(#[from] getrandom::Error),
    /// The data folder cannot be used.
    #[error("cannot leave the name of this process in {}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// A running node.
pub struct Node {
    shared: Arc<Shared>,
    id: NodeId,
    lottery_key: LotteryKey,
    rooms: ArcSwap<BTreeMap<RoomName, Arc<RoomHandle>>>,
    tasks: Mutex<BTreeMap<RoomName, RoomTask>>,
    slewing: JoinHandle<()>,
    /// What is done once, beside everything else.
    chores: Mutex<Vec<JoinHandle<()>>>,
    lives: AtomicU64,
    is_stopping: AtomicBool,
    /// Loops of rooms that are gone, as long as they say goodbye.
    leaving: Mutex<Vec<JoinHandle<()>>>,
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
    /// Starts all rooms. Each syncs at once; until its first answer it admits nobody.
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
        let enter = |folder: PathBuf| {
            let entered = ProcessFile::enter(&folder, id);
            entered.map_err(|source| StartError::Folder { folder, source })
        };
        let folder = settings.folder.clone();
        let shared = Arc::new(Shared {
            process: settings.folder.clone().map(enter).transpose()?,
            folder: settings.folder,
            clock: Arc::clone(&clock),
            stores,
            ring: ArcSwap::from_pointee(KeyRing::new(&settings.ticket_keys)),
            birth: settings.birth,
            random: Random::new()?,
            data_center: settings.data_center,
        });
        let name = shared.data_center.clone();
        let common = shared.stores.common().cloned();
        let introducing = common.map(|store| tokio::spawn(introduce_us(store, name)));
        let node = Arc::new(Self {
            shared,
            id,
            lottery_key: settings.lottery_key,
            rooms: ArcSwap::default(),
            tasks: Mutex::default(),
            slewing: tokio::spawn(slew(clock)),
            chores: Mutex::new(introducing.into_iter().collect()),
            lives: AtomicU64::new(0),
            is_stopping: AtomicBool::new(false),
            leaving: Mutex::default(),
        });
        node.reload(settings.rooms);
        let forgetting = Self::forget_predecessors(Arc::clone(&node.shared), node.rooms());
        node.chores.lock().push(tokio::spawn(forgetting));
        if let Some(folder) = folder {
            let watching = watch_held(Arc::downgrade(&node), folder);
            node.chores.lock().push(tokio::spawn(watching));
        }
        Ok(node)
    }

    /// The room of this name.
    #[must_use]
    pub fn room(&self, name: &RoomName) -> Option<Arc<RoomHandle>> {
        self.rooms.load().get(name).cloned()
    }

    /// All rooms, by name.
    #[must_use]
    pub fn rooms(&self) -> Vec<Arc<RoomHandle>> {
        self.rooms.load().values().cloned().collect()
    }

    /// The node's clock.
    #[must_use]
    pub fn clock(&self) -> &dyn NodeClock {
        &*self.shared.clock
    }

    /// Applies a changed list of rooms: changed limits act at once, nobody loses a place. A room
    /// that is gone gives back what it was lent; one that is renamed, or whose cookie is, is
    /// another room to its visitors.
    pub fn reload(&self, configs: Vec<RoomConfig>) {
        let present = self.rooms.load_full();
        let mut next = BTreeMap::new();
        let mut tasks = self.tasks.lock();
        for config in configs {
            let name = config.name.clone();
            let handle = match present.get(&name) {
                Some(handle) => {
                    handle.handle_config(config);
                    Arc::clone(handle)
                }
                None => self.open_room(config, &mut tasks),
            };
            next.insert(name, handle);
        }
        let gone: Vec<_> = tasks
            .keys()
            .filter(|name| !next.contains_key(*name))
            .cloned()
            .collect();
        for (name, task) in gone
            .into_iter()
            .filter_map(|name| tasks.remove_entry(&name))
        {
            tracing::warn!(room = %name, "the room is gone from the configuration; its visitors \
                                          begin anew elsewhere");
            task.stop.send_replace(true);
            self.leaving.lock().push(task.done);
        }
        self.leaving.lock().retain(|task| !task.is_finished());
        self.rooms.store(Arc::new(next));
    }

    /// Changes the keys of tickets; newest first, at least one.
    pub fn set_ticket_keys(&self, keys: &[[u8; 32]]) {
        self.shared.ring.store(Arc::new(KeyRing::new(keys)));
    }

    /// Returns when the ledgers of all rooms know of this process, or of one in whose place it
    /// runs. Before that a ticket says nothing here: its session may have been ended.
    pub async fn joined(&self) {
        for room in self.rooms() {
            room.joined().await;
        }
    }

    /// Deletes the names of dead processes as soon as all ledgers have heard that they are dead.
    async fn forget_predecessors(shared: Arc<Shared>, rooms: Vec<Arc<RoomHandle>>) {
        for room in rooms {
            room.heard().await;
        }
        if let Some(process) = &shared.process {
            process.forget_predecessors();
        }
    }

    /// Whether every room may admit, or has nothing to admit for.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        let rooms = self.rooms.load();
        rooms.values().all(|room| room.stats().has_live_lease)
    }

    /// Whether [`Node::stop`] was called: nobody new should be sent here.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Gives everything back and lets go of the store. Visitors inside still pass afterwards.
    pub async fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.slewing.abort();
        for chore in self.chores.lock().drain(..) {
            chore.abort();
        }
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for task in tasks.values() {
            task.stop.send_replace(true);
        }
        let leaving = std::mem::take(&mut *self.leaving.lock());
        for done in tasks.into_values().map(|task| task.done).chain(leaving) {
            // A loop that panicked has said so already.
            let _ = done.await;
        }
        // A disk that hangs must not keep the process from draining.
        if timeout(CLOSE_TIME_OUT, self.shared.stores.close())
            .await
            .is_err()
        {
            tracing::error!("the store does not let itself be closed; leaving all the same");
        }
    }

    /// An id of its own for every life of a room: a room that is closed and opened again counts
    /// its requests anew.
    fn next_incarnation(&self) -> NodeId {
        let incarnation = self.lives.fetch_add(1, Ordering::Relaxed);
        NodeId(self.id.0.wrapping_add(incarnation.wrapping_mul(2)))
    }

    fn open_room(
        &self,
        config: RoomConfig,
        tasks: &mut BTreeMap<RoomName, RoomTask>,
    ) -> Arc<RoomHandle> {
        let identity = RoomIdentity {
            node: self.next_incarnation(),
            process: self.id,
            is_alone: !self.shared.stores.are_shared(),
            data_center: data_center_id(&self.shared.data_center),
            lottery_key: self.lottery_key,
        };
        let name = config.name.clone();
        let handle = Arc::new(RoomHandle::new(Arc::clone(&self.shared), identity, config));
        let (stop, stopped) = watch::channel(false);
        let watching = Arc::clone(&handle).watch_overrides(stopped.clone());
        let writing = Arc::clone(&handle).write_held(stopped.clone());
        let running = Arc::clone(&handle).run(stopped);
        let done = tokio::spawn(async {
            tokio::join!(running, watching, writing);
        });
        tasks.insert(name, RoomTask { stop, done });
        handle
    }
}

/// Tells the others what this data center is called, as soon as the store lets itself be told.
async fn introduce_us(store: Arc<dyn Store>, name: String) {
    let us = data_center_id(&name);
    for _ in 0..INTRODUCTIONS_MAX {
        if introduce(&*store, us, &name).await.is_ok() {
            return;
        }
        tokio::time::sleep(BETWEEN_INTRODUCTIONS).await;
    }
}

/// Lets rooms look at what they hold when another process has written to the data folder: while one
/// replaces the other, operators reach either.
async fn watch_held(node: Weak<Node>, data_dir: PathBuf) {
    let data_dir: Arc<Path> = data_dir.into();
    let mut known = None;
    let mut ticks = tokio::time::interval(LOOK_AT_HELD_EVERY);
    loop {
        ticks.tick().await;
        let folder = Arc::clone(&data_dir);
        let looking = tokio::task::spawn_blocking(move || HeldFile::changed_at(&folder));
        let Ok(changed_at) = looking.await else {
            return;
        };
        let Some(node) = node.upgrade() else { return };
        if changed_at != known {
            known = changed_at;
            for room in node.rooms() {
                room.look_at_held();
            }
        }
    }
}

async fn slew(clock: Arc<dyn NodeClock>) {
    let mut ticks = tokio::time::interval(Duration::from_millis(SLEW_PERIOD.0));
    loop {
        ticks.tick().await;
        let clock = Arc::clone(&clock);
        // It may write a file, and a disk may hang.
        let _ = tokio::task::spawn_blocking(move || clock.slew()).await;
    }
}

/// A data center by the first four bytes of a digest of its name.
fn data_center_id(name: &str) -> DataCenterId {
    // FNV-1a: no secret is involved, and names are few.
    let digest = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    DataCenterId(digest)
}
