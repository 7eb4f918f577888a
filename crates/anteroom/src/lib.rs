//! The parts of the binary as a library, so that tests can use them without a process.
//!
//! There is one file per command. This is the only crate that names backends.

mod admin_tokens;
pub mod check;
pub mod command_line;
mod demo_gateways;
mod descriptors;
pub mod gateway;
mod help;
mod listeners;
pub mod logging;
mod other_stats;
mod rate_limit_service;
pub mod serve;
pub mod simulate;
mod terminal;

pub use anteroom_admin::client::{limits as limits_command, room, status};
pub use anteroom_demo as demo;
