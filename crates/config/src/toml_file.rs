//! How is a TOML file read key by key, so that every mistake is told with its place, what was found
//! and what is allowed?
//!
//! Which keys there are, and what they mean together, is for whoever declares them. Nothing is
//! opened here: files are texts that somebody has read.

mod depth;
pub mod document;
pub mod duration;
pub mod kind;
pub mod notes;
pub mod problem;
pub mod reader;
pub mod source;
