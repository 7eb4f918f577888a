//! Runs the core: reads clocks, draws random bytes, keeps one loop per room that syncs with the
//! store, and shuts down in order.
//!
//! Decides nothing itself: a request's verdict comes out of [`anteroom_room::room::Room`], and for
//! a visitor whose ticket says everything out of the ticket alone. Knows no backend and no HTTP.

mod clock;
mod held_file;
mod node;
mod outcome;
mod processes;
mod random;
mod room;
mod stores;

pub use anteroom_room::room::passage::Intent;
pub use clock::{HandClock, NodeClock, RoomClock, SystemWallClock, WallClock};
pub use node::{Node, NodeSettings, StartError};
pub use outcome::{Arrival, Outcome, Pass};
pub use room::{CommandOutcome, RoomCommandError, RoomHandle, RoomStats};
pub use stores::Stores;
