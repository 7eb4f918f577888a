//! Replay of simulated schedules on real stores, which must give the same replies.
//!
//! The simulator checks the core's ledger in its own memory. Production runs the same ledger behind
//! a store: read, changed, written, swapped. The replay runs the simulator's schedules that way,
//! and compares every reply and every record. For tests; nothing here ships.
//!
//! Races for a record are absent, because a schedule has none; the stores' conformance suite has
//! them.

mod play;
mod stage;

pub use play::{PlayError, Rig, play};
