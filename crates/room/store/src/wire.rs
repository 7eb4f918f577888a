//! How facts are written down: records of a store, JSON bodies.
//!
//! Core types are never serialised themselves; this crate has a struct of its own for each form
//! and converts.

pub mod deployment;
pub mod ledger;
pub mod place;
pub mod state;
