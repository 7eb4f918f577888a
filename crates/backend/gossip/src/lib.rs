//! Counts of calls that nodes tell each other, without any server: [`GossipCounts`].
//!
//! Every node decides at once, by what it has counted itself and what it has heard. Ten times a
//! second it tells all others what it has counted ([`CounterTable`]: each counter is a total that
//! only grows, one for each node, so a message that is lost, doubled, late or out of order does no
//! harm). Who the others are is found out by a kept library (foca: SWIM), driven here without
//! sockets or clocks ([`Node`]), so that tests run whole networks in a time of their own.
//!
//! What that costs: between two messages nobody knows what the others have admitted. How much too
//! many that makes is said with [`GossipCounts`], and measured by the tests.
//!
//! Deliberately absent: algorithms that need a transaction (nobody could carry it out), encryption
//! (what is told holds no address and no name, only digests by the secret), and counts that outlast
//! all nodes.

mod behind;
mod board;
mod cell;
mod counts;
mod event_counts;
mod failure;
#[doc(hidden)]
pub mod fuzz;
mod judging;
mod members;
mod message;
mod names;
mod news;
mod node;
mod outlet;
mod running;
mod seal;
mod telling;

pub use board::{COUNTERS_MAX, CounterTable};
pub use cell::WriterId;
pub use counts::{GossipCounts, GossipSettings};
pub use failure::{OpenError, SecretError, SecretFileError};
pub use message::DATAGRAM_LARGEST;
pub use node::{Node, NodeSettings, Outgoing};
pub use seal::Secret;
pub use telling::{REPEAT_PERIOD, TELLS};
