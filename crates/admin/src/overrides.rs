//! What do operators say about single clients of limits while those act, and how does every node
//! hear of it?
//!
//! A record beside those of the rooms, changed by compare-and-swap: [`orders`] decides what becomes
//! of it, by the code that reads the file; `anteroom-store` keeps it; [`LiveLimits`] reads it again
//! and lays it over the file's limits. Which calls are let through is not decided here.

mod live;
pub mod orders;

pub use live::{LimitCommandError, LiveLimits, Prepared};
