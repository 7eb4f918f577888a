//! Probes of supervisors: whether to restart this process, and whether to route visitors to it.
//!
//! Unlike [`crate::health`], neither fails because a store is unavailable. A restart does not bring
//! a store back, and all other nodes are in the same state. A node without its store still lets
//! active visitors pass, and shows the others a page with the reason for their wait.

use std::sync::atomic::{AtomicBool, Ordering};

use anteroom_node::{Node, RoomHandle};
use anteroom_room::sync::ClosedBy;
use anteroom_room::time::{DurationMs, Timestamp};

use crate::api_rooms::LiveApiRooms;
use crate::bodies::{Liveness, Readiness};
use crate::clocks::Clocks;
use crate::extras::Extras;

/// Time after the start from which a node without a reply of its store is ready all the same. A
/// store that works replies in milliseconds.
const STORE_TIMEOUT: DurationMs = DurationMs(10_000);

/// Reads all rooms. That takes the locks that requests take: if one of them is never released, the
/// probe gets no response.
pub(crate) fn liveness(node: &Node) -> Liveness {
    let rooms = node.rooms();
    for room in &rooms {
        let _ = room.stats();
    }
    Liveness {
        live: true,
        rooms: rooms.len(),
    }
}

/// Readiness over the life of a process: no, then yes, and no again when the process is about to
/// end.
#[derive(Debug)]
pub(crate) struct Ready {
    started_at: Timestamp,
    has_been: AtomicBool,
}

impl Ready {
    /// Begins with a process that starts now.
    pub(crate) fn new(node: &Node) -> Self {
        Self {
            started_at: Clocks::read(node.clock()).room,
            has_been: AtomicBool::new(false),
        }
    }

    pub(crate) fn of(
        &self,
        node: &Node,
        api_rooms: &LiveApiRooms,
        extras: &dyn Extras,
    ) -> Readiness {
        if node.is_stopping() {
            return Readiness::not("this node returns its leases and ends");
        }
        if !api_rooms.are_known() {
            return Readiness::not(
                "neither the store nor a copy says which rooms the API has made",
            );
        }
        if !self.has_been.load(Ordering::Relaxed) {
            let is_waiting = Clocks::read(node.clock()).room.since(self.started_at) < STORE_TIMEOUT;
            if is_waiting && !node.rooms().iter().all(|room| has_synced(room)) {
                return Readiness::not("the store has not replied yet");
            }
            if is_waiting && node.rooms().iter().any(|room| is_unsafe(room)) {
                return Readiness::not("the store could still forget this node");
            }
            let is_joining = |extras: &dyn Extras| {
                let mut limits = extras.read().limits.into_values();
                limits.any(|limit| limit.is_joining_store)
            };
            if is_waiting && is_joining(extras) {
                return Readiness::not("the store of a limit grants this node nothing yet");
            }
            self.has_been.store(true, Ordering::Relaxed);
        }
        Readiness {
            ready: true,
            detail: None,
        }
    }
}

/// Whether this process is granted nothing yet, because its store could forget that it joined.
fn is_unsafe(room: &RoomHandle) -> bool {
    room.stats().snapshot.closed_by == Some(ClosedBy::UnsafeName)
}

fn has_synced(room: &RoomHandle) -> bool {
    room.stats().syncs_total > 0
}
