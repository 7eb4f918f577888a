//! Shared store on Valkey or Redis: one server, a master with sentinels, or a cluster.
//!
//! [`Valkey`] implements the store of rooms: load, compare-and-swap, a clock, an identity,
//! counters. Its small scripts compare and swap and decide nothing, so the ledger on it is the one
//! that the simulator tests.
//!
//! [`ValkeyCounts`] keeps the request counts of clients. There a script decides, by the same
//! algorithms, as one round trip must be enough. The algorithms check each of its decisions.
//!
//! [`ValkeyLeases`] keeps the records from which requests are leased to nodes.
//!
//! Deliberately absent: retries of writes with an unknown outcome (the caller loads again), reads
//! from replicas (they lag), and commands that only some server products have.

mod access;
mod cluster;
mod connection;
mod counts;
mod durability;
mod failure;
mod health;
mod history;
mod info;
mod keys;
mod lease_records;
mod link;
mod observed_stream;
mod route;
mod script;
mod sentinel;
mod valkey;

pub use access::SetupError;
pub use counts::ValkeyCounts;
pub use health::{Findings, ServerFinding, Warning};
pub use lease_records::ValkeyLeases;
pub use valkey::Valkey;
