//! One row for each setting of a room that is a field of its own: the key and the field.
//!
//! The rows define the reader of the file, and what operators may change while the gateway runs.
//! Keys that only mean something together are read by code.

use serde_json::Value;

use crate::kind::{Kind, LiveKind};
use crate::model::RoomConfig;
use crate::reader::{Key, Table};

/// Key, and the field for its value.
pub(crate) struct Row<K: Kind> {
    pub(crate) key: Key<K>,
    pub(crate) field: Field<K::Value>,
}

/// Field of a room for a value of type `V`.
pub(crate) enum Field<V> {
    /// The field always has a value: the key has a default, or is required.
    Always {
        get: fn(&RoomConfig) -> &V,
        get_mut: fn(&mut RoomConfig) -> &mut V,
    },
    /// The field has no value if the key is left out.
    OrNone {
        get: fn(&RoomConfig) -> &Option<V>,
        get_mut: fn(&mut RoomConfig) -> &mut Option<V>,
    },
}

/// Names the field at this path, which always has a value.
macro_rules! always {
    ($($name:ident).+) => {
        $crate::room::row::Field::Always {
            get: |room| &room.$($name).+,
            get_mut: |room| &mut room.$($name).+,
        }
    };
}

/// Names the field at this path, which may have no value.
macro_rules! or_none {
    ($($name:ident).+) => {
        $crate::room::row::Field::OrNone {
            get: |room| &room.$($name).+,
            get_mut: |room| &mut room.$($name).+,
        }
    };
}

pub(crate) use {always, or_none};

/// A row of any kind: what the reader of a file needs.
pub(crate) trait FileRow {
    /// Reads the key from a file into its field. `None` if it is required and cannot be read.
    fn read(&self, table: &mut Table<'_>, room: &mut RoomConfig) -> Option<()>;
}

/// A row that operators may also change while the gateway runs.
pub(crate) trait LiveRow: FileRow {
    /// Returns the name of the key.
    fn name(&self) -> &'static str;

    /// Whether the field may have no value.
    fn may_be_none(&self) -> bool;

    /// Sets a value that was typed; keeps the field if there is none.
    fn change(&self, table: &mut Table<'_>, room: &mut RoomConfig);

    /// Removes the value, if the field may have none.
    fn clear(&self, room: &mut RoomConfig);

    /// Returns the value as it would be typed; `null` if there is none.
    fn value(&self, room: &RoomConfig) -> Value;
}

impl<K: Kind> FileRow for Row<K> {
    fn read(&self, table: &mut Table<'_>, room: &mut RoomConfig) -> Option<()> {
        match &self.field {
            Field::Always { get_mut, .. } if self.key.default.is_none() => {
                *get_mut(room) = table.required(&self.key)?;
            }
            Field::Always { get_mut, .. } => *get_mut(room) = table.defaulted(&self.key),
            Field::OrNone { get_mut, .. } => *get_mut(room) = table.optional(&self.key),
        }
        Some(())
    }
}

impl<K: LiveKind> LiveRow for Row<K> {
    fn name(&self) -> &'static str {
        self.key.name
    }

    fn may_be_none(&self) -> bool {
        matches!(self.field, Field::OrNone { .. })
    }

    fn change(&self, table: &mut Table<'_>, room: &mut RoomConfig) {
        let Some(value) = table.optional(&self.key) else {
            return;
        };
        match &self.field {
            Field::Always { get_mut, .. } => *get_mut(room) = value,
            Field::OrNone { get_mut, .. } => *get_mut(room) = Some(value),
        }
    }

    fn clear(&self, room: &mut RoomConfig) {
        if let Field::OrNone { get_mut, .. } = &self.field {
            *get_mut(room) = None;
        }
    }

    fn value(&self, room: &RoomConfig) -> Value {
        match &self.field {
            Field::Always { get, .. } => self.key.kind.typed(get(room)),
            Field::OrNone { get, .. } => {
                let value = get(room).as_ref();
                value.map_or(Value::Null, |value| self.key.kind.typed(value))
            }
        }
    }
}
