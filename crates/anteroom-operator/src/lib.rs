//! What do commands say to a running gateway, and how is its answer printed? `anteroom status` and
//! `anteroom room`.
//!
//! They know the gateway by its admin address alone: nothing is decided here, and no file of the
//! gateway's is read but the token.

mod asking;
pub mod room;
pub mod status;
