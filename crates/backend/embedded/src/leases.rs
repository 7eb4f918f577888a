//! Where does a node that has only its data folder keep what was lent of calls, so that no restart
//! forgets it?
//!
//! [`LeaseFile`] is a store of records ([`anteroom_limit_store::lent`]) in one file, `lent.redb`.
//! All that waits to be written is written in one transaction, and nobody is answered before that
//! has reached the disk; so neither a process that is killed nor a machine that loses its power
//! forgets what was spent, as far as the disk keeps what it calls kept.
//!
//! # What a file is worth
//!
//! A file says by itself what was before it, in the epoch with which it begins. Nobody else can
//! know: one process at a time has it, and what that process saw before it brings along itself. So
//! a first start lends at once, where a server that is found empty waits for others to speak.
//!
//! | found | then |
//! | --- | --- |
//! | no file | a new one; nothing was spent before, unless this process has had one: then all was |
//! | a file that another process has | nothing is lent before that lets go of it |
//! | a damaged file | it is moved aside; in the new one all counts as spent |
//! | a copy: another file than the one that was written here | all counts as spent, for what came after it is lost |
//! | a file that a later version has written | nothing is lent |
//!
//! Deliberately absent: what is lent ([`anteroom_limit::lending`] decides), and a file of two
//! processes.

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
