//! Naive model of what an event's plan says at a moment.

use anteroom_config::{RoomConfig, RoomEvent};
use anteroom_room::event::EventPhase;
use anteroom_room::rules::{Limits, QueueingMethod};
use anteroom_room::time::Timestamp;

/// Returns the phase by a clock that shows `wall`.
pub(super) fn phase(event: &RoomEvent, wall: Timestamp) -> EventPhase {
    let times = event.times;
    if times.ends_at.is_some_and(|ends_at| ends_at <= wall) {
        return EventPhase::Over;
    }
    if times.starts_at <= wall {
        return EventPhase::Running;
    }
    if times.prequeue_at <= wall {
        return EventPhase::Prequeue;
    }
    EventPhase::Upcoming
}

/// Returns the events that are not suspended.
pub(super) fn planned(file: &RoomConfig) -> impl Iterator<Item = &RoomEvent> {
    file.events.iter().filter(|event| !event.is_suspended)
}

/// Returns the limits at a moment, if events have these phases. After an event, a room that lets
/// everybody pass keeps its last limits for those who wait.
pub(super) fn limits(
    file: &RoomConfig,
    phase_of: impl Fn(&RoomEvent) -> EventPhase,
    wall: Timestamp,
) -> Limits {
    let of_room = file.rules.limits;
    let lets_pass = file.rules.queueing_method == QueueingMethod::Passthrough;
    let mut last: Option<&RoomEvent> = None;
    for event in planned(file) {
        match phase_of(event) {
            EventPhase::Upcoming => {}
            EventPhase::Prequeue => return event.values.limits.unwrap_or(of_room),
            EventPhase::Running => return stepped(event, of_room, wall),
            EventPhase::Over => {
                if last.is_none_or(|last| last.times.starts_at < event.times.starts_at) {
                    last = Some(event);
                }
            }
        }
    }
    match last.filter(|_| lets_pass) {
        Some(event) => stepped(event, of_room, Timestamp::NEVER),
        None => of_room,
    }
}

fn stepped(event: &RoomEvent, of_room: Limits, wall: Timestamp) -> Limits {
    let mut limits = event.values.limits.unwrap_or(of_room);
    for step in &event.steps {
        if event.times.starts_at + step.after <= wall {
            limits.total_active_users =
                step.total_active_users.unwrap_or(limits.total_active_users);
            limits.new_users_per_minute = step
                .new_users_per_minute
                .unwrap_or(limits.new_users_per_minute);
        }
    }
    limits
}
