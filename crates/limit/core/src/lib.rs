//! Rate-limit algorithms. Each is a pure step from a state, a point in time and a cost to the next
//! state and a verdict.
//!
//! Integers only. Deliberately absent: clocks, random numbers, keys, and where states are kept.
//! [`policy`] holds any of the algorithms in one type, for stores and for the config. [`registry`]
//! is the table of them, with the names and settings that files use.
#![no_std]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

pub mod ahead;
pub mod algorithm;
pub mod codec;
pub mod cost;
pub mod counters;
mod exact;
pub mod fine;
pub mod fixed_window;
pub mod gcra;
pub mod leaky_bucket;
pub mod leases;
mod paced;
pub mod policy;
pub mod quota;
pub mod rate;
pub mod registry;
pub mod settings;
pub mod sliding_log;
pub mod sliding_window;
pub mod sub_windows;
pub mod swapping;
#[cfg(test)]
mod testing;
pub mod time;
pub mod token_bucket;
pub mod verdict;
pub mod windows;
