//! Request counts on memcached, for deployments that have one: [`MemcachedCounts`].
//!
//! memcached can add to a number, and compare and swap a value. Windows are numbers that are added
//! to, so a request costs one round trip however many nodes there are. All other algorithms read a
//! state, decide, and write it back unless another node has written meanwhile; with many nodes for
//! one client, most attempts fail. It has no clock and may evict anything; [`MemcachedCounts`]
//! describes what that means for a limit.
//!
//! The protocol (meta commands over TCP) is implemented here: existing clients allow one request at
//! a time on a connection, and read replies of any length.
//!
//! Deliberately absent: TLS and passwords (memcached belongs in a network of its own), rooms and
//! leases (they need a store that loses nothing), and retries of requests that may have been
//! counted.

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
mod queues;
mod swaps;
mod undo;
mod value;

pub use counts::MemcachedCounts;
