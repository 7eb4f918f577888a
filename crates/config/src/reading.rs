//! How are other TOML files read the way the config file is? The same tables, kinds of values and
//! problems, for whoever has a file of its own.
//!
//! Which keys such a file has, its owner declares; the keys that decide who goes in and who waits
//! are the config file's, so that a rehearsal is told of limits in the words of the gateway.

pub use super::document::Document;
pub use super::kind::{
    Choice, Duration, Kind, Moment, Number, Refusal, Switch, Text, Whole, nearest,
};
pub use super::notes::{Notes, Placed, Spot};
pub use super::problem::quoted;
pub use super::reader::{Element, Key, Table};
pub use super::room::{read_limits, read_rules};
pub use super::server::data_center;
