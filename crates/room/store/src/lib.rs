//! Where ledgers and counts live.
//!
//! A store offers four things: load, compare-and-swap, its clock, its identity; counters besides.
//! It decides nothing: the ledger is a pure function in the core, and [`LedgerPlace`] runs it on
//! whatever store there is. [`Embedded`] needs no other process: memory, and a journal on disk.

pub mod conformance;
mod damage;
mod data_dir;
mod deployment;
mod embedded;
mod hearing;
mod held_file;
pub mod memory;
mod orders;
mod processes;
mod store;
mod syncing;
pub mod wire;

pub use damage::is_damage;
pub use data_dir::{DataDir, DataDirError, DataDirLock, Deployment, TicketKeys};
pub use deployment::{JoinError, Membership, introduce, join, restore};
pub use embedded::{Embedded, JournalLoss, faults};
pub use hearing::{Hearing, Listener};
pub use held_file::HeldFile;
pub use orders::{ChangeError, OrdersPlace, SaidPlace};
pub use processes::ProcessFile;
pub use store::{
    BoxFuture, Clock, CounterName, Expected, Identity, Loaded, Record, RecordKey, RecordVersion,
    Store, StoreError, Swap, chain,
};
pub use syncing::{Exchange, LedgerPlace, LedgerRole, SyncError};
