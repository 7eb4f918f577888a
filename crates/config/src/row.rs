//! One row for each setting that is a field of its own: the key, and where its value goes.
//!
//! The reader of the file follows from the rows, and so does what operators may change while the
//! gateway runs. Keys that only mean something together are read by hand.

use serde_json::Value;

use crate::kind::{Kind, Shown};
use crate::reader::{Key, Table};

/// A key, and the field of `M` that its value goes to.
pub(crate) struct Row<M, K: Kind> {
    pub(crate) key: Key<K>,
    pub(crate) field: Field<M, K::Value>,
}

/// Where a value of type `V` stands in an `M`.
pub(crate) enum Field<M, V> {
    /// It always has a value: the key has a default, or must be there.
    Always {
        get: fn(&M) -> &V,
        get_mut: fn(&mut M) -> &mut V,
    },
    /// It has none when the key is left out.
    OrNone {
        get: fn(&M) -> &Option<V>,
        get_mut: fn(&mut M) -> &mut Option<V>,
    },
}

/// The field at this path, which always has a value.
macro_rules! always {
    ($($name:ident).+) => {
        $crate::row::Field::Always {
            get: |model| &model.$($name).+,
            get_mut: |model| &mut model.$($name).+,
        }
    };
}

/// The field at this path, which has a value or none.
macro_rules! or_none {
    ($($name:ident).+) => {
        $crate::row::Field::OrNone {
            get: |model| &model.$($name).+,
            get_mut: |model| &mut model.$($name).+,
        }
    };
}

pub(crate) use {always, or_none};

/// A row of any kind: what the reader of a file needs.
pub(crate) trait FileRow<M> {
    /// Reads the key from a file into its field. `None` if it must be there and cannot be read.
    fn read(&self, table: &mut Table<'_>, model: &mut M) -> Option<()>;
}

/// A row that operators may also change while the gateway runs.
pub(crate) trait LiveRow<M>: FileRow<M> {
    /// The key.
    fn name(&self) -> &'static str;

    /// Whether the field may be without a value.
    fn may_be_none(&self) -> bool;

    /// Takes over a value that was typed; leaves the field alone where there is none.
    fn change(&self, table: &mut Table<'_>, model: &mut M);

    /// Takes the value away, if the field may be without one.
    fn clear(&self, model: &mut M);

    /// The value as it would be typed; `null` if there is none.
    fn shown(&self, model: &M) -> Value;
}

impl<M, K: Kind> FileRow<M> for Row<M, K> {
    fn read(&self, table: &mut Table<'_>, model: &mut M) -> Option<()> {
        match &self.field {
            Field::Always { get_mut, .. } if self.key.default.is_none() => {
                *get_mut(model) = table.required(&self.key)?;
            }
            Field::Always { get_mut, .. } => *get_mut(model) = table.defaulted(&self.key),
            Field::OrNone { get_mut, .. } => *get_mut(model) = table.optional(&self.key),
        }
        Some(())
    }
}

impl<M, K: Shown> LiveRow<M> for Row<M, K> {
    fn name(&self) -> &'static str {
        self.key.name
    }

    fn may_be_none(&self) -> bool {
        matches!(self.field, Field::OrNone { .. })
    }

    fn change(&self, table: &mut Table<'_>, model: &mut M) {
        let Some(value) = table.optional(&self.key) else {
            return;
        };
        match &self.field {
            Field::Always { get_mut, .. } => *get_mut(model) = value,
            Field::OrNone { get_mut, .. } => *get_mut(model) = Some(value),
        }
    }

    fn clear(&self, model: &mut M) {
        if let Field::OrNone { get_mut, .. } = &self.field {
            *get_mut(model) = None;
        }
    }

    fn shown(&self, model: &M) -> Value {
        match &self.field {
            Field::Always { get, .. } => self.key.kind.shown(get(model)),
            Field::OrNone { get, .. } => {
                let value = get(model).as_ref();
                value.map_or(Value::Null, |value| self.key.kind.shown(value))
            }
        }
    }
}
