//! Operation of a gateway: checks, start, reload, logs and stats.

mod checking;
mod closed;
mod connections;
mod help;
mod logs;
mod reload;
mod starting;
mod stats;
mod traffic;
