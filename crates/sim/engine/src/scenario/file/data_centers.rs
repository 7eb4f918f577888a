//! Keys that name data centers, nodes or stores.

use anteroom_config::Finding;
use anteroom_config::toml_file::{Key, Table, Text, quoted};

use super::{Frame, did_you_mean};

/// Creates a key that names a data center, a node or a store. The reader looks the name up where it
/// knows the data centers.
pub(super) const fn place(name: &'static str, allowed: &'static str) -> Key<Text<String>> {
    Key {
        name,
        kind: Text {
            allowed,
            read: |text| Ok(text.to_owned()),
        },
        default: None,
    }
}

pub(super) const DATA_CENTER: Key<Text<String>> = place("data_center", "the name of a data center");

/// Returns the index of a data center that a key names; reports an unknown name.
pub(super) fn find_data_center(
    table: &mut Table<'_>,
    key: &Key<Text<String>>,
    name: &str,
    frame: &Frame<'_>,
) -> Option<usize> {
    match frame.find(name)? {
        Ok(index) => Some(index),
        Err(nearest) => {
            refuse(table, key, name, nearest.map(did_you_mean));
            None
        }
    }
}

/// Reports that a key names nothing that exists.
pub(super) fn refuse(
    table: &mut Table<'_>,
    key: &Key<Text<String>>,
    text: &str,
    hint: Option<String>,
) {
    let location = table.location(key.name);
    let found = Finding::Value(quoted(text));
    table.notes.report(&location, found, key.kind.allowed, hint);
}
