//! Rooms of the API in a process: it reads their record once a second, merges what it finds with
//! what it knows, and serves the rooms beside those of its file.
//!
//! The process keeps a copy of the record in its data folder, and one in the store of its data
//! center if that is another one. A process that has read neither the record nor a copy does not
//! know which rooms exist: it must let nothing pass to its sites. The same holds if the copy is
//! damaged and the store is empty.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anteroom_config::api_rooms::{
    API_PAGES_BYTES_MAX, API_ROOMS_BYTES_MAX, API_ROOMS_MAX, ApiRoom, ApiRooms, DELETED_FOR,
    LeftOut, Pages, PlacedRooms,
};
use anteroom_config::overrides::{Actor, Log, Record as _};
use anteroom_config::{Checks, Config, Owner, Problem, RoomId};
use anteroom_node::{NodeClock, Stores};
use anteroom_room::id::DeploymentId;
use anteroom_room::time::Timestamp;
use anteroom_store::{ChangeError, OverrideFeed, OverrideListener, StoreError, chain};
use parking_lot::Mutex;
use tokio::time::timeout;

mod audit;
mod checking;
mod copy;
mod nodes;
mod pages;
mod transfer;

pub(crate) use checking::SITE;
use checking::Surroundings;
pub use nodes::{Applied, NodeState};
pub use transfer::{
    ExportError, ImportError, ImportKind, ImportMode, Imported, ImportedRoom, RoomsDocument,
};

/// Name of the record, in place of a room's id. No room can have it.
const API_ROOMS: &str = "(rooms)";
/// Interval of reads of the record.
const READ_INTERVAL: Duration = Duration::from_secs(1);
/// Longest time of a change: 16 tries at a store far away.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(5);
/// Most attempts of a change at writing its pages. Each other writer may make one of them useless.
const PAGE_TRIES: u32 = 3;

/// Part of the process that serves rooms.
pub trait RoomsHost: Send + Sync {
    /// Returns the name of this process, which no other one has: operators read it.
    fn name(&self) -> String;

    /// Serves the rooms of a configuration in place of the present ones. Nobody will serve those of
    /// `deleted` again: their ledgers end one session after their last sync.
    ///
    /// # Errors
    ///
    /// If a room cannot be served; nothing changes then.
    fn serve(
        &self,
        config: &Config,
        deleted: &[RoomId],
    ) -> Result<(), Box<dyn Error + Send + Sync>>;

    /// Returns the page that a template makes for a visitor in a situation, which query parameters
    /// name; `None` if the visitor would not wait.
    ///
    /// # Errors
    ///
    /// The mistakes of the template.
    fn preview(
        &self,
        html: &str,
        query: &BTreeMap<String, String>,
    ) -> Result<Option<String>, Vec<String>>;

    /// Notes whether all rooms are known. Until then, no request to a site may pass.
    fn set_known(&self, is_known: bool);

    /// Reads the copy of the record in the data folder; `None` if there is none.
    ///
    /// # Errors
    ///
    /// If the copy cannot be read.
    fn read_copy(&self) -> Result<Option<String>, Box<dyn Error + Send + Sync>>;

    /// Writes the copy so that it survives a crash.
    ///
    /// # Errors
    ///
    /// If the data folder cannot be written.
    fn write_copy(&self, text: &str) -> Result<(), Box<dyn Error + Send + Sync>>;

    /// Reads a custom page from the data folder; `None` if it is not there.
    ///
    /// # Errors
    ///
    /// If the page cannot be read.
    fn read_page(&self, name: &str) -> Result<Option<String>, Box<dyn Error + Send + Sync>>;

    /// Writes a custom page into the data folder, unless it is there.
    ///
    /// # Errors
    ///
    /// If the data folder cannot be written.
    fn write_page(&self, name: &str, text: &str) -> Result<(), Box<dyn Error + Send + Sync>>;

    /// Removes all custom pages but these from the data folder.
    fn remove_other_pages(&self, names: &BTreeSet<&str>);
}

/// Rooms of the API in a process.
pub struct LiveApiRooms {
    feed: OverrideFeed<ApiRooms>,
    host: Arc<dyn RoomsHost>,
    /// Name of this process for others.
    name: String,
    checks: Checks,
    clock: Arc<dyn NodeClock>,
    /// Locked while the rooms of the process change, so that a reload and a change over the API do
    /// not mix.
    inputs: Mutex<Inputs>,
    /// Whether the rooms of a record could not be served since the start.
    has_never_served: AtomicBool,
    copy: copy::CopyState,
    pages: pages::HeldPages,
    note: nodes::LeftNote,
}

/// File and record, and the rooms that follow from them.
#[derive(Clone)]
struct Inputs {
    file: Arc<Config>,
    known: Arc<ApiRooms>,
    /// Known record, with the pages that this node can read.
    shown: Arc<ApiRooms>,
    placed: Arc<PlacedRooms>,
    /// Whether the rooms that follow from what is known are served.
    is_served: bool,
}

/// Change of one room.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// The room as it shall be; `None` deletes it.
    Write(RoomId, Option<Box<ApiRoom>>),
    /// The room that is there already is what was asked for.
    Keep(RoomId),
}

/// Reason why a room of the API was not changed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RoomRefusal {
    /// The room does not exist.
    #[error("there is no such room")]
    NotFound,
    /// The room has changed since the client read it.
    #[error("the room has changed; it is now {tag}")]
    Changed {
        /// Present tag.
        tag: String,
    },
    /// The room would have mistakes.
    #[error("the room has mistakes")]
    NotAllowed(Vec<Problem>),
    /// Number of rooms is at its limit.
    #[error("there are {API_ROOMS_MAX} rooms of the API already")]
    TooMany,
    /// All rooms together are too large.
    #[error("all rooms of the API together would have more than {API_ROOMS_BYTES_MAX} bytes")]
    TooLarge,
    /// All custom pages together are too large.
    #[error(
        "all custom pages of rooms of the API would have more than {API_PAGES_BYTES_MAX} bytes"
    )]
    PagesTooLarge,
    /// Live nodes run a version of the program that cannot read the change.
    #[error(
        "these nodes cannot read rooms of form {form}: {}; update them, or stop them and wait 15 s",
        nodes.join(", ")
    )]
    OlderNodes {
        /// Names of the nodes.
        nodes: Vec<String>,
        /// Form that the change needs.
        form: u64,
    },
    /// The room is there already.
    #[error("the room is there already")]
    Kept(RoomId),
}

/// Error of a change of a room of the API.
pub type RoomChangeError = ChangeError<RoomRefusal>;

/// Reason why a change was not written yet.
#[derive(Debug, thiserror::Error)]
enum NotWritten {
    #[error(transparent)]
    Refused(#[from] RoomRefusal),
    /// Pages of the change have to be in the store before.
    #[error("custom pages are not written yet")]
    PagesFirst(Pages),
}

/// Rooms to write; `None` deletes one.
type RoomChanges = Vec<(RoomId, Option<ApiRoom>)>;

/// Record after a change, and the room that it was about.
#[derive(Clone, Debug)]
pub struct Written {
    /// Room.
    pub id: RoomId,
    /// Record with the change.
    pub record: Arc<ApiRooms>,
    /// Nodes that serve the change; `None` if the store did not reply after the write.
    pub applied: Option<Applied>,
}

/// Record after a change of several rooms.
struct WrittenRooms {
    ids: Vec<RoomId>,
    record: Arc<ApiRooms>,
    applied: Option<Applied>,
}

impl std::fmt::Debug for LiveApiRooms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LiveApiRooms({:?})", self.feed)
    }
}

impl LiveApiRooms {
    /// Creates the rooms of a process that serves those of `file`. The record is in `stores`.
    #[must_use]
    pub fn new(
        host: Arc<dyn RoomsHost>,
        file: &Config,
        (stores, deployment): (&Stores, DeploymentId),
        clock: Arc<dyn NodeClock>,
        checks: Checks,
    ) -> Arc<Self> {
        let inputs = Inputs {
            file: Arc::new(file.clone()),
            known: Arc::default(),
            shown: Arc::default(),
            placed: Arc::default(),
            is_served: true,
        };
        let feed = stores.hearing(API_ROOMS, deployment, "the rooms of the API");
        Arc::new(Self {
            feed: feed.with_copy_lifetime(DELETED_FOR),
            name: host.name(),
            host,
            checks,
            clock,
            inputs: Mutex::new(inputs),
            has_never_served: AtomicBool::new(false),
            copy: copy::CopyState::default(),
            pages: pages::HeldPages::default(),
            note: nodes::LeftNote::default(),
        })
    }

    /// Reads the copies and the record once, for two seconds at most, and then their pages, for two
    /// more. Call it before the first request.
    pub async fn learn(&self) {
        self.read_copy();
        self.read().await;
    }

    /// Reads the record of other nodes, forever.
    pub async fn watch(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(READ_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            // Even of a store inside this process: a change whose client has gone may be written
            // and not be in force yet.
            self.read().await;
            let may_save = self.feed.was_read() && !self.feed.is_failing() && self.are_known();
            if may_save && !self.file().sites.is_empty() {
                self.keep_pages().await;
                self.save().await;
            }
        }
    }

    /// Whether this process knows which rooms exist. Without a site there can be none.
    #[must_use]
    pub fn are_known(&self) -> bool {
        let has_copy = self.copy.is_there.load(Ordering::Relaxed);
        let was_read =
            self.feed.was_read() || has_copy || (self.feed.has_copy() && self.feed.was_copy_read());
        // There were rooms, and only the copy that cannot be read may have them.
        let is_damaged =
            self.copy.is_damaged.load(Ordering::Relaxed) || self.feed.is_copy_damaged();
        let was_read = was_read && (has_copy || self.feed.has_found() || !is_damaged);
        let has_served = !self.has_never_served.load(Ordering::Relaxed);
        (was_read && has_served) || self.file().sites.is_empty()
    }

    /// Returns a configuration with the rooms of the API beside its own.
    #[must_use]
    pub fn beside(&self, file: &Config) -> Config {
        let placed = self
            .inputs()
            .shown
            .beside(file, &self.pages.all(), self.checks);
        with_rooms(file, &placed)
    }

    /// Serves a changed file, and the rooms of the API beside its rooms.
    ///
    /// # Errors
    ///
    /// If a room cannot be served; nothing changes then.
    pub fn replace_file(&self, file: &Config) -> Result<(), Box<dyn Error + Send + Sync>> {
        let mut inputs = self.inputs.lock();
        let next = Inputs {
            file: Arc::new(file.clone()),
            ..inputs.clone()
        };
        self.serve(&mut inputs, next)?;
        drop(inputs);
        self.host.set_known(self.are_known());
        Ok(())
    }

    /// Returns the page that a template makes, as [`RoomsHost::preview`] does.
    ///
    /// # Errors
    ///
    /// The mistakes of the template.
    pub fn preview(
        &self,
        html: &str,
        query: &BTreeMap<String, String>,
    ) -> Result<Option<String>, Vec<String>> {
        self.host.preview(html, query)
    }

    /// Returns the record as this process knows it. Its rooms refer to their custom pages, see
    /// [`LiveApiRooms::with_pages`].
    #[must_use]
    pub fn record(&self) -> Arc<ApiRooms> {
        self.inputs().known
    }

    /// Returns the file that this process serves.
    #[must_use]
    pub fn file(&self) -> Arc<Config> {
        self.inputs().file
    }

    /// Returns the rooms of the API that are served here, and those that are not.
    #[must_use]
    pub fn placed(&self) -> Arc<PlacedRooms> {
        self.inputs().placed
    }

    /// Returns why a room of the API is not served here; `None` if it is.
    #[must_use]
    pub fn left_out(&self, id: &RoomId) -> Option<LeftOut> {
        self.inputs().placed.left_out.get(id).cloned()
    }

    /// Returns a room with the texts of its custom pages, as far as this process has them.
    #[must_use]
    pub fn with_pages(&self, room: &ApiRoom) -> ApiRoom {
        room.with_pages(&self.pages.all())
    }

    /// Returns a room with references to its custom pages, as records have it.
    #[must_use]
    pub fn without_pages(&self, room: &ApiRoom) -> ApiRoom {
        let mut room = room.clone();
        room.take_pages(pages::page_name);
        room
    }

    /// Whether a room is served without a custom page that it refers to, because this process has
    /// not read that page.
    #[must_use]
    pub fn lacks_page(&self, id: &RoomId) -> bool {
        self.inputs()
            .without_pages()
            .any(|other| other == id.as_str())
    }

    /// Reads the record, so that a response is as new as the store's.
    pub async fn read(&self) {
        if self.file().sites.is_empty() {
            return;
        }
        self.read_and_tell().await;
        self.host.set_known(self.are_known());
    }

    /// Changes one room. The change is in force here when this returns, and at all nodes within two
    /// seconds: this waits for them that long. `edit` gets the record and the time of the change,
    /// and is called again if another writer was first. A room that it returns may have texts of
    /// pages. `what` names the change in the audit log.
    ///
    /// # Errors
    ///
    /// [`RoomChangeError`]: why the change is not allowed, and nothing is changed then; or that the
    /// store failed.
    pub async fn change(
        self: &Arc<Self>,
        who: &Actor,
        what: &str,
        edit: impl Fn(&ApiRooms, u64) -> Result<Edit, RoomRefusal>,
    ) -> Result<Written, RoomChangeError> {
        let edit = |record: &ApiRooms, at: u64| match edit(record, at)? {
            Edit::Write(id, room) => Ok(vec![(id, room.map(|room| *room))]),
            Edit::Keep(id) => Err(RoomRefusal::Kept(id)),
        };
        match self.write(who, what, edit).await {
            Ok(written) => {
                let id = written.ids.into_iter().next();
                Ok(Written {
                    id: id.ok_or(ChangeError::Contention)?,
                    record: written.record,
                    applied: written.applied,
                })
            }
            Err(ChangeError::Rejected(RoomRefusal::Kept(id))) => {
                // Another node has made it, a moment ago.
                self.read().await;
                let record = self.record();
                let at = record.room(&id).map_or(0, |(entry, _)| entry.at);
                let applied = self.applied(std::slice::from_ref(&id), at).await;
                Ok(Written {
                    id,
                    record,
                    applied,
                })
            }
            Err(error) => Err(error),
        }
    }

    /// Changes several rooms at once, as [`LiveApiRooms::change`] does one.
    async fn write(
        self: &Arc<Self>,
        who: &Actor,
        what: &str,
        edit: impl Fn(&ApiRooms, u64) -> Result<RoomChanges, RoomRefusal>,
    ) -> Result<WrittenRooms, RoomChangeError> {
        let writing = timeout(CHANGE_TIMEOUT, self.try_write((who, what), &edit));
        let (ids, record) = writing.await.unwrap_or_else(|late| {
            Err(ChangeError::Store(StoreError::Unavailable {
                doing: "write in time",
                store_name: "the rooms of the API".to_owned(),
                source: Box::new(late),
            }))
        })?;
        // A store that forgets the change gets it back from here, even after a restart.
        self.save().await;
        let newest = record.newest.as_ref();
        tracing::warn!(
            version = record.version,
            what = newest.map(|entry| entry.what.as_str()),
            token = who.token,
            user = who.user,
            from = who.address,
            "an operator changed the rooms of the API"
        );
        let at = ids.iter().filter_map(|id| record.rooms.get(id.as_str()));
        let at = at.map(|entry| entry.at).max().unwrap_or(0);
        let applied = self.applied(&ids, at).await;
        self.host.set_known(self.are_known());
        Ok(WrittenRooms {
            ids,
            record,
            applied,
        })
    }

    /// Writes a change, with its pages before it.
    async fn try_write(
        &self,
        log: (&Actor, &str),
        edit: &impl Fn(&ApiRooms, u64) -> Result<RoomChanges, RoomRefusal>,
    ) -> Result<(Vec<RoomId>, Arc<ApiRooms>), RoomChangeError> {
        let file = self.file();
        let notes = self.feed.notes().await.map_err(ChangeError::Store)?;
        let mut written = Pages::new();
        for _ in 0..PAGE_TRIES {
            let mut ids = Vec::new();
            let change = |before: &ApiRooms, store: Timestamp| {
                let at = before.time_of_change(store);
                let (next, pages);
                (ids, next, pages) = self.edited(before, (&file, at), edit)?;
                nodes::check_form(&next, &notes)?;
                if pages.keys().any(|name| !written.contains_key(name)) {
                    return Err(NotWritten::PagesFirst(pages));
                }
                Ok(audit::with_entry(&ids, before, next, log, at))
            };
            let pages = match self.feed.change(self, change).await {
                Ok(record) => return Ok((ids, record)),
                Err(ChangeError::Rejected(NotWritten::PagesFirst(pages))) => pages,
                Err(ChangeError::Rejected(NotWritten::Refused(refused))) => {
                    return Err(ChangeError::Rejected(refused));
                }
                Err(ChangeError::Store(error)) => return Err(ChangeError::Store(error)),
                Err(_) => return Err(ChangeError::Contention),
            };
            self.write_pages(&pages).await.map_err(ChangeError::Store)?;
            self.pages.add(pages.clone());
            written.extend(pages);
        }
        Err(ChangeError::Contention)
    }

    /// Returns the rooms that an edit changes, the record with them, and the pages that it brings.
    fn edited(
        &self,
        before: &ApiRooms,
        (file, at): (&Config, u64),
        edit: &impl Fn(&ApiRooms, u64) -> Result<RoomChanges, RoomRefusal>,
    ) -> Result<(Vec<RoomId>, ApiRooms, Pages), RoomRefusal> {
        let mut changed = edit(before, at)?;
        let mut own = Pages::new();
        for room in changed.iter_mut().filter_map(|(_, room)| room.as_mut()) {
            own.extend(room.take_pages(pages::page_name));
        }
        let ids: Vec<RoomId> = changed.iter().map(|(id, _)| id.clone()).collect();
        let next = before.with_all(changed, at);
        let mut pages = self.pages.all();
        if !own.is_empty() {
            Arc::make_mut(&mut pages).extend(own.clone());
        }
        let around = Surroundings {
            file,
            pages: &pages,
            checks: self.checks,
            at,
        };
        checking::check(&ids, (before, &next), &around)?;
        Ok((ids, next, own))
    }

    /// Checks a change and writes nothing.
    async fn check_only(
        &self,
        before: &ApiRooms,
        edit: impl Fn(&ApiRooms, u64) -> Result<RoomChanges, RoomRefusal>,
    ) -> Result<(), RoomChangeError> {
        let notes = self.feed.notes().await.map_err(ChangeError::Store)?;
        let at = before.time_of_change(self.clock.wall());
        let edited = self.edited(before, (&self.file(), at), &edit);
        let (_, next, _) = edited.map_err(ChangeError::Rejected)?;
        nodes::check_form(&next, &notes).map_err(ChangeError::Rejected)
    }

    /// Undoes a change of the audit log, as a new change. `new_id` is the id of a room that was
    /// deleted.
    ///
    /// # Errors
    ///
    /// [`RoomChangeError`]: why it cannot be undone, or that the store failed.
    pub async fn undo(
        self: &Arc<Self>,
        who: &Actor,
        version: u64,
        new_id: &RoomId,
    ) -> Result<Written, RoomChangeError> {
        let log = self.log().await.map_err(ChangeError::Store)?;
        let entry = log.entry(version).map_err(|text| {
            let problem = Problem::remark(Owner::Room(String::new()), "version", &text);
            ChangeError::Rejected(RoomRefusal::NotAllowed(vec![problem]))
        })?;
        let what = format!("undo {version}");
        let edit = |record: &ApiRooms, at: u64| audit::undone(record, entry, (new_id, at));
        self.change(who, &what, edit)
            .await
            .map_err(|error| match error {
                ChangeError::Rejected(RoomRefusal::NotAllowed(problems)) => {
                    let problems = problems.into_iter();
                    let problems = problems.map(|problem| log.with_later_change(problem, entry));
                    ChangeError::Rejected(RoomRefusal::NotAllowed(problems.collect()))
                }
                error => error,
            })
    }

    /// Returns the audit log, oldest entry first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn log(&self) -> Result<Log, StoreError> {
        self.feed.log().await
    }

    fn inputs(&self) -> Inputs {
        self.inputs.lock().clone()
    }

    /// Serves what follows from other inputs.
    fn serve(&self, inputs: &mut Inputs, next: Inputs) -> Result<(), Box<dyn Error + Send + Sync>> {
        let pages = self.pages.all();
        let shown = next.known.with_readable_pages(&inputs.shown, &pages);
        let placed = shown.beside(&next.file, &pages, self.checks);
        let config = with_rooms(&next.file, &placed);
        self.host.serve(&config, &deleted(inputs, &next))?;
        for (id, left_out) in &placed.left_out {
            if inputs.placed.left_out.get(id) != Some(left_out) {
                let problems: Vec<_> = left_out.problems.iter().map(ToString::to_string).collect();
                let problems = problems.join("; ");
                tracing::warn!(%id, problems, "a room of the API is not served");
            }
        }
        *inputs = Inputs {
            shown: Arc::new(shown),
            placed: Arc::new(placed),
            is_served: true,
            ..next
        };
        Ok(())
    }

    /// Serves the rooms with pages that were just read.
    fn serve_again(&self) {
        let mut inputs = self.inputs.lock();
        let next = inputs.clone();
        if let Err(error) = self.serve(&mut inputs, next) {
            tracing::error!(
                cause = chain(&*error),
                "rooms of the API cannot be served with their custom pages: the present ones stay"
            );
        }
    }
}

impl OverrideListener<ApiRooms> for LiveApiRooms {
    fn known(&self) -> Arc<ApiRooms> {
        self.record()
    }

    fn adopt(&self, record: ApiRooms) {
        let mut inputs = self.inputs.lock();
        if !record.is_newer_than(&inputs.known) {
            return;
        }
        let next = Inputs {
            known: Arc::new(inputs.known.merged(&record)),
            ..inputs.clone()
        };
        let (version, rooms) = (next.known.version, next.known.present().len());
        match self.serve(&mut inputs, next.clone()) {
            Ok(()) => {
                self.has_never_served.store(false, Ordering::Relaxed);
                tracing::info!(version, rooms, "rooms of the API take effect at this node");
            }
            Err(error) => {
                let is_first = inputs.known.rooms.is_empty();
                self.has_never_served.fetch_or(is_first, Ordering::Relaxed);
                // Known all the same: it must not be lost if the store loses it.
                inputs.known = next.known;
                inputs.is_served = false;
                tracing::error!(
                    cause = chain(&*error),
                    "rooms of the API cannot be served: the present ones stay"
                );
            }
        }
    }
}

/// Returns the rooms that were deleted since these inputs, and that the file does not have.
fn deleted(inputs: &Inputs, next: &Inputs) -> Vec<RoomId> {
    let deleted = next.known.rooms.iter().filter(|(id, entry)| {
        let known = inputs.known.rooms.get(*id);
        let is_new = known.is_none_or(|known| known.room.is_some());
        entry.room.is_none() && is_new
    });
    let ids = deleted.filter_map(|(id, _)| RoomId::new(id));
    ids.filter(|id| next.file.rooms.iter().all(|room| room.id != *id))
        .collect()
}

/// Returns a configuration with more rooms.
fn with_rooms(file: &Config, placed: &PlacedRooms) -> Config {
    let mut config = file.clone();
    config.rooms.extend(placed.rooms.iter().cloned());
    config
}

#[cfg(test)]
mod tests;
