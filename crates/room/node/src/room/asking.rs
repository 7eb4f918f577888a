//! Waiting for a sync with the parent, together with everybody else who does.
//!
//! Who waits for what, and for how long, is the core's business
//! ([`anteroom_room::sync_loop::WaitDeadline`]).

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anteroom_room::sync_loop::{PATIENCE, Round, WaitDeadline};
use anteroom_room::time::Timestamp;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};

use super::RoomHandle;

/// Longest wait of a visitor for its parent.
pub(super) const fn patience_of_a_visitor() -> Duration {
    Duration::from_millis(PATIENCE.0)
}

/// What the parent knows of this process.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Joined {
    /// Nothing.
    No,
    /// It counts a dead process in whose place this one runs.
    ByPredecessor,
    /// It has answered this one.
    Itself,
}

/// The syncs of a room's loop, for those who wait for one.
pub(super) struct Rounds {
    wake: Notify,
    round: watch::Sender<Round>,
    standing: watch::Sender<Joined>,
    /// Visitors who wait for one.
    waiting: AtomicU32,
    began_at: Instant,
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
    pub(super) fn new(is_joined: bool) -> Self {
        Self {
            wake: Notify::new(),
            round: watch::Sender::new(Round::default()),
            standing: watch::Sender::new(if is_joined {
                Joined::ByPredecessor
            } else {
                Joined::No
            }),
            waiting: AtomicU32::new(0),
            began_at: Instant::now(),
        }
    }

    /// Asks for a sync right away.
    pub(super) fn hurry(&self) {
        self.wake.notify_one();
    }

    /// Returns when somebody is in a hurry.
    pub(super) async fn hurried(&self) {
        self.wake.notified().await;
    }

    /// Whether a visitor waits for a sync.
    pub(super) fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// The clock of the loop: milliseconds since the room was opened, never stepped.
    pub(super) fn now(&self) -> Timestamp {
        let since = Instant::now().saturating_duration_since(self.began_at);
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// A point in time of that clock, for timers.
    pub(super) fn instant(&self, at: Timestamp) -> Instant {
        self.began_at + Duration::from_millis(at.0)
    }

    /// Tells those who wait how far the loop is.
    pub(super) fn show(&self, round: Round) {
        self.round.send_if_modified(|shown| {
            let is_news = *shown != round;
            *shown = round;
            is_news
        });
    }

    /// The parent knows of this process.
    pub(super) fn note_joined(&self) {
        let is_news =
            |standing: &mut Joined| std::mem::replace(standing, Joined::Itself) != Joined::Itself;
        self.standing.send_if_modified(is_news);
    }

    /// It runs in the place of another process, which is counted.
    pub(super) fn note_predecessor(&self) {
        self.standing.send_if_modified(|standing| {
            let is_news = *standing < Joined::ByPredecessor;
            *standing = (*standing).max(Joined::ByPredecessor);
            is_news
        });
    }

    /// Whether tickets are worth something here, or will be within a visitor's patience.
    pub(super) async fn is_joined(&self, patience: WaitDeadline) -> bool {
        if *self.standing.borrow() > Joined::No {
            return true;
        }
        let wait = self.joined(Joined::ByPredecessor);
        timeout_at(self.instant(patience.ends_at()), wait)
            .await
            .is_ok()
    }

    /// Returns when the parent knows so much of this process.
    pub(super) async fn joined(&self, wanted: Joined) {
        let mut standing = self.standing.subscribe();
        // The sender lives as long as the room.
        let _ = standing.wait_for(|standing| *standing >= wanted).await;
    }

    /// Waits for the end of this sync.
    async fn ended(&self, wanted: u64) {
        let _waiting = Waiting::new(&self.waiting);
        let mut round = self.round.subscribe();
        self.hurry();
        let _ = round.wait_for(|round| round.ended >= wanted).await;
    }
}

impl RoomHandle {
    /// The patience of somebody who comes now.
    pub(super) fn patience(&self) -> WaitDeadline {
        WaitDeadline::new(self.rounds.now())
    }

    /// Lets the parent know now, and waits for its answer, as long as patience lasts. Returns
    /// whether it is worth asking once more.
    pub(super) async fn ask_parent(&self, patience: &mut WaitDeadline) -> bool {
        let rounds = &self.rounds;
        let Some(wanted) = patience.begin(*rounds.round.borrow()) else {
            return false;
        };
        let ends_at = rounds.instant(patience.ends_at());
        let answered = timeout_at(ends_at, rounds.ended(wanted)).await;
        // Out of patience: the caller decides with what is known.
        patience.end(answered.is_ok(), *rounds.round.borrow())
    }
}
