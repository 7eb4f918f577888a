//! Audit entries of changes of the rooms of the API.

use anteroom_config::api_rooms::{ApiRoom, ApiRooms};
use anteroom_config::overrides::{Actor, Change, Entry};
use anteroom_config::{Owner, Problem, RoomId};
use anteroom_room::time::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Edit, RoomRefusal};

/// Most bytes of a value in an entry about one room. Events and rules fit, so that a change of them
/// can be undone.
const LONG: usize = 8 * 1024;
/// Most bytes of a value in a list of many, and in an entry that would have more than [`ENTRY`].
pub(super) const SHORT: usize = 256;
/// Most bytes of all values of an entry. The newest one is in the record, whose size is limited.
const ENTRY: usize = 16 * 1024;
/// Parts of a room that are no keys of the file.
const DESCRIPTION: &str = "description";
const EVENTS: &str = "events";
const RULES: &str = "rules";
/// Key that every room has.
const NAME: &str = "name";
/// Most values of one entry. The newest entry is in the record, whose size is limited.
const LOGGED_CHANGES_MAX: usize = 200;

/// Returns a record with the change of some rooms in its log.
pub(super) fn with_entry(
    ids: &[RoomId],
    before: &ApiRooms,
    mut next: ApiRooms,
    (who, what): (&Actor, &str),
    at: u64,
) -> ApiRooms {
    let (what, changes, room_id) = match ids {
        [id] => {
            let (old, new) = (room(before, id), room(&next, id));
            let mut changes = changes_to(old, new, LONG);
            let bytes = changes
                .iter()
                .map(|change| change.before.to_string().len() + change.after.to_string().len());
            if bytes.sum::<usize>() > ENTRY {
                changes = changes_to(old, new, SHORT);
            }
            let what = format!("room {what} {}", name(id, old, new));
            (what, changes, Some(id.to_string()))
        }
        ids => {
            let changes = changes_of_all(ids, before, &next);
            (format!("rooms {what}"), changes, None)
        }
    };
    let entry = Entry {
        room_id,
        ..Entry::following(before, who, Timestamp(at), what, changes)
    };
    next.version = entry.version;
    next.newest = Some(entry);
    next
}

/// Returns the changes of several rooms: of each value, or only which rooms changed if those are
/// many.
fn changes_of_all(ids: &[RoomId], before: &ApiRooms, next: &ApiRooms) -> Vec<Change> {
    let mut all = Vec::new();
    let mut rooms = Vec::new();
    for id in ids {
        let (old, new) = (room(before, id), room(next, id));
        let name = name(id, old, new);
        let tag = |record: &ApiRooms| record.room(id).map(|(entry, _)| entry.tag());
        rooms.push(Change::new(&name, json!(tag(before)), json!(tag(next))));
        all.extend(
            changes_to(old, new, SHORT)
                .into_iter()
                .map(|change| Change {
                    key: format!("{name}: {}", change.key),
                    ..change
                }),
        );
    }
    if all.len() > LOGGED_CHANGES_MAX {
        rooms
    } else {
        all
    }
}

fn room<'a>(record: &'a ApiRooms, id: &RoomId) -> Option<&'a ApiRoom> {
    record.room(id).map(|(_, room)| room)
}

/// Returns the name of a room, or its id if it has none.
pub(super) fn name(id: &RoomId, old: Option<&ApiRoom>, new: Option<&ApiRoom>) -> String {
    let name = new.or(old).and_then(|room| room.values.get(NAME));
    let name = name.and_then(Value::as_str);
    name.map_or_else(|| id.to_string(), str::to_owned)
}

/// Returns the keys whose values differ. Of values with more than `bytes_max` bytes they have the
/// length.
pub(super) fn changes_to(
    before: Option<&ApiRoom>,
    after: Option<&ApiRoom>,
    bytes_max: usize,
) -> Vec<Change> {
    let value =
        |room: Option<&ApiRoom>, key: &str| room.map_or(Value::Null, |room| value_of(room, key));
    let keys = |room: Option<&ApiRoom>| -> Vec<String> {
        room.map(|room| room.values.keys().cloned().collect())
            .unwrap_or_default()
    };
    let mut keys: Vec<String> = [
        keys(before),
        keys(after),
        [DESCRIPTION, EVENTS, RULES].map(str::to_owned).to_vec(),
    ]
    .concat();
    keys.sort();
    keys.dedup();
    let is_empty = |value: &Value| [Value::Null, json!(""), json!([])].contains(value);
    let values = keys
        .into_iter()
        .map(|key| (value(before, &key), value(after, &key), key));
    let differing = values
        .filter(|(before, after, _)| before != after && !(is_empty(before) && is_empty(after)));
    let shown = |value| logged(value, bytes_max);
    differing
        .map(|(before, after, key)| Change::new(key, shown(before), shown(after)))
        .collect()
}

/// Returns the value of a key, as an entry has it.
fn value_of(room: &ApiRoom, key: &str) -> Value {
    match key {
        DESCRIPTION => json!(room.description),
        EVENTS => json!(room.events),
        RULES => json!(room.rules),
        key => room.values.get(key).cloned().unwrap_or_default(),
    }
}

/// Returns a value for the log; of a long one only its length.
fn logged(value: Value, bytes_max: usize) -> Value {
    let bytes = value.to_string().len();
    if bytes > bytes_max {
        json!(format!("({bytes} bytes)"))
    } else {
        value
    }
}

/// Whether an entry has only the length of a value.
fn is_cut(value: &Value) -> bool {
    let length = value.as_str().and_then(|text| text.strip_prefix('('));
    let digits = length.and_then(|text| text.strip_suffix(" bytes)"));
    digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns the room of an entry as it shall be when the change is undone: each key has its value
/// before it. A room that was deleted is created anew, with an id of its own.
///
/// # Errors
///
/// If the entry is not about one room, if it created the room, or if a key has changed since.
pub(super) fn undone(
    record: &ApiRooms,
    entry: &Entry,
    (new_id, at): (&RoomId, u64),
) -> Result<Edit, RoomRefusal> {
    let refuse = |key: &str, text: &str| {
        let text = format!("change {} {text}", entry.version);
        let owner = Owner::Room(entry.room_id.clone().unwrap_or_default());
        Problem::remark(owner, key, &text)
    };
    let id = entry.room_id.as_deref().and_then(RoomId::new);
    let Some(id) = id.filter(|_| !entry.changes.is_empty()) else {
        let text = "changed several rooms, or no value";
        return Err(RoomRefusal::NotAllowed(vec![refuse("", text)]));
    };
    let name = entry.changes.iter().find(|change| change.key == NAME);
    if name.is_some_and(|name| name.before.is_null()) {
        let text = "created the room: delete it instead";
        return Err(RoomRefusal::NotAllowed(vec![refuse("", text)]));
    }
    let was_deleted = name.is_some_and(|name| name.after.is_null());
    let present = record.room(&id).map(|(_, room)| room);
    let mut next = match present {
        Some(_) if was_deleted => {
            return Err(RoomRefusal::NotAllowed(vec![refuse(
                "",
                "deleted a room that exists",
            )]));
        }
        None if !was_deleted => return Err(RoomRefusal::NotFound),
        Some(present) => present.clone(),
        None => ApiRoom {
            created_at: at,
            created_by: entry.who.token.clone(),
            ..ApiRoom::default()
        },
    };
    let mut problems = Vec::new();
    for change in &entry.changes {
        let key = change.key.as_str();
        let is_same = was_deleted || value_of(&next, key) == change.after;
        if is_cut(&change.before) || is_cut(&change.after) {
            problems.push(refuse(key, "has only the length of this value"));
        } else if !is_same {
            problems.push(refuse(key, "is not the newest change of this value"));
        } else if !restore(&mut next, key, &change.before) {
            problems.push(refuse(key, "has a value that this version cannot read"));
        }
    }
    if !problems.is_empty() {
        return Err(RoomRefusal::NotAllowed(problems));
    }
    let id = if was_deleted { new_id.clone() } else { id };
    Ok(Edit::Write(id, Some(Box::new(next))))
}

/// Sets a key to a value of an entry. Returns whether the value can be read.
fn restore(room: &mut ApiRoom, key: &str, value: &Value) -> bool {
    fn read<T: DeserializeOwned + Default>(value: &Value, into: &mut T) -> bool {
        if value.is_null() {
            *into = T::default();
            return true;
        }
        let read = serde_json::from_value(value.clone());
        read.map(|value| *into = value).is_ok()
    }
    match key {
        DESCRIPTION => read(value, &mut room.description),
        EVENTS => read(value, &mut room.events),
        RULES => read(value, &mut room.rules),
        key => {
            if value.is_null() {
                room.values.remove(key);
            } else {
                room.values.insert(key.to_owned(), value.clone());
            }
            true
        }
    }
}
