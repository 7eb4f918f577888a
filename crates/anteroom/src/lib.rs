//! What the binary is made of, as a library, so that tests can use the parts without a process.
//!
//! One file per command. Here, and nowhere else, backends are named.

mod admin_tokens;
pub mod check;
mod extras;
mod files;
pub mod gateway;
pub mod logging;
mod page_files;
pub mod serve;
pub mod simulate;
pub mod store_password;
mod stores;

pub use anteroom_demo as demo;
pub use anteroom_operator::{room, status};
