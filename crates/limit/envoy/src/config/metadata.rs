//! What may be told to Envoy beside a limit: plain values, free of any format.

use std::collections::BTreeMap;

/// What stands under `metadata`, in the order of its keys; empty where nothing does.
pub type Metadata = BTreeMap<String, Value>;

/// A value that a protobuf `Struct` can hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A number. Whole ones too: the wire knows no others.
    Number(f64),
    /// A text.
    Text(String),
    /// Several values.
    List(Vec<Self>),
    /// Values with names.
    Map(Metadata),
}
