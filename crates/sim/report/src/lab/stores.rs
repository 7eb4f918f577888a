//! Models of stores: ways in which nodes share counts, each over the algorithms' own steps.
//!
//! A model has the order of events and the delays, and no failures: no message is lost, no node
//! fails, and all clocks agree. Its mistakes happen even when all is well.

mod counters;
mod events;
mod gossip;
mod kafka;
mod leases;
mod local;
mod memcached;
mod node_counts;
mod outbox;
pub(crate) mod scheduler;
mod turns;
mod valkey;

pub(crate) use counters::MemcachedCounters;
pub(crate) use events::Events;
pub(crate) use gossip::Gossip;
pub(crate) use kafka::Kafka;
pub(crate) use leases::Leases;
pub(crate) use local::Local;
pub(crate) use memcached::{Memcached, RetryPolicy};
pub(crate) use valkey::OneStore;
