//! Scheduled events of a room at this node: settings change when an event begins, goes on or ends.
//!
//! Each node evaluates the settings by its own wall clock, at the time of the next change and once
//! a second: a clock that was stepped must not make it oversleep. What has begun is latched, here
//! and in the record of overrides, so that no phase goes back.

use std::sync::Arc;
use std::time::Duration;

use anteroom_config::overrides::{EventLatch, EventLatches, RoomOverrides};
use anteroom_config::{Effective, EventNow};
use anteroom_room::event::EventPhase;
use anteroom_room::rules::Rules;
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_store::chain;
use tokio::sync::watch;
use tokio::time::sleep;

use super::RoomHandle;
use super::wall_time::{TOLERANCE, converted};
use crate::clock::NodeClock;

/// Longest time between two evaluations.
const LOOK_EVERY: DurationMs = DurationMs(1_000);

/// The store has all phases already.
#[derive(Debug, thiserror::Error)]
#[error("the store has all phases already")]
struct AlreadyStored;

/// Latches the phases of events that have begun, with the room time of their doors.
pub(super) fn latch(latches: &mut EventLatches, effective: &Effective, clock: &dyn NodeClock) {
    for event in &effective.begun {
        let (holds_from, opens_at) = doors_by_clock(event, clock);
        let latch = EventLatch::new(event.phase, holds_from, opens_at);
        latches.advance(&event.name, event.times.starts_at, latch);
    }
    // The store forgets them, too.
    latches.forget_old(clock.wall());
}

/// Returns the rules with the times of opening in room time.
pub(super) fn in_room_time(
    effective: &Effective,
    latches: &EventLatches,
    clock: &dyn NodeClock,
) -> Rules {
    let rules = effective.config.rules;
    let Some(doors) = &effective.doors else {
        return rules;
    };
    let (holds_from, opens_at) = doors_by_clock(doors, clock);
    let (holds_from, opens_at) = match latches.of(&doors.name, doors.times.starts_at) {
        // The start moves with the wall clock until it has come.
        Some(latch) if latch.phase() < EventPhase::Running => (latch.doors().0, opens_at),
        Some(latch) => latch.doors(),
        None => (holds_from, opens_at),
    };
    Rules {
        holds_from,
        opens_at: Some(opens_at),
        ..rules
    }
}

fn doors_by_clock(event: &EventNow, clock: &dyn NodeClock) -> (Timestamp, Timestamp) {
    let (wall, room) = (clock.wall(), clock.now());
    let in_room_time = |at| match at {
        Timestamp::ZERO => at,
        at => converted(at, wall, room),
    };
    let times = &event.times;
    (
        in_room_time(times.prequeue_at),
        in_room_time(times.starts_at),
    )
}

impl RoomHandle {
    /// Evaluates the settings again and again, until `stop`.
    pub(crate) async fn watch_events(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        while !*stop.borrow() {
            let next_at = self.settings.load().effective.next_change_at;
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
            self.write_phases().await;
        }
    }

    fn must_evaluate(&self) -> bool {
        let settings = self.settings.load();
        let wall = self.shared.clock.wall();
        let is_due = settings
            .effective
            .next_change_at
            .is_some_and(|at| at <= wall);
        let (waiting, rules) = {
            let room = self.room.lock();
            (room.people_waiting(), *room.rules())
        };
        // Everybody who waited has entered, so the room lets everybody pass now.
        let has_run_off = rules.queueing_method != settings.effective.config.rules.queueing_method
            && waiting == 0;
        is_due || has_run_off || self.has_moved_doors(rules.opens_at)
    }

    /// Whether a step of the wall clock has moved the opening.
    fn has_moved_doors(&self, applied: Option<Timestamp>) -> bool {
        let settings = self.settings.load();
        let wanted = in_room_time(
            &settings.effective,
            &self.latches.lock(),
            &*self.shared.clock,
        );
        let moved = applied.zip(wanted.opens_at);
        moved.is_some_and(|(applied, wanted)| applied.0.abs_diff(wanted.0) > TOLERANCE.0)
    }

    /// Writes phases to the store that it lacks. If it fails, the next second tries again.
    async fn write_phases(&self) {
        let latches = {
            let latches = self.latches.lock();
            // A phase never goes back, so a wrong clock must not decide for all nodes.
            let may_write = || self.shared.clocks.large().is_empty();
            if latches.are_in(&self.stored_overrides().events) || !may_write() {
                return;
            }
            latches.clone()
        };
        let now = self.shared.clock.wall();
        let change =
            |before: &RoomOverrides| before.with_phases(&latches, now).ok_or(AlreadyStored);
        match self.override_state.feed.change(self, change).await {
            Ok(next) => {
                let what = next.newest.as_ref().map(|newest| newest.what.as_str());
                tracing::info!(room = %self.name, what, "the schedule changed the room");
            }
            Err(anteroom_store::ChangeError::Rejected(AlreadyStored)) => {}
            Err(error) => {
                tracing::debug!(room = %self.name, cause = chain(&error), "phases not stored");
            }
        }
    }

    /// Reads the active event; `None` if there is none.
    pub fn with_event<T>(&self, read: impl FnOnce(&EventNow) -> T) -> Option<T> {
        self.settings.load().effective.event.as_ref().map(read)
    }

    /// Returns when the next event begins, with its prequeue; `None` if there is none.
    #[must_use]
    pub fn next_event_at(&self) -> Option<Timestamp> {
        let settings = self.settings.load();
        let next = settings.effective.next.as_ref();
        next.map(|event| event.times.prequeue_at)
    }
}
