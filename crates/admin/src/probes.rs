//! What do supervisors ask? Whether to restart this process, and whether to send visitors to it.
//!
//! Neither is the question that [`crate::health`] answers, and neither fails because a store is
//! away: a restart brings no store back, and whoever sends visitors elsewhere then finds all other
//! nodes in the same state, and in the end no node at all. A node without its store still lets
//! those inside pass, and shows the others a page that says why they wait.

use std::sync::atomic::{AtomicBool, Ordering};

use anteroom_node::{Node, RoomHandle};
use anteroom_room::time::{DurationMs, Timestamp};

use crate::bodies::{Liveness, Readiness};
use crate::clocks::Clocks;

/// A node that has not heard from its store for so long after its start gets visitors all the same.
/// The store answers in milliseconds where it answers at all; in ten seconds others would have
/// taken them.
const STORE_PATIENCE: DurationMs = DurationMs(10_000);

/// Whether the process can read its own rooms. That takes the locks that requests take: if one of
/// them is never let go, there is no answer, and whoever asked knows.
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

/// Whether visitors may be sent here: no, then yes, and no again when the process is about to end.
#[derive(Debug)]
pub(crate) struct Ready {
    started_at: Timestamp,
    has_been: AtomicBool,
}

impl Ready {
    /// Of a process that begins now.
    pub(crate) fn new(node: &Node) -> Self {
        Self {
            started_at: Clocks::read(node.clock()).room,
            has_been: AtomicBool::new(false),
        }
    }

    pub(crate) fn of(&self, node: &Node) -> Readiness {
        if node.is_stopping() {
            return Readiness::not("this node gives back what it was lent, and ends");
        }
        if !self.has_been.load(Ordering::Relaxed) {
            let is_patient =
                Clocks::read(node.clock()).room.since(self.started_at) < STORE_PATIENCE;
            if is_patient && !node.rooms().iter().all(|room| has_heard(room)) {
                return Readiness::not("the store has not answered yet");
            }
            self.has_been.store(true, Ordering::Relaxed);
        }
        Readiness {
            ready: true,
            detail: None,
        }
    }
}

fn has_heard(room: &RoomHandle) -> bool {
    room.stats().syncs_total > 0
}
