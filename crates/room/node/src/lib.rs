//! Node: reads clocks, draws random bytes, runs one sync loop per room, and shuts down in order.
//!
//! It decides nothing itself: the verdict about a request comes from [`anteroom_room::room::Room`],
//! or from the ticket alone if that suffices. It knows no backend and no HTTP.

mod clock;
mod clock_watch;
mod held_commands_file;
mod history;
mod node;
mod outcome;
mod processes;
mod random;
mod room;
mod stores;

pub use anteroom_room::room::request_flow::Intent;
pub use clock::{HandClock, NodeClock, RoomClock, SystemWallClock, WallClock};
pub use clock_watch::{ClockDifference, ClockWatch, OtherOwner};
pub use history::{HistoryStats, OriginCounts};
pub use node::{Node, NodeSettings, StartError};
pub use outcome::{Arrival, BegunDecision, Look, OpenedTicket, Outcome, Pass};
pub use room::{CommandOutcome, DataCenterOfRoom, Leave, RoomCommandError, RoomHandle, RoomStats};
pub use stores::Stores;
