//! One row for each setting of a room that is a field of its own: the key, and where its value
//! goes.
//!
//! The reader of the file follows from the rows, and so does what operators may change while the
//! gateway runs. Keys that only mean something together are read by hand.

use serde_json::Value;

use crate::kind::{Kind, LiveKind};
use crate::model::RoomConfig;
use crate::reader::{Key, Table};

/// A key, and the field that its value goes to.
pub(crate) struct Row<K: Kind> {
    pub(crate) key: Key<K>,
    pub(crate) field: Field<K::Value>,
}

/// Where a value of type `V` stands in a room.
pub(crate) enum Field<V> {
    /// It always has a value: the key has a default, or must be there.
    Always {
        get: fn(&RoomConfig) -> &V,
        get_mut: fn(&mut RoomConfig) -> &mut V,
    },
    /// It has none when the key is left out.
    OrNone {
        get: fn(&RoomConfig) -> &Option<V>,
        get_mut: fn(&mut RoomConfig) -> &mut Option<V>,
    },
}

/// The field at this path, which always has a value.
macro_rules! always {
    ($($name:ident).+) => {
        $crate::room::row::Field::Always {
            get: |room| &room.$($name).+,
            get_mut: |room| &mut room.$($name).+,
        }
    };
}

/// The field at this path, which has a value or none.
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
    /// Reads the key from a file into its field. `None` if it must be there and cannot be read.
    fn read(&self, table: &mut Table<'_>, room: &mut RoomConfig) -> Option<()>;
}

/// A row that operators may also change while the gateway runs.
pub(crate) trait LiveRow: FileRow {
    /// The key.
    fn name(&self) -> &'static str;

    /// Whether the field may be without a value.
    fn may_be_none(&self) -> bool;

    /// Takes over a value that was typed; leaves the field alone where there is none.
    fn change(&self, table: &mut Table<'_>, room: &mut RoomConfig);

    /// Takes the value away, if the field may be without one.
    fn clear(&self, room: &mut RoomConfig);

    /// The value as it would be typed; `null` if there is none.
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
