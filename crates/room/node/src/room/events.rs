//! Scheduled events of a room at this node: settings change when an event begins, goes on or ends.
//!
//! Each node evaluates the settings by its own wall clock, at the time of the next change and once
//! a second: a clock that was stepped must not make it oversleep. [`Phases`] decides what holds.
//! Phases that events have reached are stored in the record of overrides.

use std::sync::Arc;
use std::time::Duration;

use anteroom_config::EventNow;
use anteroom_config::overrides::RoomOverrides;
use anteroom_config::schedule::{Clocks, LOOK_EVERY, Phases};
use anteroom_room::time::Timestamp;
use anteroom_store::{ChangeError, chain};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::RoomHandle;
use crate::clock::NodeClock;

/// Longest time of an attempt to store phases.
const WRITE_TIME_OUT: Duration = Duration::from_secs(3);

/// The store has all phases already.
#[derive(Debug, thiserror::Error)]
#[error("the store has all phases already")]
struct AlreadyStored;

/// Phases that events of a room have reached, as this node knows them.
#[derive(Debug)]
pub(super) struct KnownPhases {
    pub(super) phases: Mutex<Phases>,
    /// Whether a warning was logged that they are not stored.
    is_withheld: Mutex<bool>,
}

impl KnownPhases {
    pub(super) fn new(phases: Phases) -> Self {
        Self {
            phases: Mutex::new(phases),
            is_withheld: Mutex::new(false),
        }
    }
}

/// Reads both clocks.
pub(super) fn clocks(clock: &dyn NodeClock) -> Clocks {
    Clocks {
        wall: clock.wall(),
        room: clock.now(),
    }
}

impl RoomHandle {
    /// Evaluates the settings again and again, until `stop`.
    pub(crate) async fn watch_events(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        while !*stop.borrow() {
            let next_at = self.settings.load().evaluation.effective.next_change_at;
            let wall = self.shared.clock.wall();
            let until = next_at.map_or(LOOK_EVERY, |at| at.since(wall).min(LOOK_EVERY));
            tokio::select! {
                _ = stop.changed() => return,
                // At least a millisecond: a clock that stands must not make this spin.
                () = sleep(Duration::from_millis(until.0.max(1))) => {}
            }
            if self.must_evaluate() {
                let guard = self.changing.lock();
                let settings = self.settings.load_full();
                self.apply_settings(Arc::clone(&settings.file), Arc::clone(&settings.stored));
                drop(guard);
            }
        }
    }

    /// Whether the settings change by themselves, or the room applies other rules than it should.
    fn must_evaluate(&self) -> bool {
        let settings = self.settings.load();
        let mut phases = self.events.phases.lock();
        let room = self.room.lock();
        phases.must_evaluate(&settings.evaluation, &room, clocks(&*self.shared.clock))
    }

    /// Stores phases that events have reached, until `stop`.
    pub(crate) async fn write_phases(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        while !*stop.borrow() {
            tokio::select! {
                _ = stop.changed() => return,
                () = sleep(Duration::from_millis(LOOK_EVERY.0)) => {}
            }
            if !self.lacks_phases() {
                continue;
            }
            tokio::select! {
                _ = stop.changed() => return,
                // If it fails, the next second tries again.
                _ = timeout(WRITE_TIME_OUT, self.store_phases()) => {}
            }
        }
    }

    /// Whether the store lacks phases, as far as this node knows, and this node may store them.
    fn lacks_phases(&self) -> bool {
        let has_begun = !self.settings.load().evaluation.effective.begun.is_empty();
        // A phase never goes back, so a wrong clock must not decide for all nodes.
        let is_wall_wrong = !clocks(&*self.shared.clock).are_steady();
        let is_wrong = is_wall_wrong || !self.shared.clocks.large().is_empty();
        let mut is_withheld = self.events.is_withheld.lock();
        if !is_wrong {
            *is_withheld = false;
        } else if has_begun && !*is_withheld {
            *is_withheld = true;
            tracing::warn!(
                room = %self.name(),
                "phases of events not stored: clocks differ by more than half a second; run NTP on \
                 all machines"
            );
        }
        let phases = self.events.phases.lock();
        !is_wrong && phases.lacking_in(&self.stored_overrides().events).is_some()
    }

    async fn store_phases(&self) {
        // Another node may have stored them, and a damaged record is not replaced.
        if self.read_overrides().await.is_err() || !self.lacks_phases() {
            return;
        }
        let stored = &self.stored_overrides().events;
        let Some(latches) = self.events.phases.lock().lacking_in(stored).cloned() else {
            return;
        };
        let now = self.shared.clock.wall();
        let change =
            |before: &RoomOverrides, _| before.with_phases(&latches, now).ok_or(AlreadyStored);
        match self.override_state.feed.change(self, change).await {
            Ok(next) => {
                let what = next.newest.as_ref().map(|newest| newest.what.as_str());
                tracing::info!(room = %self.name(), what, "the schedule changed the room");
            }
            Err(ChangeError::Rejected(AlreadyStored)) => {}
            Err(error) => {
                tracing::debug!(room = %self.name(), cause = chain(&error), "phases not stored");
            }
        }
    }

    /// Reads the active event; `None` if there is none.
    pub fn with_event<T>(&self, read: impl FnOnce(&EventNow) -> T) -> Option<T> {
        self.settings
            .load()
            .evaluation
            .effective
            .event
            .as_ref()
            .map(read)
    }

    /// Returns when the next event begins, with its prequeue; `None` if there is none.
    #[must_use]
    pub fn next_event_at(&self) -> Option<Timestamp> {
        let settings = self.settings.load();
        let next = settings.evaluation.effective.next.as_ref();
        next.map(|event| event.times.prequeue_at)
    }
}
