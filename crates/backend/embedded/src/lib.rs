//! What a node keeps that has nothing but its data folder.
//!
//! [`DataDir`] is the folder: secrets, the admin token and a lock. [`Embedded`] is a record store
//! in memory with a journal in the folder. [`leases`] keeps what was leased of rate limits.

mod damage;
mod data_dir;
pub mod leases;
mod store;

use damage::is_damage;

pub use data_dir::{DataDir, DataDirError, DataDirLock};
pub use store::{Embedded, JournalLoss, faults};
