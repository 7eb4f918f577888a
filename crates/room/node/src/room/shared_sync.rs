//! Visitors who wait for a sync with the parent. One sync serves all of them.
//!
//! The core decides which sync a visitor waits for, and for how long
//! ([`anteroom_room::sync_loop::WaitDeadline`]).

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anteroom_room::id::VisitorId;
use anteroom_room::room::Visit;
use anteroom_room::sync_loop::{Round, WAIT_TIMEOUT, WaitDeadline};
use anteroom_room::time::Timestamp;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};

use super::RoomHandle;

/// Returns the longest wait of a visitor for the parent.
pub(super) const fn visitor_timeout() -> Duration {
    Duration::from_millis(WAIT_TIMEOUT.0)
}

/// Most requests of a room that wait for their visitors' turns. Others are queued.
const TURN_WAITS_MAX: usize = 1_024;

/// Knowledge of the parent about this process.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Joined {
    /// The parent does not know it.
    No,
    /// The parent counts an ended process that this one replaces.
    ByPredecessor,
    /// The parent has replied to this process.
    Itself,
}

/// Syncs of a room's loop, for visitors who wait for one.
pub(super) struct Rounds {
    wake: Notify,
    round: watch::Sender<Round>,
    joined: watch::Sender<Joined>,
    /// Number of waiting visitors.
    waiting: AtomicU32,
    /// Visitors with a request that waits for their turn.
    turn_waits: Mutex<HashSet<VisitorId>>,
    began_at: Instant,
}

/// Guard that counts a visitor while it waits; its request may be cancelled at any time.
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
    pub(super) fn new(is_joined: bool) -> Self {
        Self {
            wake: Notify::new(),
            round: watch::Sender::new(Round::default()),
            joined: watch::Sender::new(if is_joined {
                Joined::ByPredecessor
            } else {
                Joined::No
            }),
            waiting: AtomicU32::new(0),
            turn_waits: Mutex::default(),
            began_at: Instant::now(),
        }
    }

    /// Requests a sync right away.
    pub(super) fn request_sync(&self) {
        self.wake.notify_one();
    }

    /// Waits until a sync is requested.
    pub(super) async fn sync_requested(&self) {
        self.wake.notified().await;
    }

    /// Whether a visitor waits for a sync.
    pub(super) fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Returns the time of the loop: milliseconds since the room was opened, never stepped.
    pub(super) fn now(&self) -> Timestamp {
        let since = Instant::now().saturating_duration_since(self.began_at);
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// Converts a time of the loop, for timers.
    pub(super) fn instant(&self, at: Timestamp) -> Instant {
        self.began_at + Duration::from_millis(at.0)
    }

    /// Publishes the state of the loop to waiting visitors.
    pub(super) fn publish(&self, round: Round) {
        self.round.send_if_modified(|published| {
            let is_changed = *published != round;
            *published = round;
            is_changed
        });
    }

    /// Records that the parent knows this process.
    pub(super) fn note_joined(&self) {
        let is_changed =
            |joined: &mut Joined| std::mem::replace(joined, Joined::Itself) != Joined::Itself;
        self.joined.send_if_modified(is_changed);
    }

    /// Records that this process replaces another one, which the parent counts.
    pub(super) fn note_predecessor(&self) {
        self.joined.send_if_modified(|joined| {
            let is_changed = *joined < Joined::ByPredecessor;
            *joined = (*joined).max(Joined::ByPredecessor);
            is_changed
        });
    }

    /// Whether the parent knows this process, or its predecessor.
    pub(super) fn has_joined(&self) -> bool {
        *self.joined.borrow() > Joined::No
    }

    /// Whether tickets are trusted here, or will be before the deadline.
    pub(super) async fn is_joined(&self, deadline: WaitDeadline) -> bool {
        if self.has_joined() {
            return true;
        }
        let wait = self.wait_joined(Joined::ByPredecessor);
        timeout_at(self.instant(deadline.ends_at()), wait)
            .await
            .is_ok()
    }

    /// Waits until the parent knows this process at least like this.
    pub(super) async fn wait_joined(&self, wanted: Joined) {
        let mut joined = self.joined.subscribe();
        // The sender exists as long as the room.
        let _ = joined.wait_for(|joined| *joined >= wanted).await;
    }

    /// Requests a sync and waits until the sync with this number has ended.
    async fn wait_ended(&self, wanted: u64) {
        let _waiting = Waiting::new(&self.waiting);
        let mut round = self.round.subscribe();
        self.request_sync();
        let _ = round.wait_for(|round| round.ended >= wanted).await;
    }
}

impl RoomHandle {
    /// Returns the deadline of an active visitor who comes now.
    pub(super) fn wait_of_active(&self) -> WaitDeadline {
        WaitDeadline::of_active(self.rounds.now())
    }

    /// Returns the deadline of another visitor who comes now.
    pub(super) fn wait_of_others(&self) -> WaitDeadline {
        WaitDeadline::of_others(self.rounds.now())
    }

    /// Syncs with the parent now, and waits for its reply until the deadline. Returns whether
    /// another sync may help.
    pub(super) async fn sync_with_parent(&self, deadline: &mut WaitDeadline) -> bool {
        let rounds = &self.rounds;
        let is_second_used_up = self.locked(|room, _| room.snapshot().is_second_used_up);
        let Some(wanted) = deadline.begin(*rounds.round.borrow(), is_second_used_up) else {
            return false;
        };
        let ends_at = rounds.instant(deadline.ends_at());
        let ended = timeout_at(ends_at, rounds.wait_ended(wanted)).await;
        // After the deadline the caller decides with what is known.
        deadline.end(ended.is_ok(), *rounds.round.borrow())
    }

    /// Takes a place for a request that waits for its visitor's turn; `None` if too many wait, or
    /// another request of this visitor does.
    pub(super) fn take_place(&self, visit: Visit) -> Option<Place<'_>> {
        let mut waits = self.rounds.turn_waits.lock();
        let is_free = waits.len() < TURN_WAITS_MAX && waits.insert(visit.visitor);
        // Made only if it is free: its end takes the visitor out.
        is_free.then(|| Place {
            room: self,
            visit,
            is_given_up: true,
        })
    }

    /// Waits for the next reply of the parent, for a visitor whose turn is near. Returns whether
    /// there is one, and another may be waited for.
    pub(super) async fn wait_for_turn(&self, deadline: &mut WaitDeadline) -> bool {
        let rounds = &self.rounds;
        let Some(wanted) = deadline.begin_turn(*rounds.round.borrow(), rounds.now()) else {
            return false;
        };
        let mut round = rounds.round.subscribe();
        let ended = round.wait_for(|round| round.ended >= wanted || round.is_failing);
        timeout_at(rounds.instant(deadline.turn_ends_at()), ended)
            .await
            .is_ok()
    }
}

/// Place of a request that waits for its visitor's turn, at this node.
pub(super) struct Place<'a> {
    room: &'a RoomHandle,
    visit: Visit,
    /// Whether the client has hung up, unless something else is noted.
    is_given_up: bool,
}

impl Place<'_> {
    /// Records that the request has its verdict.
    pub(super) fn end(mut self) {
        self.is_given_up = false;
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.room
            .rounds
            .turn_waits
            .lock()
            .remove(&self.visit.visitor);
        if self.is_given_up {
            let visit = self.visit;
            self.room
                .locked(|room, now| room.handle_hang_up(visit, now));
        }
    }
}
