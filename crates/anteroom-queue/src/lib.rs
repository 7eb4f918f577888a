//! Who waits, in which order, up to whom may one go in, and how long will it take?
//!
//! Pure arithmetic over what it is told. What is free, and who goes in, is decided by the core, which
//! has these modules among its own.
#![no_std]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

pub(crate) use anteroom_base::{decision, hash, id, rules, time};

pub mod estimate;
pub mod inversion;
pub mod order;
pub mod waiting;
pub mod watermark;
