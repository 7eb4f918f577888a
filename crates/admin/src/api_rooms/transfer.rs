//! All rooms of the API as one document, with their pages: to keep it elsewhere, to review it, and
//! to take it in again.

use std::collections::BTreeMap;
use std::sync::Arc;

use anteroom_config::RoomId;
use anteroom_config::api_rooms::{ApiRoom, ApiRooms, Pages};
use anteroom_config::overrides::{Actor, Change, FORM};
use serde::{Deserialize, Serialize};

use super::pages::page_name;
use super::{Applied, LiveApiRooms, RoomChangeError, audit};

/// All rooms of the API.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, utoipa::ToSchema)]
pub struct RoomsDocument {
    /// Form of the rooms: 1.
    pub form: u64,
    /// Rooms by id.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub rooms: BTreeMap<String, ApiRoom>,
    /// Custom pages by the hex digits of their SHA-256 digests, to which rooms refer. In a document
    /// that a person has written, a room may have the text of its page instead.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pages: BTreeMap<String, String>,
}

/// Effect of an import on a room.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImportKind {
    /// The room does not exist yet.
    Created,
    /// A room with this id exists, and is replaced.
    Replaced,
    /// The room exists as it is in the document.
    Unchanged,
}

/// Room of an import.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, utoipa::ToSchema)]
pub struct ImportedRoom {
    /// Id of the room.
    pub id: String,
    /// Name, or the id if there is none.
    pub name: String,
    /// Effect on the room.
    pub kind: ImportKind,
    /// Values that change. Of values longer than 256 bytes, they have the length.
    pub changes: Vec<Change>,
}

/// Result of an import, or of its preview.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Imported {
    /// Rooms of the document, by id.
    pub rooms: Vec<ImportedRoom>,
    /// Nodes that serve the rooms. `None` in a preview, if nothing changed, or if the store did not
    /// reply.
    pub applied: Option<Applied>,
}

/// Whether an import writes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ImportMode {
    /// Checks everything and lists what would change.
    Preview,
    /// Replaces the rooms of the document in one change. Other rooms stay.
    Write,
}

/// Error of an export.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// This node has read neither the record nor a copy.
    #[error("this node does not know the rooms of the API; ask another node, or mend the store")]
    NotKnown,
    /// Pages could not be read.
    #[error("custom pages cannot be read: {}", .0.join(", "))]
    PagesMissing(Vec<String>),
}

/// Error of an import. Nothing was changed, unless the store failed after the write.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// Document of a newer version of the program.
    #[error("the document has form {0}, and this program reads form {FORM}")]
    OtherForm(u64),
    /// Text that cannot be the id of a room.
    #[error("{0:?} cannot be the id of a room")]
    BadId(String),
    /// Page whose text does not have the digest under which it stands.
    #[error("the page {0} has another digest: the document is damaged, or was edited there")]
    PageDamaged(String),
    /// The change was not made.
    #[error("the rooms were not imported")]
    Change(#[source] RoomChangeError),
}

impl LiveApiRooms {
    /// Returns all rooms of the API with their pages, as the store has them now.
    ///
    /// # Errors
    ///
    /// [`ExportError`] if this node does not know all rooms and pages.
    pub async fn export(&self) -> Result<RoomsDocument, ExportError> {
        self.read().await;
        if !self.are_known() {
            return Err(ExportError::NotKnown);
        }
        let (record, texts) = (self.record(), self.pages.all());
        let mut pages = BTreeMap::new();
        let mut missing = Vec::new();
        for name in record.page_names() {
            match texts.get(name) {
                Some(text) => {
                    pages.insert(name.to_owned(), text.to_string());
                }
                None => missing.push(name.to_owned()),
            }
        }
        if !missing.is_empty() {
            return Err(ExportError::PagesMissing(missing));
        }
        let rooms = record.present().into_iter();
        let rooms = rooms.map(|(id, _, room)| (id.to_owned(), room.clone()));
        Ok(RoomsDocument {
            form: record.form(),
            rooms: rooms.collect(),
            pages,
        })
    }

    /// Takes in the rooms of a document, in one change that is checked like any other. A room with
    /// the id of one that exists replaces it; all others stay.
    ///
    /// # Errors
    ///
    /// [`ImportError`]: why the document cannot be read, or why its rooms are not allowed.
    pub async fn import(
        self: &Arc<Self>,
        who: &Actor,
        document: RoomsDocument,
        mode: ImportMode,
    ) -> Result<Imported, ImportError> {
        let rooms = read(document)?;
        self.read().await;
        let before = self.record();
        let listed = list(&before, &rooms);
        let edit = |record: &ApiRooms, _: u64| {
            let changed = rooms
                .iter()
                .filter(|(id, room)| is_changed(record, id, room));
            Ok(changed
                .map(|(id, room)| (id.clone(), Some(room.clone())))
                .collect())
        };
        let is_same = listed.iter().all(|room| room.kind == ImportKind::Unchanged);
        let applied = match mode {
            _ if is_same => None,
            ImportMode::Preview => {
                let previewed = self.check_only(&before, edit).await;
                previewed.map_err(ImportError::Change)?;
                None
            }
            ImportMode::Write => {
                let written = self.write(who, "import", edit).await;
                written.map_err(ImportError::Change)?.applied
            }
        };
        Ok(Imported {
            rooms: listed,
            applied,
        })
    }
}

/// Reads the rooms of a document, with the texts of their pages.
fn read(document: RoomsDocument) -> Result<Vec<(RoomId, ApiRoom)>, ImportError> {
    if document.form != FORM {
        return Err(ImportError::OtherForm(document.form));
    }
    let mut pages = Pages::new();
    for (name, text) in document.pages {
        if page_name(&text) != name {
            return Err(ImportError::PageDamaged(name));
        }
        pages.insert(name, Arc::from(text));
    }
    let mut rooms = Vec::new();
    for (text, room) in document.rooms {
        let Some(id) = RoomId::new(&text) else {
            return Err(ImportError::BadId(text));
        };
        // A page that the document lacks may be known here.
        rooms.push((id, room.with_known_pages(&pages)));
    }
    Ok(rooms)
}

/// Returns what becomes of the rooms of a document.
fn list(before: &ApiRooms, rooms: &[(RoomId, ApiRoom)]) -> Vec<ImportedRoom> {
    let listed = rooms.iter().map(|(id, room)| {
        let mut room = room.clone();
        room.take_pages(page_name);
        let known = before.room(id).map(|(_, known)| known);
        let kind = match known {
            None => ImportKind::Created,
            Some(known) if *known == room => ImportKind::Unchanged,
            Some(_) => ImportKind::Replaced,
        };
        ImportedRoom {
            id: id.to_string(),
            name: audit::name(id, None, Some(&room)),
            kind,
            changes: audit::changes_to(known, Some(&room), audit::SHORT),
        }
    });
    listed.collect()
}

fn is_changed(record: &ApiRooms, id: &RoomId, room: &ApiRoom) -> bool {
    let mut room = room.clone();
    room.take_pages(page_name);
    record.room(id).is_none_or(|(_, known)| *known != room)
}
