//! Overrides of single clients of rate limits, which every node reads from the store.
//!
//! [`client_overrides`] is the record and the changes to it, checked by the code that reads the
//! file. `anteroom-store` keeps it, by compare-and-swap. [`LiveLimits`] reads it and applies it to
//! the limits of the file. Verdicts on requests are not made here.

pub mod client_overrides;
mod live;

pub use live::{LimitCommandError, LiveLimits, Prepared};
