//! Waiting for a round trip to the parent, together with everybody else who does.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::RoomHandle;

/// Longest wait of a visitor for its parent. Longer than a busy disk takes, shorter than anybody
/// notices; after it the visitor is queued.
pub(super) const PATIENCE: Duration = Duration::from_millis(250);

/// How often somebody asks upwards before it is told what there is: what one answer brings, others
/// may take, and what is not in this data center comes with the next one.
const TRIES: u32 = 4;

/// The rounds of a room's conversation with its parent, by number.
pub(super) struct Rounds {
    wake: Notify,
    begun: watch::Sender<u64>,
    ended: watch::Sender<u64>,
    /// Visitors who wait for one.
    waiting: AtomicU32,
    is_failing: AtomicBool,
    is_world_failing: AtomicBool,
}

impl Default for Rounds {
    fn default() -> Self {
        Self {
            wake: Notify::new(),
            begun: watch::Sender::new(0),
            ended: watch::Sender::new(0),
            waiting: AtomicU32::new(0),
            is_failing: AtomicBool::new(false),
            is_world_failing: AtomicBool::new(false),
        }
    }
}

/// One visitor who waits, counted as long as it does: it may go away at any time.
struct Waiting<'a>(&'a AtomicU32);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicU32) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Rounds {
    /// Asks for a round right away.
    pub(super) fn hurry(&self) {
        self.wake.notify_one();
    }

    /// Returns when somebody is in a hurry.
    pub(super) async fn hurried(&self) {
        self.wake.notified().await;
    }

    /// Whether a visitor waits for a round.
    pub(super) fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    pub(super) fn begin(&self) {
        self.begun.send_modify(|round| *round += 1);
    }

    pub(super) fn end(&self, is_success: bool) {
        self.is_failing.store(!is_success, Ordering::Relaxed);
        let begun = *self.begun.borrow();
        self.ended.send_replace(begun);
    }

    pub(super) fn note_world(&self, is_failing: bool) {
        self.is_world_failing.store(is_failing, Ordering::Relaxed);
    }

    /// Waits for the end of a round that begins after this call: one that is under way does not
    /// know yet what is wanted.
    async fn next(&self) {
        let _waiting = Waiting::new(&self.waiting);
        let wanted = *self.begun.borrow() + 1;
        self.hurry();
        let mut ended = self.ended.subscribe();
        // The sender lives as long as the room.
        let _ = ended.wait_for(|round| *round >= wanted).await;
    }
}

/// How long somebody is still willing to wait for the parent.
pub(super) struct Patience {
    ends_at: Instant,
    tries: u32,
}

impl RoomHandle {
    /// The patience of somebody who comes now.
    pub(super) fn patience(&self) -> Patience {
        Patience {
            ends_at: Instant::now() + PATIENCE,
            tries: if self.shared.stores.are_shared() {
                TRIES
            } else {
                1
            },
        }
    }

    /// Lets the parent know now, and waits for its answer, as long as patience lasts. Returns whether
    /// it is worth asking once more. While the store fails nobody waits for it.
    pub(super) async fn ask_parent(&self, patience: &mut Patience) -> bool {
        if patience.tries == 0 || self.rounds.is_failing.load(Ordering::Relaxed) {
            return false;
        }
        patience.tries -= 1;
        let answered = tokio::time::timeout_at(patience.ends_at, self.rounds.next()).await;
        // Out of patience: the caller decides with what is known.
        let is_world_away = self.rounds.is_world_failing.load(Ordering::Relaxed);
        answered.is_ok() && patience.tries > 0 && !is_world_away
    }
}
