//! Scheduled events of a room at this node: settings change when an event begins, goes on or ends.
//!
//! Each node evaluates the settings by its own wall clock, at the time of the next change and once
//! a second: a clock that was stepped must not make it oversleep. What has begun is latched, here
//! and in the record of overrides, so that no phase goes back. While the wall clock and room time
//! differ, the wall clock was stepped lately and may be wrong. Then phases follow it and are not
//! latched.

use std::sync::Arc;
use std::time::Duration;

use anteroom_config::overrides::{EventLatch, EventLatches, RoomOverrides};
use anteroom_config::{Effective, EventNow};
use anteroom_room::event::EventPhase;
use anteroom_room::room::Room;
use anteroom_room::rules::{Draw, QueueingMethod, Rules};
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_store::{ChangeError, chain};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::wall_time::{TOLERANCE, converted};
use super::{RoomHandle, Settings};
use crate::clock::NodeClock;

/// Longest time between two evaluations, and between two attempts to store phases.
const LOOK_EVERY: DurationMs = DurationMs(1_000);
/// Longest time of an attempt to store phases.
const WRITE_TIME_OUT: Duration = Duration::from_secs(3);

/// Time in which all who wait send a request, and so are counted for a moment: the longest interval
/// of their pages, and some more. Those who have just come are counted with their second request.
const COUNTED_WITHIN: DurationMs = DurationMs(65_000);
/// Time after the end of an event after which nobody waits for it any more.
const DRAINED_AFTER: DurationMs = DurationMs::from_secs(86_400);
const TOTAL_ACTIVE_USERS: &str = "total_active_users";
const NEW_USERS_PER_MINUTE: &str = "new_users_per_minute";

/// The store has all phases already.
#[derive(Debug, thiserror::Error)]
#[error("the store has all phases already")]
struct AlreadyStored;

/// Phases that events of a room have reached, here or in the store.
#[derive(Debug, Default)]
pub(super) struct Phases {
    pub(super) latches: EventLatches,
    /// Room time since which nobody waits under the present settings; `None` while somebody does,
    /// or nobody has said.
    pub(super) nobody_waits_since: Option<Timestamp>,
    /// Whether a warning was logged that they are not stored.
    is_withheld: bool,
}

/// Latches the phases of events that have begun, with the room time of their prequeues.
pub(super) fn latch(latches: &mut EventLatches, effective: &Effective, clock: &dyn NodeClock) {
    if !is_wall_steady(clock) {
        return;
    }
    for event in &effective.begun {
        let (holds_from, opens_at) = prequeue_by_clock(event, clock);
        let latch = EventLatch::new(event.phase, holds_from, opens_at);
        latches.advance(&event.name, &event.times, latch);
    }
    // The store forgets them, too.
    latches.forget_old(clock.wall());
}

/// Returns the event that has ended last, if the room has its times.
fn over(effective: &Effective) -> Option<&EventNow> {
    let prequeue_of = effective.prequeue_of.as_ref();
    prequeue_of.filter(|event| event.phase == EventPhase::Over)
}

/// Notes that nobody waits any more who came before the end of the last event: then all nodes let
/// everybody pass. One that went on with its queue would give no seats to those who wait there.
pub(super) fn drain(latches: &mut EventLatches, effective: &Effective, rules: &Rules) {
    if let Some(event) = over(effective)
        && rules.queueing_method == QueueingMethod::Passthrough
    {
        latches.drain(&event.name, &event.times);
    }
}

fn is_wall_steady(clock: &dyn NodeClock) -> bool {
    clock.wall().0.abs_diff(clock.now().0) <= TOLERANCE.0
}

/// Returns the rules that the settings want, with the times of opening in room time. Times that are
/// nearly those of the `applied` rules stay: clocks are not read at once, and each change of a draw
/// makes the room count its visitors again.
pub(super) fn in_room_time(
    effective: &Effective,
    latches: &EventLatches,
    clock: &dyn NodeClock,
    applied: Option<&Rules>,
) -> Rules {
    let mut rules = effective.config.rules;
    let Some(prequeue_of) = &effective.prequeue_of else {
        return rules;
    };
    let (holds_from, opens_at) = prequeue_in_room_time(prequeue_of, latches, clock);
    let near = |one: Timestamp, other: Timestamp| one.0.abs_diff(other.0) <= TOLERANCE.0;
    let kept = applied.and_then(|applied| {
        let applied = (applied.holds_from, applied.opens_at?);
        (near(applied.0, holds_from) && near(applied.1, opens_at)).then_some(applied)
    });
    let (holds_from, opens_at) = kept.unwrap_or((holds_from, opens_at));
    rules.holds_from = holds_from;
    rules.opens_at = Some(opens_at);
    rules.draw_name = prequeue_of.times.starts_at;
    let earlier = effective.earlier_draw.as_ref();
    rules.earlier_draw = earlier.map(|event| {
        let (from, until) = prequeue_in_room_time(event, latches, clock);
        let draw = Draw {
            from,
            until,
            name: event.times.starts_at,
        };
        let mut before = applied.into_iter().flat_map(|applied| applied.draws());
        let is_same = |known: &Draw| {
            known.name == draw.name && near(known.from, from) && near(known.until, until)
        };
        before.find(is_same).unwrap_or(draw)
    });
    rules
}

fn prequeue_in_room_time(
    event: &EventNow,
    latches: &EventLatches,
    clock: &dyn NodeClock,
) -> (Timestamp, Timestamp) {
    let (holds_from, opens_at) = prequeue_by_clock(event, clock);
    match latches.of(&event.name, &event.times) {
        // The start moves with the wall clock until it has come.
        Some(latch) if latch.phase() < EventPhase::Running => (latch.prequeue().0, opens_at),
        Some(latch) => latch.prequeue(),
        None => (holds_from, opens_at),
    }
}

fn prequeue_by_clock(event: &EventNow, clock: &dyn NodeClock) -> (Timestamp, Timestamp) {
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
        }
    }

    /// Returns the rules that the room applies now if its settings want `wanted`. Values that
    /// operators set hold for those who still wait, too.
    pub(super) fn in_force(
        &self,
        settings: &Settings,
        wanted: Rules,
        (room, phases): (&Room, &Phases),
    ) -> Rules {
        let now = self.shared.clock.now();
        let since = phases
            .nobody_waits_since
            .filter(|_| room.people_waiting() == 0);
        let has_nobody = since.is_some_and(|since| since + COUNTED_WITHIN <= now);
        let may_wait = !has_nobody && !self.has_drained(settings, &phases.latches);
        let mut rules = wanted.in_force(room.rules(), may_wait, now);
        let is_set = |key| settings.overrides.values.contains_key(key);
        if is_set(TOTAL_ACTIVE_USERS) {
            rules.limits.total_active_users = wanted.limits.total_active_users;
        }
        if is_set(NEW_USERS_PER_MINUTE) {
            rules.limits.new_users_per_minute = wanted.limits.new_users_per_minute;
        }
        rules
    }

    /// Whether nobody waits any more who came before the end of the last event, as some node found.
    fn has_drained(&self, settings: &Settings, latches: &EventLatches) -> bool {
        let Some(event) = over(&settings.effective) else {
            return false;
        };
        let latch = latches.of(&event.name, &event.times);
        let ends_at = event.times.ends_at.unwrap_or(Timestamp::NEVER);
        let is_long_ago = ends_at + DRAINED_AFTER <= self.shared.clock.wall();
        is_long_ago || latch.is_some_and(EventLatch::has_drained)
    }

    /// Whether the settings change by themselves, or the room applies other rules than it should:
    /// a step of the wall clock has moved the opening, or nobody waits any more.
    fn must_evaluate(&self) -> bool {
        let settings = self.settings.load();
        let clock = &*self.shared.clock;
        let wall = clock.wall();
        let is_due = settings
            .effective
            .next_change_at
            .is_some_and(|at| at <= wall);
        let went_back = wall < settings.evaluated_at;
        if is_due || went_back {
            return true;
        }
        let mut phases = self.phases.lock();
        let room = self.room.lock();
        let has_nobody = room.has_parent_reply() && room.people_waiting() == 0;
        let since = phases.nobody_waits_since.unwrap_or_else(|| clock.now());
        phases.nobody_waits_since = has_nobody.then_some(since);
        let applied = *room.rules();
        let wanted = in_room_time(&settings.effective, &phases.latches, clock, Some(&applied));
        applied != self.in_force(&settings, wanted, (&room, &phases))
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
        let has_begun = !self.settings.load().effective.begun.is_empty();
        let mut phases = self.phases.lock();
        // A phase never goes back, so a wrong clock must not decide for all nodes.
        let is_wall_wrong = !is_wall_steady(&*self.shared.clock);
        let is_wrong = is_wall_wrong || !self.shared.clocks.large().is_empty();
        if !is_wrong {
            phases.is_withheld = false;
        } else if has_begun && !phases.is_withheld {
            phases.is_withheld = true;
            tracing::warn!(
                room = %self.name(),
                "phases of events not stored: clocks differ by more than half a second; run NTP on \
                 all machines"
            );
        }
        !is_wrong && !phases.latches.are_in(&self.stored_overrides().events)
    }

    async fn store_phases(&self) {
        // Another node may have stored them, and a damaged record is not replaced.
        if self.read_overrides().await.is_err() || !self.lacks_phases() {
            return;
        }
        let latches = self.phases.lock().latches.clone();
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
