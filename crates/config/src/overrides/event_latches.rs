//! Phases that events have reached, so that none of them goes back if a clock does.
//!
//! They are in the record of overrides: it lies in the store of the root's ledger, each data center
//! has a copy, and all nodes read it. A change of phase is an entry of the audit log.

use std::collections::{BTreeMap, BTreeSet};

use anteroom_room::event::{EventPhase, EventTimes};
use anteroom_room::rules::{Limits, QueueingMethod, Rules};
use anteroom_room::time::{DurationMs, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Actor, Entry, RoomOverrides};
use crate::model::RoomConfig;

/// Name of the author of entries that the schedule makes.
const SCHEDULE: &str = "schedule";
/// Time after its start for which an event is remembered.
pub(super) const KEPT_FOR: DurationMs = DurationMs::from_secs(31 * 86_400);

/// Number of the phase after the last one of [`EventPhase`].
const DRAINED: u8 = 4;
/// Largest difference of two times of one start. Two clocks cannot be read at once.
const TOLERANCE_MS: u64 = 500;

/// Phase that an event has reached, and the times of its prequeue.
///
/// The times are room time. Those who wait for the start have tickets with room time, and a draw
/// depends on the times: they must not change when the wall clock is stepped.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventLatch {
    /// Phase: 1 prequeue, 2 running, 3 over, 4 over and nobody waits any more.
    phase: u8,
    /// Room time from which new visitors are queued for the start, in ms.
    holds_from: u64,
    /// Room time of the start, in ms.
    opens_at: u64,
    /// Queue after the event; `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run_off: Option<RunOff>,
    /// Whether nobody waits any more at a node that does not have the event, or has it no more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_done: bool,
}

/// Queue of those who still wait when an event is over: its last limits and its order. It is stored
/// for nodes that start when the event has been deleted.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunOff {
    total_active_users: u32,
    new_users_per_minute: u32,
    is_random: bool,
}

impl RunOff {
    /// Returns the queue after an event with these last rules; `None` if they let everybody pass
    /// or nobody.
    #[must_use]
    pub fn of(rules: &Rules) -> Option<Self> {
        let is_random = match rules.queueing_method {
            QueueingMethod::Fifo => false,
            QueueingMethod::Random => true,
            QueueingMethod::Passthrough | QueueingMethod::Reject => return None,
        };
        Some(Self {
            total_active_users: rules.limits.total_active_users,
            new_users_per_minute: rules.limits.new_users_per_minute,
            is_random,
        })
    }

    /// Returns rules with this queue.
    #[must_use]
    pub const fn applied_to(self, rules: Rules) -> Rules {
        Rules {
            limits: Limits {
                total_active_users: self.total_active_users,
                new_users_per_minute: self.new_users_per_minute,
            },
            queueing_method: if self.is_random {
                QueueingMethod::Random
            } else {
                QueueingMethod::Fifo
            },
            ..rules
        }
    }
}

/// Latches of a room's events, by name and start.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct EventLatches(BTreeMap<String, EventLatch>);

impl EventLatch {
    /// Returns the latch of a phase.
    #[must_use]
    pub const fn new(phase: EventPhase, holds_from: Timestamp, opens_at: Timestamp) -> Self {
        Self {
            phase: phase as u8,
            holds_from: holds_from.0,
            opens_at: opens_at.0,
            run_off: None,
            is_done: false,
        }
    }

    /// Returns the latch with the queue after the event.
    #[must_use]
    pub const fn with_run_off(self, run_off: Option<RunOff>) -> Self {
        Self { run_off, ..self }
    }

    /// Returns the queue after the event for a node that does not have it, or has it no more;
    /// `None` if nobody waits any more.
    #[must_use]
    pub const fn run_off(&self) -> Option<RunOff> {
        if self.is_done || self.has_drained() {
            None
        } else {
            self.run_off
        }
    }

    /// Whether the event is over, and nobody waits any more who came before its end.
    #[must_use]
    pub const fn has_drained(&self) -> bool {
        self.phase >= DRAINED
    }

    /// Returns the phase in words, for the audit log.
    const fn in_words(&self) -> &'static str {
        if self.is_done || self.has_drained() {
            "nobody waits any more"
        } else {
            self.phase().name()
        }
    }

    /// Whether it has all that `other` says about the progress of the event.
    const fn has(&self, other: &Self) -> bool {
        self.phase >= other.phase && (self.is_done || !other.is_done)
    }

    /// Returns the room times between which new visitors are queued for the start.
    #[must_use]
    pub const fn prequeue(&self) -> (Timestamp, Timestamp) {
        (Timestamp(self.holds_from), Timestamp(self.opens_at))
    }

    /// Returns the phase. A number of a later version counts as the last phase known here.
    #[must_use]
    pub const fn phase(&self) -> EventPhase {
        match self.phase {
            0 => EventPhase::Upcoming,
            1 => EventPhase::Prequeue,
            2 => EventPhase::Running,
            _ => EventPhase::Over,
        }
    }
}

/// Key of an event with these wall-clock times. An event that is moved is another one: a node that
/// still has the former times must not decide about the new ones.
fn key(name: &str, times: &EventTimes) -> String {
    let ends_at = times.ends_at.unwrap_or(Timestamp::NEVER);
    format!(
        "{name} {} {} {}",
        times.prequeue_at.0, ends_at.0, times.starts_at.0
    )
}

/// Returns the name in a key.
fn name_in(key: &str) -> &str {
    key.split(' ').next().unwrap_or(key)
}

/// Returns the start in a key.
fn start_in(key: &str) -> Option<Timestamp> {
    let (_, start) = key.rsplit_once(' ')?;
    start.parse().ok().map(Timestamp)
}

/// Returns the keys of all events that a room has. An opening is a setting of the room itself.
fn keys(room: &RoomConfig) -> BTreeSet<String> {
    let planned = room.events.iter().filter(|event| !event.is_suspended);
    planned
        .map(|event| key(event.name.as_str(), &event.times))
        .collect()
}

impl EventLatches {
    /// Whether no event has begun.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the latch of an event; `None` before its first phase.
    #[must_use]
    pub fn of(&self, name: &str, times: &EventTimes) -> Option<&EventLatch> {
        self.0.get(&key(name, times))
    }

    /// Returns the phase that an event has reached.
    #[must_use]
    pub fn phase(&self, name: &str, times: &EventTimes) -> EventPhase {
        let latch = self.of(name, times);
        latch.map_or(EventPhase::Upcoming, EventLatch::phase)
    }

    /// Latches a phase. A later one stays, and so do the first times of the prequeue: before the
    /// start the time of the start is only expected.
    pub fn advance(&mut self, name: &str, times: &EventTimes, latch: EventLatch) {
        let known = self.0.entry(key(name, times)).or_insert(latch);
        known.run_off = latch.run_off.or(known.run_off);
        if latch.phase <= known.phase {
            return;
        }
        let has_moved = known.opens_at.abs_diff(latch.opens_at) > TOLERANCE_MS;
        if known.phase() < EventPhase::Running && has_moved {
            known.opens_at = latch.opens_at;
        }
        known.phase = latch.phase;
    }

    /// Notes that nobody waits any more who came before the end of an event.
    pub fn drain(&mut self, name: &str, times: &EventTimes) {
        if let Some(known) = self.0.get_mut(&key(name, times)) {
            known.phase = known.phase.max(DRAINED);
        }
    }

    /// Notes that nobody waits any more who came for events that the room does not have.
    pub fn finish_gone(&mut self, room: &RoomConfig) {
        let planned = keys(room);
        for (key, latch) in &mut self.0 {
            latch.is_done |= latch.run_off.is_some() && !planned.contains(key);
        }
    }

    /// Returns the queue after an event that has begun somewhere and that the room does not have:
    /// it was deleted, suspended or moved. Of several it is the one that started last.
    #[must_use]
    pub fn run_off_of_gone(&self, room: &RoomConfig) -> Option<RunOff> {
        let planned = keys(room);
        let gone = self.0.iter().filter(|(key, _)| !planned.contains(*key));
        let waits = gone.filter_map(|(key, latch)| Some((start_in(key)?, latch.run_off()?)));
        let last = waits.max_by_key(|(starts_at, _)| *starts_at);
        last.map(|(_, run_off)| run_off)
    }

    /// Takes over the latches of `stored`. Where both have one, the times in `stored` win, so that
    /// all nodes have the same.
    pub fn adopt(&mut self, stored: &Self) {
        for (key, stored) in &stored.0 {
            let known = self.0.entry(key.clone()).or_insert(*stored);
            let has_times = stored.phase() >= EventPhase::Running || stored.phase >= known.phase;
            *known = EventLatch {
                phase: known.phase.max(stored.phase),
                holds_from: stored.holds_from,
                opens_at: if has_times {
                    stored.opens_at
                } else {
                    known.opens_at
                },
                run_off: stored.run_off.or(known.run_off),
                is_done: known.is_done || stored.is_done,
            };
        }
    }

    /// Whether `stored` has all phases that are here.
    #[must_use]
    pub fn are_in(&self, stored: &Self) -> bool {
        let mut latches = self.0.iter();
        latches.all(|(key, latch)| stored.0.get(key).is_some_and(|stored| stored.has(latch)))
    }

    /// Removes events that started long before `now`.
    pub fn forget_old(&mut self, now: Timestamp) {
        self.0
            .retain(|key, _| start_in(key).is_some_and(|start| start + KEPT_FOR >= now));
    }
}

impl RoomOverrides {
    /// Returns the overrides with phases that events have reached, with an entry that names them;
    /// `None` if nothing is new. `now` is the wall clock.
    #[must_use]
    pub fn with_phases(&self, latches: &EventLatches, now: Timestamp) -> Option<Self> {
        let mut new = latches.clone();
        new.forget_old(now);
        if new.are_in(&self.events) {
            return None;
        }
        let mut next = self.clone();
        let reached = new.0.iter().filter(|(key, latch)| {
            let stored = self.events.0.get(*key);
            !stored.is_some_and(|stored| stored.has(latch))
        });
        let what: Vec<String> = reached
            .map(|(key, latch)| format!("event {}: {}", name_in(key), latch.in_words()))
            .collect();
        // The times in the record stay: other nodes use them already.
        new.adopt(&self.events);
        next.events = new;
        next.events.forget_old(now);
        let who = Actor {
            token: SCHEDULE.to_owned(),
            ..Actor::default()
        };
        let entry = Entry::following(self, &who, now, what.join(", "), Vec::new());
        next.version = entry.version;
        next.newest = Some(entry);
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::room;

    const START: Timestamp = Timestamp(1_900_000_000_000);
    const SALE: EventTimes = EventTimes {
        prequeue_at: START,
        starts_at: START,
        ends_at: None,
    };

    const fn latch(phase: EventPhase, opens_at: u64) -> EventLatch {
        EventLatch::new(phase, Timestamp(opens_at - 5), Timestamp(opens_at))
    }

    fn latches(phase: EventPhase, opens_at: u64) -> EventLatches {
        let mut latches = EventLatches::default();
        latches.advance("sale", &SALE, latch(phase, opens_at));
        latches
    }

    #[test]
    fn a_phase_never_falls_and_the_first_times_stay() {
        let mut known = latches(EventPhase::Running, 100);
        known.advance("sale", &SALE, latch(EventPhase::Prequeue, 900));
        assert_eq!(known, latches(EventPhase::Running, 100));
        known.advance("sale", &SALE, latch(EventPhase::Over, 900));
        assert_eq!(known, latches(EventPhase::Over, 100));
        // The clock was stepped in the prequeue.
        let mut known = latches(EventPhase::Prequeue, 100);
        known.advance("sale", &SALE, latch(EventPhase::Running, 9_000));
        let of_start = known.of("sale", &SALE).unwrap();
        assert_eq!(of_start.prequeue(), (Timestamp(95), Timestamp(9_000)));
        let known = of_start;
        assert_eq!(known.phase(), EventPhase::Running);
        let over = latches(EventPhase::Over, 100);
        let moved = EventTimes {
            ends_at: Some(START + DurationMs(60_000)),
            ..SALE
        };
        assert_eq!(over.phase("sale", &SALE), EventPhase::Over);
        assert_eq!(over.phase("sale", &moved), EventPhase::Upcoming);
        assert_eq!(over.phase("other", &SALE), EventPhase::Upcoming);
    }

    #[test]
    fn the_times_of_the_store_win_and_each_phase_is_written_once() {
        let stored = RoomOverrides::default();
        let first = stored
            .with_phases(&latches(EventPhase::Prequeue, 100), START)
            .unwrap();
        assert_eq!(first.newest.as_ref().unwrap().what, "event sale: prequeue");
        assert_eq!(first.newest.as_ref().unwrap().who.token, "schedule");
        let other_node = latches(EventPhase::Prequeue, 170);
        assert_eq!(first.with_phases(&other_node, START), None);
        let mut adopted = other_node;
        adopted.adopt(&first.events);
        assert_eq!(adopted, latches(EventPhase::Prequeue, 100));
        let second = first
            .with_phases(&latches(EventPhase::Running, 9_000), START)
            .unwrap();
        // The first times are only those that were expected.
        let started = second.events.of("sale", &SALE).unwrap();
        assert_eq!(started.prequeue(), (Timestamp(95), Timestamp(9_000)));
        assert_eq!(second.version, first.version + 1);
        let text = String::from_utf8(super::super::encode(&second)).unwrap();
        let read: RoomOverrides = super::super::decode(text.as_bytes()).unwrap();
        assert_eq!(read, second);
    }

    #[test]
    fn events_of_last_month_are_forgotten() {
        let over = latches(EventPhase::Over, 100);
        let month_later = START + KEPT_FOR + DurationMs(1);
        assert_eq!(
            RoomOverrides::default().with_phases(&over, month_later),
            None
        );
        let kept = RoomOverrides::default().with_phases(&over, month_later - DurationMs(1));
        assert_eq!(kept.unwrap().events, over);
    }

    #[test]
    fn the_queue_after_a_removed_event_is_known_until_nobody_waits() {
        let room_with = |event: &str| {
            room(&format!(
                "queueing_method = \"passthrough\"\n[[room.event]]\nname = \"{event}\"\n\
                 event_start_time = \"2030-03-17T17:46:40Z\"\ntotal_active_users = 7\n\
                 new_users_per_minute = 9\nqueueing_method = \"random\"\n"
            ))
        };
        let (with, without) = (room_with("sale"), room_with("other"));
        let now = with.events[0].times.starts_at;
        let evaluated = crate::effective(&with, &RoomOverrides::default(), now);
        let running = &evaluated.begun[0];
        let mut known = EventLatches::default();
        let latch = EventLatch::new(running.phase, now, now).with_run_off(running.run_off);
        known.advance("sale", &running.times, latch);
        let stored = RoomOverrides::default().with_phases(&known, now).unwrap();
        let text = String::from_utf8(super::super::encode(&stored)).unwrap();
        let read: RoomOverrides = super::super::decode(text.as_bytes()).unwrap();
        let mut at_start = EventLatches::default();
        at_start.adopt(&read.events);
        assert_eq!(at_start.run_off_of_gone(&with), None);
        let rules = at_start.run_off_of_gone(&without).unwrap();
        let rules = rules.applied_to(without.rules);
        assert_eq!(rules.limits.total_active_users, 7);
        assert_eq!(rules.limits.new_users_per_minute, 9);
        assert_eq!(rules.queueing_method, QueueingMethod::Random);

        at_start.finish_gone(&with);
        assert!(at_start.are_in(&read.events));
        at_start.finish_gone(&without);
        assert_eq!(at_start.run_off_of_gone(&without), None);
        let next = read.with_phases(&at_start, now).unwrap();
        let what = next.newest.as_ref().map(|entry| entry.what.as_str());
        assert_eq!(what, Some("event sale: nobody waits any more"));
        known.adopt(&next.events);
        assert_eq!(known.run_off_of_gone(&without), None);
        // A node that still has the event goes on with it.
        assert_eq!(known.phase("sale", &running.times), EventPhase::Running);
        assert!(!known.of("sale", &running.times).unwrap().has_drained());
    }

    #[test]
    fn the_end_of_the_queue_is_the_last_phase() {
        let mut known = latches(EventPhase::Over, 100);
        assert!(!known.of("sale", &SALE).unwrap().has_drained());
        let stored = RoomOverrides::default().with_phases(&known, START).unwrap();
        known.drain("sale", &SALE);
        assert!(known.of("sale", &SALE).unwrap().has_drained());
        assert_eq!(known.phase("sale", &SALE), EventPhase::Over);
        let next = stored.with_phases(&known, START).unwrap();
        let what = next.newest.as_ref().map(|entry| entry.what.as_str());
        assert_eq!(what, Some("event sale: nobody waits any more"));
        let mut other_node = latches(EventPhase::Over, 100);
        other_node.adopt(&next.events);
        assert_eq!(other_node, known);
    }
}
