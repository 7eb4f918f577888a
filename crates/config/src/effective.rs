//! Settings that hold in a room at a moment: one pure function of the file, the events, the
//! overrides and the time.
//!
//! Everything that decides by settings or shows them uses it. Later layers win value by value: the
//! room, its active event, what operators set. `suspended`, a pause, `queue_all` and the prequeue
//! of an event stand above all values.

use std::collections::{BTreeMap, BTreeSet};

use anteroom_room::event::{EventPhase, EventTimes};
use anteroom_room::rules::{Limits, QueueingMethod, Rules};
use anteroom_room::time::{DurationMs, Timestamp};
use serde_json::Value;

use crate::model::{EventName, RoomConfig, RoomEvent};
use crate::overrides::{RoomOverrides, RunOff};
use crate::{Changed, Problem};

/// Time before a prequeue at which the room takes over its times. Then each room ends its free
/// entry by itself, at the very moment.
const AHEAD: DurationMs = DurationMs::from_secs(60);

/// Settings that hold in a room at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Effective {
    /// The configuration, with all layers. Its times are wall-clock times.
    pub config: RoomConfig,
    /// Values of the keys that may be changed while the room runs, without the times of events.
    pub values: BTreeMap<&'static str, Value>,
    /// Keys whose value the active event sets; operators may have set another one.
    pub of_event: BTreeSet<&'static str>,
    /// The active event; `None` if there is none.
    pub event: Option<EventNow>,
    /// The next event; `None` if there is none.
    pub next: Option<EventNow>,
    /// The event whose prequeue and start the room has; `None` if there is none.
    pub prequeue_of: Option<EventNow>,
    /// The shuffled event before it, whose order holds for those who still wait.
    pub earlier_draw: Option<EventNow>,
    /// Rules of the event that ended last: those who wait since then enter under them.
    pub last_rules: Option<Rules>,
    /// Events that have begun, with their phases.
    pub begun: Vec<EventNow>,
    /// Time at which the settings change by themselves; `None` = never.
    pub next_change_at: Option<Timestamp>,
    /// Mistakes in values that operators set; such values have no effect.
    pub problems: Vec<Problem>,
}

/// Event at a moment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EventNow {
    /// Name; `opening` for the `opens_at` of a room.
    pub name: String,
    /// Phase.
    pub phase: EventPhase,
    /// Times, by the wall clock.
    pub times: EventTimes,
    /// Whether those who come in the prequeue enter in random order.
    pub is_shuffled: bool,
    /// Queue after the event; `None` if it has none.
    pub run_off: Option<RunOff>,
}

/// Returns the settings of a room at `now`, by the wall clock.
#[must_use]
pub fn effective(file: &RoomConfig, overrides: &RoomOverrides, now: Timestamp) -> Effective {
    let overrides = &*overrides.in_effect(file, now);
    let events = events_now(file, overrides, now);
    let (layered, next_step_at) = with_active(file, &events, now);
    let of_event = differing(file, &layered);
    let last_rules = last_rules(file, &events);
    let Changed {
        mut config,
        problems,
    } = layered.with_values(&overrides.values);
    let values = config.values();
    config.rules.queue_all |= overrides.pause.is_some();
    let opening = opening(&config, overrides, now);
    let events: Vec<EventNow> = events.into_iter().map(|(_, event)| event).collect();
    let all = || events.iter().chain(&opening);
    let phases = all().filter_map(EventNow::changes_at);
    let changes = phases.chain(all().filter_map(|event| event.prequeue_applies_at(now)));
    let by_time = next_step_at.into_iter().chain(overrides.next_end(now));
    let next_change_at = changes.chain(by_time).min();
    let prequeue_of = prequeue_of(opening.as_ref(), &events, now).cloned();
    let earlier_draw = all()
        .filter(|event| event.is_shuffled && event.phase >= EventPhase::Running)
        .filter(|event| Some(*event) != prequeue_of.as_ref())
        .max_by_key(|event| event.times.starts_at)
        .cloned();
    if let Some(event) = &prequeue_of {
        config.rules.opens_at = Some(event.times.starts_at);
        config.rules.holds_from = event.times.prequeue_at;
        config.rules.draw = event.is_shuffled;
    }
    let active = events.iter().find(|event| event.phase.is_active());
    let begun = all().filter(|event| event.has_begun());
    Effective {
        values,
        of_event,
        event: active.cloned(),
        next: next(&events).cloned(),
        begun: begun.cloned().collect(),
        prequeue_of,
        earlier_draw,
        last_rules,
        config,
        next_change_at,
        problems,
    }
}

/// Returns the events of a room that are not suspended, as they are at `now`.
pub(crate) fn events_now<'a>(
    file: &'a RoomConfig,
    overrides: &RoomOverrides,
    now: Timestamp,
) -> Vec<(&'a RoomEvent, EventNow)> {
    let events = file.events.iter().filter(|event| !event.is_suspended);
    events
        .map(|event| (event, EventNow::of(event, file, overrides, now)))
        .collect()
}

/// Returns the room with the values of its active event, and the time of the next step.
fn with_active(
    file: &RoomConfig,
    events: &[(&RoomEvent, EventNow)],
    now: Timestamp,
) -> (RoomConfig, Option<Timestamp>) {
    let active = events.iter().find(|(_, event)| event.phase.is_active());
    let Some((event, event_now)) = active else {
        return (file.clone(), None);
    };
    let mut room = event.applied_to(file);
    let is_running = event_now.phase == EventPhase::Running;
    let next_step_at = is_running.then(|| event.apply_steps(&mut room, now));
    (room, next_step_at.flatten())
}

/// Returns the rules of the event that ended last, with all of its steps.
fn last_rules(file: &RoomConfig, events: &[(&RoomEvent, EventNow)]) -> Option<Rules> {
    let over = events
        .iter()
        .filter(|(_, event)| event.phase == EventPhase::Over);
    let (event, _) = over.max_by_key(|(_, event)| event.times.starts_at)?;
    Some(event.last_rules(file))
}

/// Returns the event that `opens_at` of a room stands for.
fn opening(config: &RoomConfig, overrides: &RoomOverrides, now: Timestamp) -> Option<EventNow> {
    let times = EventTimes {
        prequeue_at: Timestamp::ZERO,
        starts_at: config.rules.opens_at?,
        ends_at: None,
    };
    let name = EventName::OPENING;
    Some(EventNow {
        name: name.to_owned(),
        phase: times.phase(overrides.events.phase(name, &times), now),
        times,
        is_shuffled: config.rules.draw,
        run_off: None,
    })
}

/// Returns the event whose times the room has: the one that visitors wait for, the next one if it
/// is near, or the one that started last. Its order holds on for those who still wait.
fn prequeue_of<'a>(
    opening: Option<&'a EventNow>,
    events: &'a [EventNow],
    now: Timestamp,
) -> Option<&'a EventNow> {
    let all = || opening.into_iter().chain(events);
    let ahead = || all().find(|event| event.phase == EventPhase::Prequeue);
    let near = || next(events).filter(|event| event.times.prequeue_at <= now + AHEAD);
    let last = || {
        let started = all().filter(|event| event.phase >= EventPhase::Running);
        started.max_by_key(|event| event.times.starts_at)
    };
    ahead().or_else(near).or_else(last)
}

fn next(events: &[EventNow]) -> Option<&EventNow> {
    let upcoming = events
        .iter()
        .filter(|event| event.phase == EventPhase::Upcoming);
    upcoming.min_by_key(|event| event.times.prequeue_at)
}

/// Returns the keys whose values differ.
fn differing(file: &RoomConfig, layered: &RoomConfig) -> BTreeSet<&'static str> {
    let before = file.values();
    let mut keys = layered.values();
    keys.retain(|key, value| before.get(key) != Some(value));
    keys.into_keys().collect()
}

impl EventNow {
    fn of(event: &RoomEvent, file: &RoomConfig, overrides: &RoomOverrides, now: Timestamp) -> Self {
        let latched = overrides.events.phase(event.name.as_str(), &event.times);
        Self {
            name: event.name.to_string(),
            phase: event.times.phase(latched, now),
            times: event.times,
            is_shuffled: event.is_shuffled,
            run_off: RunOff::of(&event.last_rules(file)),
        }
    }

    /// Whether it has a phase that must not go back. A room is closed before its opening anyway.
    fn has_begun(&self) -> bool {
        let is_opening = self.name == EventName::OPENING;
        match self.phase {
            EventPhase::Upcoming => false,
            EventPhase::Prequeue => !is_opening,
            EventPhase::Running | EventPhase::Over => true,
        }
    }

    /// Returns the time at which its phase ends.
    fn changes_at(&self) -> Option<Timestamp> {
        self.times.phase_ends_at(self.phase)
    }

    /// Returns the time at which the room takes over the times of an event, if that is ahead.
    fn prequeue_applies_at(&self, now: Timestamp) -> Option<Timestamp> {
        let at = self.times.prequeue_at - AHEAD;
        (self.phase == EventPhase::Upcoming && now < at).then_some(at)
    }
}

impl RoomEvent {
    /// Returns the room with the values of the event, before its first step.
    pub(crate) fn applied_to(&self, room: &RoomConfig) -> RoomConfig {
        let values = &self.values;
        let mut room = room.clone();
        let rules = &mut room.rules;
        if let Some(limits) = values.limits {
            rules.limits = limits;
        }
        if let Some(method) = values.queueing_method {
            rules.queueing_method = method;
        }
        if let Some(duration) = values.session_duration {
            rules.session_duration = duration;
        }
        if let Some(renewal) = values.session_renewal {
            rules.session_renewal = renewal;
        }
        // A draw of the room needs an order.
        rules.draw &= rules.queueing_method == QueueingMethod::Fifo;
        if let Some(template) = &values.template {
            room.page.template = Some(template.clone());
        }
        room
    }

    /// Returns the rules of the room during the event, with all of its steps.
    fn last_rules(&self, room: &RoomConfig) -> Rules {
        let mut room = self.applied_to(room);
        self.apply_steps(&mut room, Timestamp::NEVER);
        room.rules
    }

    /// Returns the keys that the event sets to other values than the room has, at any step.
    pub(crate) fn keys(&self, room: &RoomConfig) -> BTreeSet<&'static str> {
        let first = self.applied_to(room);
        let mut last = first.clone();
        self.apply_steps(&mut last, Timestamp::NEVER);
        let mut keys = differing(room, &first);
        keys.append(&mut differing(room, &last));
        keys
    }

    /// Applies the steps that are due. Returns the time of the next one.
    fn apply_steps(&self, room: &mut RoomConfig, now: Timestamp) -> Option<Timestamp> {
        let starts_at = self.times.starts_at;
        let is_due = |after: DurationMs| starts_at + after <= now;
        for step in self.steps.iter().take_while(|step| is_due(step.after)) {
            let limits = room.rules.limits;
            room.rules.limits = Limits {
                total_active_users: step.total_active_users.unwrap_or(limits.total_active_users),
                new_users_per_minute: step
                    .new_users_per_minute
                    .unwrap_or(limits.new_users_per_minute),
            };
        }
        let mut steps = self.steps.iter();
        let next = steps.find(|step| !is_due(step.after))?;
        Some(starts_at + next.after)
    }
}

#[cfg(test)]
mod tests;
