//! Notes by which nodes tell each other about the rooms of the API: which form of the record each
//! of them reads, and which state it serves.
//!
//! Each node leaves a note beside the record, with the request that reads the record: at once when
//! the note has changed, or else every five seconds. The store drops notes after 15 s. A node
//! serves a change if it has read a state of the record that contains it. Versions of the record
//! order its states while the store loses nothing. A loss changes the store's identity, or takes
//! the notes with it. The time of the newest change guards against a record that was deleted alone.

use std::time::Duration;

use anteroom_config::RoomId;
use anteroom_config::api_rooms::ApiRooms;
use anteroom_config::overrides::FORM;
use anteroom_store::{Expected, Note, StoreError};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{Inputs, LiveApiRooms, RoomRefusal};

/// Interval of notes that have not changed.
const NOTE_INTERVAL: Duration = Duration::from_secs(5);
/// Longest wait of a writer for other nodes.
const APPLIED_WITHIN: Duration = Duration::from_secs(2);
/// Interval at which a writer looks for the notes of others.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Most rooms that a note says are not served. With more, the node serves nothing that it could
/// state.
const EXCEPT_MAX: usize = 32;

/// Version of this program.
const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// Nodes that serve a change.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Applied {
    /// Nodes that serve it, this one among them.
    pub nodes: usize,
    /// Live nodes.
    pub of: usize,
}

impl Applied {
    /// Whether all live nodes serve the change.
    #[must_use]
    pub const fn is_everywhere(self) -> bool {
        self.nodes == self.of
    }
}

/// Note of a node beside the record.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeNote {
    /// Highest form of the record that the node reads.
    form: u64,
    /// State that it serves; `None` if it could not serve the newest one.
    #[serde(default)]
    serves: Option<Served>,
    /// Data center; `None` from a node of an older version.
    #[serde(default)]
    data_center: Option<String>,
    /// Version of the program; `None` from a node of an older version.
    #[serde(default)]
    program: Option<String>,
}

/// Live node of the deployment.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeState {
    /// Name, which no other process has.
    pub name: String,
    /// Whether it is the responding node.
    pub is_this: bool,
    /// Data center; `null` if the node has not said.
    pub data_center: Option<String>,
    /// Version of the program; `null` if the node has not said.
    pub version: Option<String>,
    /// Whether it serves the newest state of the rooms of the API that the responding node knows.
    pub serves_newest: bool,
    /// Ids of rooms of the API that it does not serve as they are: its file has their names or
    /// routes, or it has not read their pages.
    pub not_served: Vec<String>,
}

/// State of the record that a node serves.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Served {
    /// Identity of the store.
    store: u64,
    /// Version of the stored record. What a later write changed may be missing.
    version: u64,
    /// Time of the newest change that is served, in Unix milliseconds by the store's clock.
    at: u64,
    /// Rooms that the node does not serve as they are in the record: its file has their names or
    /// routes, or it has not read their pages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    except: Vec<String>,
}

impl Served {
    /// Whether this node serves changes of some rooms that were in a state of the record.
    fn has(&self, ids: &[RoomId], state: Expected, at: u64) -> bool {
        self.store == state.identity.0
            && self.version >= state.version.0
            && self.at >= at
            && ids
                .iter()
                .all(|id| !self.except.iter().any(|other| other == id.as_str()))
    }
}

/// Note that this node has left.
#[derive(Default)]
pub(super) struct LeftNote(Mutex<Option<(Vec<u8>, Instant)>>);

impl LeftNote {
    /// Returns the note if it is to be left now.
    fn due(&self, note: Note) -> Option<Note> {
        let left = self.0.lock();
        let is_fresh = left
            .as_ref()
            .is_some_and(|(value, at)| *value == note.value && at.elapsed() < NOTE_INTERVAL);
        (!is_fresh).then_some(note)
    }

    fn is_left(&self) -> bool {
        self.0.lock().is_some()
    }

    fn set(&self, note: Note) {
        *self.0.lock() = Some((note.value, Instant::now()));
    }
}

impl LiveApiRooms {
    /// Reads the record, and tells other nodes what this one serves. Where the record had news, it
    /// tells them at once.
    pub(super) async fn read_and_tell(&self) {
        for _ in 0..2 {
            let note = self.due_note();
            // The feed logs its failures.
            if self.feed.read_and_note(self, note.as_ref()).await.is_err() {
                return;
            }
            if let Some(note) = note {
                self.note.set(note);
            }
            self.fetch_pages().await;
            if self.due_note().is_none() {
                return;
            }
        }
    }

    /// Tells other nodes that this one ends, so that no writer waits for it.
    pub async fn leave(&self) {
        if self.note.is_left() {
            self.feed.remove_note(&self.name).await;
        }
    }

    /// Waits until all live nodes serve changes of some rooms, for two seconds at most. `at` is the
    /// time of the changes. `None` if that is not known, because the store does not reply.
    pub(super) async fn applied(&self, ids: &[RoomId], at: u64) -> Option<Applied> {
        let deadline = Instant::now() + APPLIED_WITHIN;
        loop {
            if !self.feed.is_shared() {
                let nodes = usize::from(self.inputs().serves(ids));
                return Some(Applied { nodes, of: 1 });
            }
            self.read_and_tell().await;
            let applied = self.count_applied(ids, at).await;
            let is_everywhere = applied.is_some_and(Applied::is_everywhere);
            if is_everywhere || Instant::now() >= deadline {
                return applied;
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// Returns the live nodes, this one first. Others leave a note in the store every five seconds
    /// and are gone 15 s after the last one.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn nodes(&self) -> Result<Vec<NodeState>, StoreError> {
        let inputs = self.inputs();
        let state = self.feed.has_all_of(&inputs.known);
        let at = inputs.known.newest_at();
        let mut nodes = vec![NodeState {
            name: self.name.clone(),
            is_this: true,
            data_center: Some(inputs.file.server.data_center.clone()),
            version: Some(PROGRAM.to_owned()),
            serves_newest: inputs.is_served,
            not_served: inputs.not_served().map(str::to_owned).collect(),
        }];
        if !self.feed.is_shared() {
            return Ok(nodes);
        }
        let notes = self.feed.notes().await?;
        let others = notes.into_iter().filter(|note| note.name != self.name);
        let others = others.map(|note| {
            let read: Option<NodeNote> = serde_json::from_slice(&note.value).ok();
            let (data_center, version, serves) = match read {
                Some(note) => (note.data_center, note.program, note.serves),
                None => (None, None, None),
            };
            let has_newest =
                |serves: &Served| state.is_some_and(|state| serves.has(&[], state, at));
            NodeState {
                name: note.name,
                is_this: false,
                data_center,
                version,
                serves_newest: serves.as_ref().is_some_and(has_newest),
                not_served: serves.map(|serves| serves.except).unwrap_or_default(),
            }
        });
        nodes.extend(others);
        nodes[1..].sort_by(|one, other| one.name.cmp(&other.name));
        Ok(nodes)
    }

    async fn count_applied(&self, ids: &[RoomId], at: u64) -> Option<Applied> {
        let inputs = self.inputs();
        // Only a state that lacks nothing of what is known here has the change for certain.
        let state = self.feed.has_all_of(&inputs.known);
        let notes = self.feed.notes().await.ok()?;
        let mut applied = Applied {
            nodes: usize::from(inputs.serves(ids)),
            of: 1,
        };
        for note in notes.iter().filter(|note| note.name != self.name) {
            applied.of += 1;
            let read: Option<NodeNote> = serde_json::from_slice(&note.value).ok();
            let serves = read.and_then(|note| note.serves);
            let has = |serves: Served| state.is_some_and(|state| serves.has(ids, state, at));
            applied.nodes += usize::from(serves.is_some_and(has));
        }
        Some(applied)
    }

    /// Returns the note of this node if it is to be left now.
    fn due_note(&self) -> Option<Note> {
        if !self.feed.is_shared() {
            return None;
        }
        let inputs = self.inputs();
        let serves = self.feed.seen().filter(|_| inputs.is_served);
        let serves = serves.map(|Expected { version, identity }| Served {
            store: identity.0,
            version: version.0,
            at: inputs.known.newest_at(),
            except: inputs.not_served().map(str::to_owned).collect(),
        });
        let note = NodeNote {
            form: FORM,
            serves: serves.filter(|serves| serves.except.len() <= EXCEPT_MAX),
            data_center: Some(inputs.file.server.data_center.clone()),
            program: Some(PROGRAM.to_owned()),
        };
        let value = serde_json::to_vec(&note).unwrap_or_default();
        self.note.due(Note {
            name: self.name.clone(),
            value,
        })
    }
}

impl Inputs {
    /// Whether this node serves some rooms as they are in the record.
    fn serves(&self, ids: &[RoomId]) -> bool {
        let is_except = |id: &RoomId| self.not_served().any(|other| other == id.as_str());
        self.is_served && !ids.iter().any(is_except)
    }

    /// Returns the ids of the rooms that this node does not serve as they are in the record.
    fn not_served(&self) -> impl Iterator<Item = &str> {
        let left_out = self.placed.left_out.keys().map(RoomId::as_str);
        left_out.chain(self.without_pages())
    }

    /// Returns the ids of the rooms whose pages this node has not read.
    pub(super) fn without_pages(&self) -> impl Iterator<Item = &str> {
        let known = self.known.rooms.iter();
        let differ = known.filter(|(id, entry)| {
            let shown = self.shown.rooms.get(*id);
            shown.is_some_and(|shown| shown.room != entry.room)
        });
        differ.map(|(id, _)| id.as_str())
    }
}

/// Checks that all live nodes can read a record.
///
/// # Errors
///
/// [`RoomRefusal::OlderNodes`] with the names of those that cannot.
pub(super) fn check_form(record: &ApiRooms, notes: &[Note]) -> Result<(), RoomRefusal> {
    let form = record.form();
    let is_older = |note: &&Note| {
        let read: Option<NodeNote> = serde_json::from_slice(&note.value).ok();
        read.is_some_and(|note| note.form < form)
    };
    let older = notes.iter().filter(is_older);
    let mut nodes: Vec<String> = older.map(|note| note.name.clone()).collect();
    if nodes.is_empty() {
        return Ok(());
    }
    nodes.sort();
    Err(RoomRefusal::OlderNodes { nodes, form })
}
