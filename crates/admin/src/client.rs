//! What do commands say to a running gateway, and how is its answer printed? `anteroom status`,
//! `anteroom room` and `anteroom limits`.
//!
//! They know the gateway by its admin address alone: nothing is decided here, and no file of the
//! gateway's is read but the token.

mod asking;
pub mod limits;
mod options;
pub mod room;
mod saying;
pub mod status;
mod text;
