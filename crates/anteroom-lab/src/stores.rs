//! How do nodes share what they know? Models of it, each over the algorithms' own steps.
//!
//! A model has the order of things and the delays, and nothing that breaks: no message is lost, no node
//! fails, and all clocks are one. What it shows is the best that can be had.

mod counters;
pub(crate) mod desk;
mod gossip;
mod kafka;
mod leases;
mod local;
mod memcached;
mod valkey;

pub(crate) use counters::MemcachedCounters;
pub(crate) use gossip::Gossip;
pub(crate) use kafka::Kafka;
pub(crate) use leases::Leases;
pub(crate) use local::Local;
pub(crate) use memcached::Memcached;
pub(crate) use valkey::OneStore;
