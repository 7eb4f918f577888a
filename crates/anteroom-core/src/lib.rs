//! Decides who goes in, who waits, and who is over the limit.
//!
//! Nothing here reads a clock, draws a random number, waits or moves bytes: facts come in through
//! `handle_*`, actions go out through `poll_*`, and `now` is an argument everywhere. What the
//! simulator proves is therefore what runs.
#![no_std]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

pub use anteroom_base::{decision, hash, id, room_clock, rules, split_mix, time};
pub use anteroom_queue::{estimate, inversion, order, waiting, watermark};

pub mod allocation;
pub mod lease;
pub mod ledger;
pub mod ledger_call;
pub mod newest;
pub mod origin;
pub mod room;
pub mod seats;
pub mod snapshot;
pub mod sync;
pub mod sync_loop;
pub mod ticket;
pub mod ticket_addresses;
