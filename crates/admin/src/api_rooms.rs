//! Rooms of the API in a process: it reads their record once a second, merges what it finds with
//! what it knows, and serves the rooms beside those of its file.
//!
//! The process keeps a copy of the record in its data folder, and one in the store of its data
//! center if that is another one. A process that has read neither the record nor a copy does not
//! know which rooms exist: it must let nothing pass to its sites.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anteroom_config::api_rooms::{API_ROOMS_BYTES_MAX, API_ROOMS_MAX, ApiRoom, ApiRooms};
use anteroom_config::api_rooms::{DELETED_FOR, LeftOut, PlacedRooms};
use anteroom_config::overrides::{Actor, Change, Entry, Log, Record as _};
use anteroom_config::{Checks, Config, Owner, Problem, RoomId, RoomOrigins};
use anteroom_node::{NodeClock, Stores};
use anteroom_room::id::DeploymentId;
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_store::{ChangeError, OverrideFeed, OverrideListener, StoreError, chain};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::timeout;

/// Name of the record, in place of a room's id. No room can have it.
const API_ROOMS: &str = "(rooms)";
/// Interval of reads of the record.
const READ_INTERVAL: Duration = Duration::from_secs(1);
/// Longest wait for a write of the copy.
const SAVE_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest time of a change: 16 tries at a store far away.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest age of a copy that still equals the record. A copy older than [`DELETED_FOR`] could
/// bring deleted rooms back.
const COPY_CONFIRMED_EVERY: DurationMs = DurationMs::from_secs(86_400);
/// Most bytes of a value in the audit log.
const LOGGED_BYTES_MAX: usize = 256;

/// Part of the process that serves rooms.
pub trait RoomsHost: Send + Sync {
    /// Serves the rooms of a configuration in place of the present ones.
    ///
    /// # Errors
    ///
    /// If one of them cannot be served; nothing changes then.
    fn serve(&self, config: &Config) -> Result<(), Box<dyn Error + Send + Sync>>;

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
}

/// Rooms of the API in a process.
pub struct LiveApiRooms {
    feed: OverrideFeed<ApiRooms>,
    host: Arc<dyn RoomsHost>,
    checks: Checks,
    clock: Arc<dyn NodeClock>,
    /// Locked while the rooms of the process change, so that a reload and a change over the API do
    /// not mix.
    inputs: Mutex<Inputs>,
    has_copy: AtomicBool,
    /// Whether the rooms of a record could not be served since the start.
    has_never_served: AtomicBool,
    saved: Mutex<Option<Saved>>,
}

/// File and record, and the rooms that follow from them.
#[derive(Clone)]
struct Inputs {
    file: Arc<Config>,
    known: Arc<ApiRooms>,
    placed: Arc<PlacedRooms>,
}

/// Record that is in the data folder, and when it was written.
struct Saved {
    record: Arc<ApiRooms>,
    at: Timestamp,
}

/// Copy in the data folder.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Copy {
    /// Time at which the copy equalled the record, in Unix milliseconds by the wall clock.
    confirmed_at: u64,
    record: String,
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
    /// The room is there already.
    #[error("the room is there already")]
    Kept(RoomId),
}

/// Error of a change of a room of the API.
pub type RoomChangeError = ChangeError<RoomRefusal>;

/// Record after a change, and the room that it was about.
#[derive(Clone, Debug)]
pub struct Written {
    /// Room.
    pub id: RoomId,
    /// Record with the change.
    pub record: Arc<ApiRooms>,
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
            placed: Arc::default(),
        };
        Arc::new(Self {
            feed: stores.hearing(API_ROOMS, deployment, "the rooms of the API"),
            host,
            checks,
            clock,
            inputs: Mutex::new(inputs),
            has_copy: AtomicBool::new(false),
            has_never_served: AtomicBool::new(false),
            saved: Mutex::new(None),
        })
    }

    /// Reads the copies and the record once, for two seconds at most. Call it before the first
    /// request.
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
            if self.feed.was_read() && !self.feed.is_failing() {
                self.save().await;
            }
        }
    }

    /// Whether this process knows which rooms exist. Without a site there can be none.
    #[must_use]
    pub fn are_known(&self) -> bool {
        let was_read = self.feed.was_read()
            || self.has_copy.load(Ordering::Relaxed)
            || (self.feed.has_copy() && self.feed.was_copy_read());
        let has_served = !self.has_never_served.load(Ordering::Relaxed);
        (was_read && has_served) || self.file().sites.is_empty()
    }

    /// Returns a configuration with the rooms of the API beside its own.
    #[must_use]
    pub fn beside(&self, file: &Config) -> Config {
        let placed = self.inputs().known.beside(file, self.checks);
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

    /// Returns the record as this process knows it.
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

    /// Reads the record, so that a response is as new as the store's.
    pub async fn read(&self) {
        if self.file().sites.is_empty() {
            return;
        }
        // The feed logs its failures.
        let _ = self.feed.read(self).await;
        self.host.set_known(self.are_known());
    }

    /// Changes one room. The change is in force here when this returns, and at all nodes within two
    /// seconds. `edit` gets the record and the time of the change, and is called again if another
    /// writer was first. `what` names the change in the audit log.
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
        let file = self.file();
        let mut changed = None;
        let change = |before: &ApiRooms, store: Timestamp| {
            let at = before.time_of_change(store);
            let (id, room) = match edit(before, at)? {
                Edit::Write(id, room) => (id, room),
                Edit::Keep(id) => return Err(RoomRefusal::Kept(id)),
            };
            let next = before.with(&id, room.map(|room| *room), at);
            self.check(&id, (before, &next), &file, at)?;
            changed = Some(id.clone());
            Ok(with_entry(&id, before, next, who, what, at))
        };
        let changing = timeout(CHANGE_TIMEOUT, self.feed.change(&**self, change));
        let changing = changing.await.unwrap_or_else(|late| {
            Err(ChangeError::Store(StoreError::Unavailable {
                doing: "write in time",
                store_name: "the rooms of the API".to_owned(),
                source: Box::new(late),
            }))
        });
        match changing {
            Ok(record) => {
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
                let id = changed.ok_or(ChangeError::Contention)?;
                Ok(Written { id, record })
            }
            Err(ChangeError::Rejected(RoomRefusal::Kept(id))) => {
                // Another node has made it, a moment ago.
                self.read().await;
                let record = self.record();
                Ok(Written { id, record })
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the audit log, oldest entry first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn log(&self) -> Result<Log, StoreError> {
        self.feed.log().await
    }

    /// Checks a changed room by the rules of the file, beside all others.
    fn check(
        &self,
        id: &RoomId,
        (before, next): (&ApiRooms, &ApiRooms),
        file: &Config,
        at: u64,
    ) -> Result<(), RoomRefusal> {
        if next.room(id).is_none() {
            return Ok(());
        }
        let count = next.present().len();
        if count > API_ROOMS_MAX && count > before.present().len() {
            return Err(RoomRefusal::TooMany);
        }
        let bytes = next.encode().len();
        if bytes > API_ROOMS_BYTES_MAX && bytes > before.encode().len() {
            return Err(RoomRefusal::TooLarge);
        }
        let mut placed = next.beside_with_change_of(id, file, self.checks);
        if let Some(left_out) = placed.left_out.remove(id) {
            return Err(RoomRefusal::NotAllowed(left_out.problems));
        }
        let wanted = next.room(id).map(|(_, room)| room.site.as_str());
        let config = placed.rooms.iter().find(|room| room.id == *id);
        if let Some(RoomOrigins::Site(site)) = config.map(|room| &room.origins)
            && wanted.is_some_and(|wanted| wanted != site.as_str())
        {
            let text = format!("the site {site} serves it, which is another zone");
            let problem = Problem::remark(Owner::Room(id.to_string()), "host", &text);
            return Err(RoomRefusal::NotAllowed(vec![problem]));
        }
        let known = before.beside(file, self.checks);
        let moved = moved_starts(id, (before, &known), (next, &placed), Timestamp(at));
        if moved.is_empty() {
            Ok(())
        } else {
            Err(RoomRefusal::NotAllowed(moved))
        }
    }

    fn inputs(&self) -> Inputs {
        self.inputs.lock().clone()
    }

    /// Serves what follows from other inputs.
    fn serve(&self, inputs: &mut Inputs, next: Inputs) -> Result<(), Box<dyn Error + Send + Sync>> {
        let placed = next.known.beside(&next.file, self.checks);
        self.host.serve(&with_rooms(&next.file, &placed))?;
        for (id, left_out) in &placed.left_out {
            if inputs.placed.left_out.get(id) != Some(left_out) {
                let problems: Vec<_> = left_out.problems.iter().map(ToString::to_string).collect();
                let problems = problems.join("; ");
                tracing::warn!(%id, problems, "a room of the API is not served");
            }
        }
        *inputs = Inputs {
            placed: Arc::new(placed),
            ..next
        };
        Ok(())
    }

    fn read_copy(&self) {
        let copy = match self.host.read_copy() {
            // Whoever writes a record into the journal writes a copy beside it.
            Ok(None) if !self.feed.is_shared() => {
                self.has_copy.store(true, Ordering::Relaxed);
                return;
            }
            Ok(None) => return,
            Ok(Some(text)) => decode(&text),
            Err(error) => {
                tracing::error!(error = &*error, "copy of the rooms of the API not read");
                return;
            }
        };
        let Some((record, confirmed_at)) = copy else {
            tracing::error!("copy of the rooms of the API damaged: ignoring it");
            return;
        };
        let age = self.clock.wall().since(confirmed_at);
        if age >= DELETED_FOR {
            let days = age.0 / 86_400_000;
            tracing::warn!(days, "copy of the rooms of the API too old: ignoring it");
            return;
        }
        self.adopt(record);
        self.has_copy.store(true, Ordering::Relaxed);
        self.host.set_known(self.are_known());
    }

    /// Writes the copy if the record has changed, or once a day.
    async fn save(self: &Arc<Self>) {
        let saving = Arc::clone(self);
        // A disk may hang.
        let writing = tokio::task::spawn_blocking(move || saving.write_copy());
        let _ = timeout(SAVE_TIMEOUT, writing).await;
    }

    fn write_copy(&self) {
        // Another thread may still write, to a disk that hangs.
        let Some(mut saved) = self.saved.try_lock() else {
            return;
        };
        let (record, now) = (self.record(), self.clock.wall());
        let is_saved = saved.as_ref().is_some_and(|saved| {
            Arc::ptr_eq(&saved.record, &record) && now.since(saved.at) < COPY_CONFIRMED_EVERY
        });
        if is_saved || self.file().sites.is_empty() {
            return;
        }
        match self.host.write_copy(&encode(&record, now)) {
            Ok(()) => {
                *saved = Some(Saved { record, at: now });
                self.has_copy.store(true, Ordering::Relaxed);
            }
            Err(error) => {
                tracing::error!(error = &*error, "copy of the rooms of the API not written");
            }
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
                tracing::error!(
                    cause = chain(&*error),
                    "rooms of the API cannot be served: the present ones stay"
                );
            }
        }
    }
}

/// Returns the problems of events that have started and would start at another time: those who
/// came for the start would be queued again.
fn moved_starts(
    id: &RoomId,
    before: (&ApiRooms, &PlacedRooms),
    next: (&ApiRooms, &PlacedRooms),
    now: Timestamp,
) -> Vec<Problem> {
    let (before, next) = (starts(id, before), starts(id, next));
    let is_moved = |event: &str, start: Timestamp| {
        let known = before.iter().find(|(known, _)| known == event);
        known.is_some_and(|(_, known)| *known <= now && *known != start)
    };
    let moved = (1..)
        .zip(&next)
        .filter(|(_, (event, start))| is_moved(event, *start));
    let problem = |(number, _)| {
        let key = format!("event[{number}].event_start_time");
        let text = "the event has started: its start stays";
        Problem::remark(Owner::Room(id.to_string()), &key, text)
    };
    moved.map(problem).collect()
}

/// Returns the ids and the starts of a room's events, in order.
fn starts(id: &RoomId, (record, placed): (&ApiRooms, &PlacedRooms)) -> Vec<(String, Timestamp)> {
    let config = placed.rooms.iter().find(|room| room.id == *id);
    let (Some((_, room)), Some(config)) = (record.room(id), config) else {
        return Vec::new();
    };
    let times = config.events.iter().map(|event| event.times.starts_at);
    let ids = room.events.iter().map(|event| event.id.clone());
    ids.zip(times).collect()
}

/// Returns a configuration with more rooms.
fn with_rooms(file: &Config, placed: &PlacedRooms) -> Config {
    let mut config = file.clone();
    config.rooms.extend(placed.rooms.iter().cloned());
    config
}

fn encode(record: &ApiRooms, now: Timestamp) -> String {
    let copy = Copy {
        confirmed_at: now.0,
        record: String::from_utf8_lossy(&record.encode()).into_owned(),
    };
    serde_json::to_string(&copy).unwrap_or_default()
}

fn decode(text: &str) -> Option<(ApiRooms, Timestamp)> {
    let copy: Copy = serde_json::from_str(text).ok()?;
    let record = ApiRooms::decode(copy.record.as_bytes()).ok()?;
    Some((record, Timestamp(copy.confirmed_at)))
}

/// Returns a record with the change in its log.
fn with_entry(
    id: &RoomId,
    before: &ApiRooms,
    mut next: ApiRooms,
    who: &Actor,
    what: &str,
    at: u64,
) -> ApiRooms {
    let (old, new) = (before.room(id), next.room(id));
    let name = new.or(old).and_then(|(_, room)| room.values.get("name"));
    let what = match name.and_then(Value::as_str) {
        Some(name) => format!("room {what} {name}"),
        None => format!("room {what} {id}"),
    };
    let changes = changes(old.map(|(_, room)| room), new.map(|(_, room)| room));
    let entry = Entry::following(before, who, Timestamp(at), what, changes);
    next.version = entry.version;
    next.newest = Some(entry);
    next
}

/// Returns the keys whose values differ.
fn changes(before: Option<&ApiRoom>, after: Option<&ApiRoom>) -> Vec<Change> {
    let value = |room: Option<&ApiRoom>, key: &str| match (room, key) {
        (None, _) => Value::Null,
        (Some(room), "description") => logged(Some(&json!(room.description))),
        (Some(room), "events") => logged(Some(&json!(room.events))),
        (Some(room), "rules") => logged(Some(&json!(room.rules))),
        (Some(room), key) => logged(room.values.get(key)),
    };
    let keys = |room: Option<&ApiRoom>| -> Vec<String> {
        room.map(|room| room.values.keys().cloned().collect())
            .unwrap_or_default()
    };
    let mut keys: Vec<String> = [
        keys(before),
        keys(after),
        ["description", "events", "rules"]
            .map(str::to_owned)
            .to_vec(),
    ]
    .concat();
    keys.sort();
    keys.dedup();
    let changes = keys.into_iter().map(|key| Change {
        before: value(before, &key),
        after: value(after, &key),
        key,
    });
    let is_empty = |value: &Value| [Value::Null, json!(""), json!([])].contains(value);
    changes
        .filter(|change| {
            change.before != change.after && !(is_empty(&change.before) && is_empty(&change.after))
        })
        .collect()
}

/// Returns a value for the log; of a long one only its length.
fn logged(value: Option<&Value>) -> Value {
    match value {
        None => Value::Null,
        Some(value) => {
            let bytes = value.to_string().len();
            if bytes > LOGGED_BYTES_MAX {
                json!(format!("({bytes} bytes)"))
            } else {
                value.clone()
            }
        }
    }
}

#[cfg(test)]
mod tests;
