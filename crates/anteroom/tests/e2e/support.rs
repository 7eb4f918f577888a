//! A gateway as a process, a client with a cookie jar, and waiting for conditions instead of time.

pub(crate) mod client;
pub(crate) mod command;
pub(crate) mod config;
pub(crate) mod crowd;
pub(crate) mod line;
pub(crate) mod operator;
pub(crate) mod origin;
pub(crate) mod process;
pub(crate) mod raw;
pub(crate) mod site;
pub(crate) mod stage;

use anteroom_node::{SystemWallClock, WallClock as _};
use anteroom_room::time::Timestamp;
pub(crate) use anteroom_testkit::{PATIENCE, eventually};

/// The time by the machine's wall clock.
pub(crate) fn now() -> Timestamp {
    SystemWallClock.read()
}
