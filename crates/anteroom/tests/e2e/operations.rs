//! What operators do with a gateway, and what they see of it.

mod checking;
mod closed;
mod connections;
mod help;
mod logs;
mod reload;
mod starting;
mod stats;
mod traffic;
