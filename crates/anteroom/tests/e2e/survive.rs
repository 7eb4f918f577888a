//! Failures: a room keeps seats, order and limits, all the time, as the origin counts.
//!
//! One file for each kind of failure.

mod clock;
mod disk;
mod folder;
mod journal;
mod mounted;
mod origin;
mod pause;
mod restart;
mod takeover;
