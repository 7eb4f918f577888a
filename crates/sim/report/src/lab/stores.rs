//! How do nodes share what they know? Models of it, each over the algorithms' own steps.
//!
//! A model has the order of things and the delays, and nothing that breaks: no message is lost, no
//! node fails, and all clocks are one. What it gets wrong is wrong also when all is well.

mod counters;
pub(crate) mod desk;
mod events;
mod gossip;
mod kafka;
mod known;
mod leases;
mod local;
mod memcached;
mod news;
mod turns;
mod valkey;

pub(crate) use counters::MemcachedCounters;
pub(crate) use events::Events;
pub(crate) use gossip::Gossip;
pub(crate) use kafka::Kafka;
pub(crate) use leases::Leases;
pub(crate) use local::Local;
pub(crate) use memcached::{Manner, Memcached};
pub(crate) use valkey::OneStore;
