//! Store of rate-limit leases in the data folder, for nodes without a server.
//!
//! [`LeaseFile`] is a store of records ([`anteroom_limit_store::lease_store`]) in one file,
//! `lent.redb`. All pending writes go into one transaction, and get their replies only after the
//! transaction has reached the disk. So neither a killed process nor a power failure loses what was
//! spent, if the disk keeps what it has synced.
//!
//! # Trust in a file
//!
//! The first epoch of a file says what was before it. No other node can know, because one process
//! at a time has the file. So a first start grants leases at once, unlike a server that is found
//! empty.
//!
//! | found | then |
//! | --- | --- |
//! | no file | a new one; nothing was spent before. If this process has had a file, all was spent |
//! | a file that another process has | no leases until that process releases it |
//! | a damaged file | it is moved aside; in the new one everything counts as spent |
//! | a copy of the file that was written here | everything counts as spent: later writes are lost |
//! | a file of a later version | no leases |
//!
//! Deliberately absent: the size of leases ([`anteroom_limit::leases`] decides), and files that two
//! processes share.

mod change;
mod failure;
mod file;
mod mark;
mod queue;
mod records;
mod tables;
mod time;

pub use records::{Bounds, LeaseFile};
pub use time::FileClock;
