//! Do real stores answer as the simulator saw?
//!
//! What the simulator judges is the core's ledger, kept in its own memory. What runs is the same
//! ledger behind a store: read, changed, written down, swapped. Here the simulator's schedules are
//! played that way, and every answer and every record compared. For tests; nothing here ships.
//!
//! Deliberately absent: races for a record, which a schedule does not have; the stores' conformance
//! suite has them.

mod play;
mod stage;

pub use play::{PlayError, Rig, play};
