//! What the binary is made of, as a library, so that tests can use the parts without a process.
//!
//! One file per command. Here, and nowhere else, backends are named.

mod admin_tokens;
pub mod check;
pub mod command_line;
mod demo_gateways;
mod descriptors;
mod extras;
pub mod gateway;
mod listeners;
pub mod logging;
mod rate_limit_service;
pub mod serve;
pub mod simulate;

pub use anteroom_admin::client::{limits as limits_command, room, status};
pub use anteroom_demo as demo;
