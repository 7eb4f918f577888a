//! The shared store on Valkey or Redis: one server, a master that sentinels watch, or a cluster.
//!
//! [`Valkey`] offers what every store offers: load, compare-and-swap, a clock, an identity,
//! counters. Three small scripts run at the server; they compare and swap and decide nothing, so
//! the ledger on it is the one that the simulator knows.
//!
//! [`ValkeyCounts`] keeps how much clients have called. There a script does decide, by the same
//! algorithms as everywhere, for one round trip must be enough; each answer is held against the
//! algorithms' own word.
//!
//! [`ValkeyLeases`] keeps the records from which calls are lent to nodes; again the scripts decide
//! nothing.
//!
//! Deliberately absent: a second try of a write whose outcome is unknown (the caller loads again
//! and sees), reads from replicas (they are late), and anything that a server of another make would
//! not understand.

mod access;
mod checking;
mod cluster;
mod connection;
mod counts;
mod failure;
mod info;
mod keys;
mod lent;
mod link;
mod route;
mod script;
mod sentinel;
mod valkey;
mod witness;

pub use access::SetupError;
pub use checking::{Findings, ServerFinding, Warning};
pub use counts::ValkeyCounts;
pub use lent::ValkeyLeases;
pub use valkey::Valkey;
