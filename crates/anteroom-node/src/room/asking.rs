//! Waiting for one round trip to the parent, together with everybody else who does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::RoomHandle;

/// Longest wait of a visitor for its parent. Longer than a busy disk takes, shorter than anybody
/// notices; after it the visitor is queued.
pub(super) const PATIENCE: Duration = Duration::from_millis(250);

/// The rounds of a room's conversation with its parent, by number.
pub(super) struct Rounds {
    wake: Notify,
    begun: watch::Sender<u64>,
    ended: watch::Sender<u64>,
    is_failing: AtomicBool,
}

impl Default for Rounds {
    fn default() -> Self {
        Self {
            wake: Notify::new(),
            begun: watch::Sender::new(0),
            ended: watch::Sender::new(0),
            is_failing: AtomicBool::new(false),
        }
    }
}

impl Rounds {
    /// Asks for a round right away.
    pub(super) fn hurry(&self) {
        self.wake.notify_one();
    }

    /// Sleeps until a round is due or somebody is in a hurry.
    pub(super) async fn until_due(&self, period: Duration) {
        // Running out of time is the normal case.
        let _ = tokio::time::timeout(period, self.wake.notified()).await;
    }

    pub(super) fn begin(&self) {
        self.begun.send_modify(|round| *round += 1);
    }

    pub(super) fn end(&self, is_success: bool) {
        self.is_failing.store(!is_success, Ordering::Relaxed);
        let begun = *self.begun.borrow();
        self.ended.send_replace(begun);
    }

    /// Waits for the end of a round that begins after this call: one that is under way does not
    /// know yet what is wanted.
    async fn next(&self) {
        let wanted = *self.begun.borrow() + 1;
        self.hurry();
        let mut ended = self.ended.subscribe();
        // The sender lives as long as the room.
        let _ = ended.wait_for(|round| *round >= wanted).await;
    }
}

impl RoomHandle {
    /// Lets the parent know now, and waits for its answer, at most [`PATIENCE`]. While the store
    /// fails nobody waits for it.
    pub(super) async fn ask_parent(&self) {
        if self.rounds.is_failing.load(Ordering::Relaxed) {
            return;
        }
        // Out of patience: the caller decides with what is known.
        let _ = tokio::time::timeout(PATIENCE, self.rounds.next()).await;
    }
}
