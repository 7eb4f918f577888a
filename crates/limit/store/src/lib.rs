//! Where is it kept how much each client has called?
//!
//! What a limit remembers of a client is a state of [`anteroom_limit`], which also decides. This
//! crate keeps the states: for how many clients, where, and what happens if several limits, or
//! several nodes, are charged at once.
//!
//! [`local`] keeps them in this process, a memory for each limit; [`mixed`] keeps those of
//! thousands of limits in one; [`shared`] is what a store offers that several nodes share, and
//! [`lent`] what one offers from which calls are lent to nodes.
//!
//! What all stores need when they do not answer is here once: a [`link`] is the way to one server,
//! a [`circuit`] says when it is left alone, and an [`outage`] what the log says of that.
//!
//! Deliberately absent: who a client is, and what it is told.

pub mod circuit;
pub mod clock;
pub mod conformance;
mod key;
pub mod lending;
pub mod lent;
pub mod link;
pub mod local;
pub mod mixed;
pub mod outage;
mod shards;
pub mod shared;
mod table;

pub use key::{CallKey, KeyMaker};
