//! Data folder of a node, and the stores of a node without a server.
//!
//! [`DataDir`] is the folder: secrets, the admin token and a lock. [`Embedded`] is a record store
//! in memory with a journal in the folder. [`leases`] is a store of rate-limit leases in a file.

mod damage;
mod data_dir;
pub mod leases;
mod store;

use damage::is_damage;

pub use data_dir::{DataDir, DataDirError, DataDirLock};
pub use store::{Embedded, JournalLoss, faults};
