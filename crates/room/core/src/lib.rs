//! Decides who is admitted and who waits.
//!
//! Nothing here reads a clock, draws a random number, waits or moves bytes: facts come in through
//! `handle_*`, actions go out through `poll_*`, and `now` is an argument everywhere. The simulator
//! therefore runs the same code as production.
#![no_std]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

pub mod allocation;
pub mod estimate;
pub mod event;
pub mod figures;
pub mod hash;
pub mod histogram;
pub mod id;
pub mod inversion;
pub mod lease;
pub mod ledger;
pub mod ledger_exchange;
pub mod newest_seats;
pub mod order;
pub mod origin;
pub mod queue_position;
pub mod record_view;
pub mod room;
pub mod room_clock;
pub mod rules;
pub mod seats;
pub mod split_mix;
pub mod statistics;
pub mod store;
pub mod sync;
pub mod sync_loop;
pub mod ticket;
pub mod ticket_addresses;
pub mod time;
pub mod visitor_code;
pub mod wait_forecast;
pub mod waiting;
pub mod watermark;
