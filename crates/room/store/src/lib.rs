//! Record stores: where ledgers live, and how nodes reach them.
//!
//! A store offers four things: load, compare-and-swap, its clock, its identity; counters besides.
//! It decides nothing: the ledger is a pure function in the core, and [`LedgerPlace`] runs it on
//! any [`Store`]. Which stores there are is not known here: each is a crate of its own, and each
//! runs [`conformance`].

pub mod conformance;
mod deployment;
mod hearing;
pub mod memory;
mod overrides;
mod store;
mod syncing;
pub mod wire;

pub use deployment::{Deployment, JoinError, Membership, TicketKeys, introduce, join, restore};
pub use hearing::{OverrideFeed, OverrideListener};
pub use overrides::{ChangeError, OverrideStore, RoomOverrideStore, is_overrides};
pub use store::{
    BoxFuture, Clock, CounterName, Expected, Identity, Loaded, Record, RecordKey, RecordVersion,
    Store, StoreError, Swap, chain,
};
pub use syncing::{Exchange, LedgerPlace, LedgerRole, SyncError};
