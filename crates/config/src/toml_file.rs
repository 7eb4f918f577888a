//! Reader of TOML files, key by key. Every mistake is reported with its location, what was found
//! and what is allowed.
//!
//! The config file and other files, such as scenarios, use it. The declarations
//! of the keys say what they mean together. Nothing is opened here: callers pass the text.

mod depth;
pub mod document;
pub mod duration;
pub mod kind;
pub mod notes;
pub mod problem;
pub mod reader;
pub mod source;

pub use document::Document;
pub use kind::{
    Choice, Duration, InvalidValue, Kind, Moment, Number, Switch, Text, Whole, nearest,
};
pub use notes::{Located, Location, Notes};
pub use problem::quoted;
pub use reader::{Element, Key, Table};
