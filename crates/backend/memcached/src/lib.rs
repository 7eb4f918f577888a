//! Counts of calls on memcached, for whoever has one already: [`MemcachedCounts`].
//!
//! memcached can add to a number, and write a value over the one that was read. Windows are
//! numbers, so they are added to, and a call costs one round trip however many nodes call. All
//! other algorithms read a state, decide, and write it back if nobody else has written meanwhile;
//! where many nodes call for one client, most of that is in vain. It has no clock to ask and keeps
//! nothing for sure: what that means for a limit stands with [`MemcachedCounts`].
//!
//! The protocol (meta commands over TCP) is spoken here: what there is of clients has one call at a
//! time on a connection, and reads however much a server sends.
//!
//! Deliberately absent: TLS and passwords (a memcached belongs into a network of its own), rooms
//! and leases (they need a store that forgets nothing), and a second try of what may have been
//! charged.

mod connection;
mod counters;
mod counts;
mod expiry;
mod failure;
#[doc(hidden)]
pub mod fuzz;
mod keys;
mod link;
mod protocol;
mod swaps;
mod turns;
mod undo;
mod value;

pub use counts::MemcachedCounts;
