//! Formats of records in a store and of JSON bodies.
//!
//! Core types are never serialised themselves. This crate has a struct of its own for each format,
//! and converts.

pub mod deployment;
pub mod ledger;
pub mod state;
pub mod waiting_status;
