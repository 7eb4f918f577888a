//! What does a room keep when something breaks? Seats, order and limits, over the whole time,
//! counted by the origin.
//!
//! One file for each thing that breaks.

mod clock;
mod disk;
mod folder;
mod journal;
mod mounted;
mod origin;
mod pause;
mod restart;
mod takeover;
