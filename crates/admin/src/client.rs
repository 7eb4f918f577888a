//! Commands that talk to a running gateway: `anteroom status`, `anteroom history`,
//! `anteroom report`, `anteroom room` and `anteroom limits`.
//!
//! They use only the gateway's admin address and, of its files, only the token. The gateway makes
//! all decisions.

mod commands;
pub mod history;
mod http;
pub mod limits;
mod options;
pub mod reload;
pub mod report;
pub mod room;
pub mod status;
mod text;
