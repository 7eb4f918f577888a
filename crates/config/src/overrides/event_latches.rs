//! Phases that events have reached, so that none of them goes back if a clock does.
//!
//! They are in the record of overrides: it lies in the store of the root's ledger, each data center
//! has a copy, and all nodes read it. A change of phase is an entry of the audit log.

use std::collections::BTreeMap;

use anteroom_room::event::{EventPhase, EventTimes};
use anteroom_room::time::{DurationMs, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Actor, Entry, RoomOverrides};

/// Name of the author of entries that the schedule makes.
const SCHEDULE: &str = "schedule";
/// Time after its start for which an event is remembered.
const KEPT_FOR: DurationMs = DurationMs::from_secs(31 * 86_400);

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
        }
    }

    /// Whether the event is over, and nobody waits any more who came before its end.
    #[must_use]
    pub const fn has_drained(&self) -> bool {
        self.phase >= DRAINED
    }

    /// Returns the phase in words, for the audit log.
    const fn in_words(&self) -> &'static str {
        if self.has_drained() {
            "nobody waits any more"
        } else {
            self.phase().name()
        }
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
            };
        }
    }

    /// Whether `stored` has all phases that are here.
    #[must_use]
    pub fn are_in(&self, stored: &Self) -> bool {
        let mut latches = self.0.iter();
        latches.all(|(key, latch)| {
            let stored = stored.0.get(key);
            stored.is_some_and(|stored| stored.phase >= latch.phase)
        })
    }

    /// Removes events that started long before `now`.
    pub fn forget_old(&mut self, now: Timestamp) {
        self.0.retain(|key, _| {
            let start = key.rsplit_once(' ').and_then(|(_, at)| at.parse().ok());
            start.is_some_and(|start| Timestamp(start) + KEPT_FOR >= now)
        });
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
            stored.is_none_or(|stored| stored.phase < latch.phase)
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
