//! Metadata of a limit, as plain values of no particular format.

use std::collections::BTreeMap;

/// Content of `metadata`, in the order of its keys; empty if the file has none.
pub type Metadata = BTreeMap<String, Value>;

/// Value that a protobuf `Struct` can hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Null.
    Null,
    /// Boolean.
    Bool(bool),
    /// Number, as floating point: the wire has no integers.
    Number(f64),
    /// String.
    Text(String),
    /// List.
    List(Vec<Self>),
    /// Map.
    Map(Metadata),
}
