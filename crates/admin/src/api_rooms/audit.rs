//! Audit entries of changes of the rooms of the API.

use anteroom_config::RoomId;
use anteroom_config::api_rooms::{ApiRoom, ApiRooms};
use anteroom_config::overrides::{Actor, Change, Entry};
use anteroom_room::time::Timestamp;
use serde_json::{Value, json};

/// Most bytes of a value in the audit log.
const LOGGED_BYTES_MAX: usize = 256;
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
    let (what, changes) = match ids {
        [id] => {
            let (old, new) = (room(before, id), room(&next, id));
            let name = name(id, old, new);
            (format!("room {what} {name}"), changes(old, new))
        }
        ids => (format!("rooms {what}"), changes_of_all(ids, before, &next)),
    };
    let entry = Entry::following(before, who, Timestamp(at), what, changes);
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
        all.extend(changes(old, new).into_iter().map(|change| Change {
            key: format!("{name}: {}", change.key),
            ..change
        }));
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
    let name = new.or(old).and_then(|room| room.values.get("name"));
    let name = name.and_then(Value::as_str);
    name.map_or_else(|| id.to_string(), str::to_owned)
}

/// Returns the keys whose values differ.
pub(super) fn changes(before: Option<&ApiRoom>, after: Option<&ApiRoom>) -> Vec<Change> {
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
    let changes = keys
        .into_iter()
        .map(|key| Change::new(&key, value(before, &key), value(after, &key)));
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
