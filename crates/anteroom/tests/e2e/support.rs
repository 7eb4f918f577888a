//! A gateway as a process, a client with cookies, and waiting for conditions instead of times.

pub(crate) mod client;
pub(crate) mod command;
pub(crate) mod config;
pub(crate) mod group_queue;
pub(crate) mod operator;
pub(crate) mod origin;
pub(crate) mod process;
pub(crate) mod raw;
pub(crate) mod site;
pub(crate) mod stage;
pub(crate) mod visitors;

use anteroom_node::{SystemWallClock, WallClock as _};
use anteroom_room::time::Timestamp;
pub(crate) use anteroom_testkit::{TIMEOUT, eventually};

/// Returns the time of the machine's wall clock.
pub(crate) fn now() -> Timestamp {
    SystemWallClock.read()
}
