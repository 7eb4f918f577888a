//! How is a TOML file read key by key, so that every mistake is told with its place, what was found
//! and what is allowed?
//!
//! The config file is read with it, and so are other files, such as scenarios. Which keys there
//! are, and what they mean together, is for the one who declares them. Nothing is opened here:
//! files are texts that somebody has read.

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
