//! Request counts that nodes exchange with each other, without any server: [`GossipCounts`].
//!
//! Every node decides at once, by what it has counted itself and what others have reported. Ten
//! times a second it reports its own counts to all others. Each counter of [`CounterTable`] holds
//! one total per node that only grows. So a message that is lost, doubled, late or out of order
//! does no harm. A library (foca: SWIM) finds the other nodes. It runs here without sockets or
//! clocks ([`Node`]), so tests run whole networks in simulated time.
//!
//! The price: between two messages a node does not know what the others have admitted.
//! [`GossipCounts`] states how far the limit can be exceeded, and the tests measure it.
//!
//! Deliberately absent: algorithms that need a transaction, encryption (messages hold no address
//! and no name, only keyed digests), and counts that survive the end of all nodes.

mod acquire;
mod cell;
mod counter_table;
mod counts;
mod departed;
mod event_counts;
mod failure;
#[doc(hidden)]
pub mod fuzz;
mod members;
mod message;
mod names;
mod node;
mod outlet;
mod pending;
mod reports;
mod running;
mod seal;

pub use cell::WriterId;
pub use counter_table::{COUNTERS_MAX, CounterTable};
pub use counts::{GossipCounts, GossipSettings};
pub use failure::{OpenError, SecretError, SecretFileError};
pub use message::DATAGRAM_LARGEST;
pub use node::{Node, NodeSettings, Outgoing};
pub use reports::{REPEAT_PERIOD, SENDS_PER_CHANGE};
pub use seal::Secret;
