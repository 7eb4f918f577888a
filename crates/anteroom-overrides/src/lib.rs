//! What do operators say about single clients of limits while those act, and how does every node hear of it?
//!
//! A record beside those of the rooms, changed by compare-and-swap: `anteroom-config` decides what becomes of it,
//! by the code that reads the file; `anteroom-store` keeps it; here it is read again and laid over the file's
//! limits. Which calls are let through is not decided here.

mod live;
mod places;

pub use live::{LiveLimits, ObeyError, Prepared};
pub use places::Places;
