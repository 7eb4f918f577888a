//! How facts are written down: the config file, the journal, JSON bodies.
//!
//! Core types are never serialised themselves; this crate has a struct of its own for each form
//! and converts.

pub mod config;
pub mod deployment;
#[doc(hidden)]
pub mod fuzz;
pub mod language;
pub mod ledger;
pub mod orders;
pub mod place;
pub mod state;
pub mod time_text;
pub mod words;
