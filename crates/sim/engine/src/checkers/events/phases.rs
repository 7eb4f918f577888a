//! Checker of invariant 10: the phase of an event only moves forward, at each process and, once it
//! is stored, at all nodes.

use anteroom_config::overrides::RoomOverrides;
use anteroom_room::event::EventPhase;
use anteroom_room::time::{DurationMs, Timestamp};

use super::{ScheduledNode, key_of, timetable};
use crate::checkers::Checkers;
use crate::outcome::Invariant;

/// Time until all nodes know a stored phase: they read the record once a second.
const KNOWN_WITHIN: DurationMs = DurationMs(5_000);

impl Checkers {
    /// Checks the phases that a node shows after it has evaluated its schedule, and notes them.
    pub(crate) fn check_phases(&mut self, node: &ScheduledNode<'_>, now: Timestamp) {
        let is_calm = self.is_undisturbed(now);
        let known_from = now - KNOWN_WITHIN - self.slack();
        let knows_record = node.known_since.is_some_and(|since| since <= known_from);
        let stored = node
            .stored
            .filter(|(since, _)| *since <= known_from && knows_record && is_calm);
        for event in timetable::planned(node.file) {
            let key = key_of(event);
            let shown = node
                .begun
                .iter()
                .find(|shown| shown.name == event.name.as_str() && shown.times == event.times);
            let shown = shown.map_or(EventPhase::Upcoming, |shown| shown.phase);
            let own = self
                .events
                .own
                .entry((node.node, node.incarnation))
                .or_default();
            let before = own.get(&key).copied().unwrap_or_default();
            let phase_in =
                |record: &RoomOverrides| record.events.phase(event.name.as_str(), &event.times);
            let stored = stored.map_or(EventPhase::Upcoming, |(_, record)| phase_in(record));
            // What it has read stays, even while its wall clock may be wrong.
            let read = phase_in(node.known).min(shown);
            own.insert(key.clone(), before.max(read));
            if node.is_steady {
                let by_clock = timetable::phase(event, node.wall);
                own.insert(key.clone(), before.max(read).max(by_clock));
                let reached = self.events.reached.entry(key).or_default();
                *reached = (*reached).max(by_clock);
            }
            let least = before.max(stored);
            if shown < least {
                let (shown, least) = (shown.name(), least.name());
                self.report(Invariant::Phase, now, || {
                    format!("an event that was {least} is {shown} again")
                });
            }
        }
        self.note_limits_of_plan(node);
    }
}
