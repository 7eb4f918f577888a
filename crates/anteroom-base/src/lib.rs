//! The words in which decisions are asked for and given: points in time, ids, the rules of a room,
//! why somebody waits.
//!
//! Values, and one stream of words for models, from which no decision draws. What follows from them is
//! decided in `anteroom-core`, which shows these modules as its own: whoever uses the core needs no second
//! name for them.
#![no_std]
#![deny(clippy::float_arithmetic)]

pub mod decision;
pub mod hash;
pub mod id;
pub mod room_clock;
pub mod rules;
pub mod split_mix;
pub mod time;
