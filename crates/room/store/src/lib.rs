//! Record stores, which keep ledgers, and how nodes reach them.
//!
//! A store offers records with load and compare-and-swap, counters, its clock and its identity. It
//! decides nothing: the ledger is a pure function in the core, and [`StoredLedger`] runs it on any
//! [`Store`]. Each store is a crate of its own, unknown to this one, and runs [`conformance`].

pub mod conformance;
mod deployment;
pub mod fuzz;
mod history;
mod left_requests;
pub mod memory;
mod override_reader;
mod overrides;
mod store;
mod syncing;
pub mod wire;

pub use deployment::{
    Deployment, JoinError, Membership, TicketKeys, join, known, register_data_center, restore,
};
pub use history::{
    HistoryBound, HistoryGrain, HistoryName, HistoryRow, HistoryRows, HistorySpan,
    history_bytes_of, history_kept_from,
};
pub use override_reader::{OverrideFeed, OverrideListener};
pub use overrides::{ChangeError, OverrideStore, RoomOverrideStore, is_overrides};
pub use store::{
    BoxFuture, Clock, CounterName, Durability, Expected, Identity, LEFT_FOR, LEFT_MAX, LeftChanges,
    LeftId, LeftRequest, Loaded, NOTE_FOR, NOTES_MAX, Note, Record, RecordKey, RecordVersion,
    Store, StoreError, StoreFacts, Swap, chain,
};
pub use syncing::{Exchange, LedgerRole, StoredLedger, SyncError};
