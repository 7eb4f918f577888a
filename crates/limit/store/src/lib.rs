//! Stores for the state that a limit keeps of each client.
//!
//! The states and the decisions on them are those of [`anteroom_limit`]. This crate keeps the
//! states: for how many clients, where, and what happens when several limits or several nodes
//! acquire at once.
//!
//! - [`local`]: states in this process, one table per limit.
//! - [`mixed`]: states in this process, one table for thousands of limits.
//! - [`shared`]: what a store offers that several nodes share.
//! - [`lease_store`]: what a store offers that grants leases to nodes.
//!
//! All stores handle outages the same way: a [`link`] is the connection to one server, a
//! [`circuit`] decides when to stop trying it, and an [`outage`] decides when to log that.
//!
//! Deliberately absent: who a client is, and the response to a request.

pub mod circuit;
pub mod clock;
pub mod conformance;
mod key;
pub mod lease_store;
pub mod leases;
pub mod link;
pub mod local;
pub mod mixed;
pub mod outage;
mod shards;
pub mod shared;
mod table;

pub use key::{ClientKey, KeyMaker};
