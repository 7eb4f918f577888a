//! Ends of overrides, and the operators who set them.
//!
//! An override ends at a time, with an event, or never. An ended one has no effect, and the next
//! change of the room removes it. A value or message that is set during an event ends with the
//! event, unless the operator states otherwise. A stop does not: it ends by itself only if the
//! operator states so.

use std::borrow::Cow;
use std::fmt;

use anteroom_room::event::{EventPhase, EventTimes};
use anteroom_room::time::{DurationMs, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::command::{MESSAGE, PAUSE, QUEUE_ALL};
use super::event_latches::{EventLatches, KEPT_FOR};
use super::{Actor, Change, Entry, OperatorCommand, RoomOverrides};
use crate::effective::{EventNow, events_now};
use crate::time_text::{parse, rfc3339_millis, rfc3339_secs};
use crate::{RoomConfig, RoomEvent};

/// Word for no end.
const NONE: &str = "none";
/// Word for the end of the active event.
const EVENT_END: &str = "event_end";
/// Time before an event at which overrides of its values are reported.
const REPORTED_AHEAD: DurationMs = DurationMs::from_secs(3_600);

/// End of an override as an operator states it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(into = "String", try_from = "String")]
pub enum Until {
    /// No end.
    Never,
    /// Time, by the wall clock.
    At(Timestamp),
    /// End of the active event, or else of the next one.
    EventEnd,
}

impl Until {
    /// Texts that [`Until::parse`] accepts, for people.
    pub const ALLOWED: &str = "a time such as 2030-01-31T10:00:00+01:00, event_end, or none";

    /// Parses the text of an operator; `None` if it is not of [`Until::ALLOWED`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            NONE => Some(Self::Never),
            EVENT_END => Some(Self::EventEnd),
            text => parse(text).map(Self::At),
        }
    }
}

impl From<Until> for String {
    fn from(until: Until) -> Self {
        until.to_string()
    }
}

impl TryFrom<String> for Until {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("{text:?} is not {}", Self::ALLOWED))
    }
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str(NONE),
            Self::At(at) => f.write_str(&rfc3339_millis(*at)),
            Self::EventEnd => f.write_str(EVENT_END),
        }
    }
}

/// Operator who set an override, with its time and its end.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct SetBy {
    /// Operator: the name given, or else that of the token.
    pub who: String,
    /// Time, in Unix milliseconds by the wall clock.
    pub at: u64,
    /// End; `None` if it does not end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
}

/// End of an override.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum End {
    /// Time, in Unix milliseconds by the wall clock.
    At(u64),
    /// End of an event, or its removal or suspension.
    Event(EventEnd),
}

/// Event with which an override ends. Its times are those that it had when the override was set, in
/// Unix milliseconds by the wall clock.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventEnd {
    name: String,
    prequeue_at: u64,
    starts_at: u64,
    ends_at: u64,
}

impl EventEnd {
    /// Returns the end of an event; `None` if it has none.
    fn of(event: &EventNow) -> Option<Self> {
        let EventTimes {
            prequeue_at,
            starts_at,
            ends_at,
        } = event.times;
        Some(Self {
            name: event.name.clone(),
            prequeue_at: prequeue_at.0,
            starts_at: starts_at.0,
            ends_at: ends_at?.0,
        })
    }

    /// Returns the name of the event.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    const fn times(&self) -> EventTimes {
        EventTimes {
            prequeue_at: Timestamp(self.prequeue_at),
            starts_at: Timestamp(self.starts_at),
            ends_at: Some(Timestamp(self.ends_at)),
        }
    }

    /// Whether the event is over or gone. One that was moved before its end is still the same. A
    /// later one of the same name is not: the next sale of a weekly series brings nothing back.
    fn has_come(
        &self,
        events: &[(&RoomEvent, EventNow)],
        latches: &EventLatches,
        now: Timestamp,
    ) -> bool {
        let mut of_name = events.iter().filter(|(_, event)| event.name == self.name);
        let Some((_, event)) = of_name.next() else {
            return true;
        };
        if event.phase == EventPhase::Over {
            return true;
        }
        let times = self.times();
        if event.times == times {
            return false;
        }
        let is_forgotten = times.starts_at + KEPT_FOR <= now;
        match latches.phase(&self.name, &times) {
            EventPhase::Over => true,
            EventPhase::Upcoming if !is_forgotten => false,
            _ => event.times.starts_at.0 >= self.ends_at,
        }
    }
}

impl End {
    fn has_come(
        &self,
        events: &[(&RoomEvent, EventNow)],
        latches: &EventLatches,
        now: Timestamp,
    ) -> bool {
        match self {
            Self::At(at) => *at <= now.0,
            Self::Event(event) => event.has_come(events, latches, now),
        }
    }

    /// Returns the time of the end; `None` if that is not known.
    pub(super) fn at(&self, file: &RoomConfig) -> Option<Timestamp> {
        match self {
            Self::At(at) => Some(Timestamp(*at)),
            Self::Event(end) => {
                let mut events = file.events.iter();
                let event = events.find(|event| event.name.as_str() == end.name)?;
                event.times.ends_at
            }
        }
    }
}

impl OperatorCommand {
    /// Returns the command without its end.
    pub(super) fn inner(&self) -> &Self {
        match self {
            Self::Until(command, _) => command.inner(),
            command => command,
        }
    }

    /// Returns the end that the operator stated.
    pub(super) fn until(&self) -> Option<Until> {
        match self {
            Self::Until(_, until) => Some(*until),
            _ => None,
        }
    }

    /// Whether the command sets an override of `key`, even if its value is the same as before.
    fn sets(&self, key: &str) -> bool {
        match self.inner() {
            Self::Set(values) => values.contains_key(key),
            Self::Pause { .. } => key == PAUSE,
            Self::QueueAll => key == QUEUE_ALL,
            Self::Message(_) => key == MESSAGE,
            Self::Undo(entry) => entry.change_of(key).is_some(),
            _ => false,
        }
    }

    /// Whether an override that the command sets during an event ends with it.
    fn ends_with_event(&self) -> bool {
        matches!(self.inner(), Self::Set(_) | Self::Message(Some(_)))
    }
}

impl Entry {
    /// Returns the change of a key; `None` if the entry has none.
    fn change_of(&self, key: &str) -> Option<&Change> {
        self.changes.iter().find(|change| change.key == key)
    }
}

impl RoomOverrides {
    /// Returns the end of the override of a key; `None` if it has none.
    pub(super) fn end_of(&self, key: &str) -> Option<&End> {
        self.set_by.get(key).and_then(|set| set.end.as_ref())
    }

    /// Whether an end has come at `now`, by the wall clock.
    pub(super) fn has_come(&self, end: &End, file: &RoomConfig, now: Timestamp) -> bool {
        end.has_come(&events_now(file, self, now), &self.events, now)
    }

    /// Returns the overrides without those that have ended at `now`, by the wall clock.
    #[must_use]
    pub fn in_effect(&self, file: &RoomConfig, now: Timestamp) -> Cow<'_, Self> {
        if self.set_by.values().all(|set| set.end.is_none()) {
            return Cow::Borrowed(self);
        }
        let events = events_now(file, self, now);
        let has_ended = |set: &SetBy| {
            let end = set.end.as_ref();
            end.is_some_and(|end| end.has_come(&events, &self.events, now))
        };
        let ended = self.set_by.iter().filter(|(_, set)| has_ended(set));
        let ended: Vec<String> = ended.map(|(key, _)| key.clone()).collect();
        let mut rest = Cow::Borrowed(self);
        for key in ended {
            rest.to_mut().remove(&key);
        }
        rest
    }

    /// Removes the override of a key, of the message, or the pause.
    pub(super) fn remove(&mut self, key: &str) {
        match key {
            MESSAGE => self.message = None,
            PAUSE => self.pause = None,
            key => {
                self.values.remove(key);
            }
        }
        self.set_by.remove(key);
    }

    /// Returns the first time at which an override ends by itself after `now`.
    pub(crate) fn next_end(&self, now: Timestamp) -> Option<Timestamp> {
        let ends = self.set_by.values().filter_map(|set| match set.end {
            Some(End::At(at)) => Some(Timestamp(at)),
            _ => None,
        });
        ends.filter(|at| *at > now).min()
    }

    /// Notes who set the overrides that `command` made of `before`, and when they end.
    pub(super) fn note_setters(
        &mut self,
        before: &Self,
        command: &OperatorCommand,
        file: &RoomConfig,
        (who, at): (&Actor, Timestamp),
    ) {
        let end = match command.until() {
            Some(Until::Never) => None,
            Some(Until::At(at)) => Some(End::At(at.0)),
            Some(Until::EventEnd) => self.ending_event(file, at, EventPhase::Upcoming),
            None if command.ends_with_event() => self.ending_event(file, at, EventPhase::Prequeue),
            None => None,
        };
        let set = SetBy {
            who: who.name().to_owned(),
            at: at.0,
            end,
        };
        let keys = self.overridden();
        self.set_by.retain(|key, _| keys.contains(key));
        for key in keys {
            if command.sets(&key) || self.override_of(&key) != before.override_of(&key) {
                let end = match command.inner() {
                    OperatorCommand::Undo(entry) => {
                        let change = entry.change_of(&key);
                        change.and_then(|change| change.end_before.clone())
                    }
                    _ => set.end.clone(),
                };
                self.set_by.insert(key, SetBy { end, ..set.clone() });
            }
        }
    }

    /// Returns the end of the event that is on, or that is the next one from `phase` on.
    pub(super) fn ending_event(
        &self,
        file: &RoomConfig,
        now: Timestamp,
        phase: EventPhase,
    ) -> Option<End> {
        let events = events_now(file, self, now);
        let near = events.iter().filter(|(_, event)| {
            event.times.ends_at.is_some() && (phase..EventPhase::Over).contains(&event.phase)
        });
        let (_, event) = near.min_by_key(|(_, event)| event.times.prequeue_at)?;
        EventEnd::of(event).map(End::Event)
    }

    /// Returns the names of all overrides.
    fn overridden(&self) -> Vec<String> {
        let mut names: Vec<String> = self.values.keys().cloned().collect();
        names.extend(self.message.as_ref().map(|_| MESSAGE.to_owned()));
        names.extend(self.pause.as_ref().map(|_| PAUSE.to_owned()));
        names
    }

    fn override_of(&self, key: &str) -> Option<Value> {
        match key {
            MESSAGE => self.message.clone().map(Into::into),
            PAUSE => self
                .pause
                .as_ref()
                .map(|pause| pause.message.clone().into()),
            key => self.values.get(key).cloned(),
        }
    }

    /// Returns the values of events ahead or active that have no effect, because an operator set
    /// others before, which do not end before the event. `now` is the wall clock.
    #[must_use]
    pub fn hidden_values(&self, file: &RoomConfig, now: Timestamp) -> Vec<HiddenValue> {
        let events = events_now(file, self, now);
        let ahead = events
            .iter()
            .filter(|(_, event)| event.phase < EventPhase::Over);
        let hidden = ahead.flat_map(|(event, event_now)| {
            let from = event_now.times.prequeue_at;
            let then = self.in_effect(file, from.max(now));
            let keys = event.keys(file).into_iter();
            let hidden = keys.filter(|key| {
                // During the event, an operator knows what it is about.
                let set = then.set_by.get(*key);
                then.values.contains_key(*key) && set.is_none_or(|set| set.at < from.0)
            });
            let hidden = hidden.map(|key| HiddenValue {
                event: event_now.name.clone(),
                is_near: from <= now + REPORTED_AHEAD,
                sentence: format!(
                    "event {} will not change {key}: {}",
                    event_now.name,
                    then.setting(key, file)
                ),
            });
            hidden.collect::<Vec<_>>()
        });
        hidden.collect()
    }

    /// Describes who set the override of a key, to what, when, and until when.
    #[must_use]
    pub fn setting(&self, key: &str, file: &RoomConfig) -> String {
        let value = self.override_of(key).unwrap_or_default();
        let Some(set) = self.set_by.get(key) else {
            return format!("an operator set it to {value}, with no end");
        };
        let at = rfc3339_secs(Timestamp(set.at));
        let until = match &set.end {
            None => ", with no end".to_owned(),
            Some(end) => match end.at(file) {
                Some(at) => format!(", until {}", rfc3339_secs(at)),
                None => ", until the end of an event".to_owned(),
            },
        };
        format!("{} set it to {value} at {at}{until}", set.who)
    }
}

/// Value of an event that has no effect, because an operator set another one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HiddenValue {
    /// Name of the event.
    pub event: String,
    /// Whether the event is active, or begins within an hour.
    pub is_near: bool,
    /// Explanation for people.
    pub sentence: String,
}

impl Actor {
    /// Returns the name that the operator gives, or else that of the token.
    #[must_use]
    pub fn name(&self) -> &str {
        self.user.as_deref().unwrap_or(&self.token)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::effective;
    use crate::overrides::{EventLatch, PendingStop, PendingStops, Record as _, Stop};
    use crate::testing::room;

    /// 2030-01-31T10:00:00Z, when the event starts. Its prequeue starts half an hour before, and it
    /// ends two hours later.
    const TEN: Timestamp = Timestamp(1_896_084_000_000);
    const TOTAL: &str = "total_active_users";

    fn minutes(minutes: i64) -> Timestamp {
        let ms = DurationMs(minutes.unsigned_abs() * 60_000);
        if minutes < 0 { TEN - ms } else { TEN + ms }
    }

    fn sale() -> RoomConfig {
        room(
            "[[room.event]]\nname = \"sale\"\nprequeue_start_time = \"2030-01-31T09:30:00Z\"\n\
             event_start_time = \"2030-01-31T10:00:00Z\"\n\
             event_end_time = \"2030-01-31T12:00:00Z\"\n\
             total_active_users = 500\nnew_users_per_minute = 300\n",
        )
    }

    fn alice() -> Actor {
        Actor {
            token: "local".to_owned(),
            user: Some("alice".to_owned()),
            address: "127.0.0.1".to_owned(),
        }
    }

    fn set(total: u32) -> OperatorCommand {
        OperatorCommand::Set([(TOTAL.to_owned(), json!(total))].into())
    }

    fn until(command: OperatorCommand, text: &str) -> OperatorCommand {
        OperatorCommand::Until(Box::new(command), Until::parse(text).unwrap())
    }

    /// Returns the overrides after commands at these minutes from ten on.
    fn after(commands: &[(i64, OperatorCommand)], file: &RoomConfig) -> RoomOverrides {
        let mut overrides = RoomOverrides::default();
        for (at, command) in commands {
            let next = overrides.after(command, file, &alice(), minutes(*at));
            overrides = next.unwrap_or_else(|error| panic!("{command:?} at {at}: {error}"));
        }
        overrides
    }

    fn total(overrides: &RoomOverrides, file: &RoomConfig, at: i64) -> u32 {
        let limits = effective(file, overrides, minutes(at)).config.rules.limits;
        limits.total_active_users
    }

    /// Checks the limit of the room at these minutes from ten on.
    #[track_caller]
    fn check(commands: &[(i64, OperatorCommand)], expected: &[(i64, u32)]) {
        let file = sale();
        let overrides = after(commands, &file);
        let read = RoomOverrides::decode(&overrides.encode()).unwrap();
        assert_eq!(read, overrides);
        for (at, expected) in expected {
            assert_eq!(total(&overrides, &file, *at), *expected, "at {at}");
        }
    }

    #[test]
    fn an_override_ends_at_its_time() {
        let command = until(set(150), "2030-01-31T10:05:00Z");
        check(&[(0, command.clone())], &[(0, 150), (4, 150), (5, 500)]);
        let overrides = after(&[(0, command)], &sale());
        let next = effective(&sale(), &overrides, TEN).next_change_at;
        assert_eq!(next, Some(minutes(5)));
    }

    #[test]
    fn an_override_ends_with_the_event_during_which_it_is_set() {
        check(&[(1, set(150))], &[(1, 150), (119, 150), (120, 200)]);
        check(&[(-30, set(150))], &[(-30, 150), (119, 150), (120, 200)]);
        let without = until(set(150), "none");
        check(&[(1, without)], &[(1, 150), (121, 150)]);
    }

    #[test]
    fn an_override_before_an_event_stays_unless_the_operator_says_otherwise() {
        check(&[(-31, set(150))], &[(-31, 150), (0, 150), (121, 150)]);
        let with_event = until(set(150), "event_end");
        check(&[(-31, with_event)], &[(0, 150), (119, 150), (120, 200)]);
    }

    #[test]
    fn an_event_that_is_gone_has_ended() {
        let overrides = after(&[(1, set(150))], &sale());
        assert_eq!(total(&overrides, &room(""), 1), 200);
        let mut suspended = sale();
        suspended.events[0].is_suspended = true;
        assert_eq!(total(&overrides, &suspended, 1), 200);
        let mut longer = sale();
        longer.events[0].times.ends_at = Some(minutes(300));
        assert_eq!(total(&overrides, &longer, 200), 150);
    }

    /// Returns the sale, later by some days.
    fn sale_after(days: u64) -> RoomConfig {
        let by = DurationMs::from_secs(days * 86_400);
        let mut file = sale();
        let times = &mut file.events[0].times;
        *times = EventTimes {
            prequeue_at: times.prequeue_at + by,
            starts_at: times.starts_at + by,
            ends_at: times.ends_at.map(|at| at + by),
        };
        file
    }

    #[test]
    fn a_later_event_of_the_same_name_brings_nothing_back() {
        let pause = until(OperatorCommand::Pause { message: None }, "event_end");
        let mut overrides = after(&[(1, set(150)), (2, pause)], &sale());
        let times = sale().events[0].times;
        let is_back = |overrides: &RoomOverrides, days: u64, at: i64| {
            let present = overrides.in_effect(&sale_after(days), minutes(at));
            let (value, pause) = (present.values.contains_key(TOTAL), present.pause.is_some());
            assert_eq!(value, pause);
            value
        };
        // It was moved before any node had seen it begin.
        assert!(is_back(&overrides, 1, 3));
        for phase in [EventPhase::Running, EventPhase::Over] {
            let latch = EventLatch::new(phase, times.prequeue_at, times.starts_at);
            overrides.events.advance("sale", &times, latch);
            for days in [1, 7] {
                assert!(!is_back(&overrides, days, 3), "{phase:?} {days}");
                let then = i64::try_from(days).unwrap() * 1_440 + 3;
                assert!(!is_back(&overrides, days, then), "{phase:?} {days}");
            }
        }
        // The latches of last month are forgotten.
        overrides.events = EventLatches::default();
        assert!(!is_back(&overrides, 35, 32 * 1_440));
    }

    #[test]
    fn an_event_that_is_over_brings_nothing_back_when_it_gets_another_end() {
        let mut overrides = after(&[(1, set(150))], &sale());
        let times = sale().events[0].times;
        let mut longer = sale();
        longer.events[0].times.ends_at = Some(minutes(300));
        let mut reached = |phase| {
            let latch = EventLatch::new(phase, times.prequeue_at, times.starts_at);
            overrides.events.advance("sale", &times, latch);
            total(&overrides, &longer, 200)
        };
        assert_eq!(reached(EventPhase::Running), 150);
        assert_eq!(reached(EventPhase::Over), 500);
    }

    /// Undoes the last of some commands at `undo_at`.
    fn undone(
        commands: &[(i64, OperatorCommand)],
        undo_at: i64,
    ) -> Result<RoomOverrides, crate::Problems> {
        let overrides = after(commands, &sale());
        let entry = overrides.newest.clone().unwrap();
        let undo = OperatorCommand::Undo(Box::new(entry));
        overrides.after(&undo, &sale(), &alice(), minutes(undo_at))
    }

    #[test]
    fn an_undo_returns_the_end_as_well() {
        let ending = || until(set(150), "2030-01-31T10:30:00Z");
        let lasting = || until(set(160), "none");
        let ends = |overrides: &RoomOverrides| overrides.end_of(TOTAL).cloned();
        let at_half = Some(End::At(minutes(30).0));
        for last in [lasting(), OperatorCommand::Reset(None)] {
            let again = undone(&[(1, ending()), (2, last)], 3).unwrap();
            assert_eq!(
                (total(&again, &sale(), 3), ends(&again)),
                (150, at_half.clone())
            );
            let redo = OperatorCommand::Undo(Box::new(again.newest.clone().unwrap()));
            again.after(&redo, &sale(), &alice(), minutes(4)).unwrap();
        }
        // What was set for good before the event stays after it.
        let again = undone(&[(-60, set(9)), (1, set(8))], 2).unwrap();
        assert_eq!((total(&again, &sale(), 121), ends(&again)), (9, None));
        // Only the end was changed.
        let again = undone(&[(1, ending()), (2, until(set(150), "none"))], 3).unwrap();
        assert_eq!(ends(&again), at_half);
        let pause = || OperatorCommand::Pause { message: None };
        let short = || until(pause(), "2030-01-31T10:05:00Z");
        let resumed = [(1, short()), (2, OperatorCommand::Resume)];
        let again = undone(&resumed, 3).unwrap();
        assert!(again.in_effect(&sale(), minutes(5)).pause.is_none());
        let error = undone(&resumed, 6).unwrap_err().to_string();
        assert!(error.contains("has ended since"), "{error}");
    }

    #[test]
    fn a_stop_ends_only_if_the_operator_says_so() {
        let file = sale();
        let pause = OperatorCommand::Pause { message: None };
        let is_held = |overrides: &RoomOverrides, at| {
            let rules = effective(&file, overrides, minutes(at)).config.rules;
            rules.queue_all
        };
        for stop in [pause, OperatorCommand::QueueAll] {
            let overrides = after(&[(1, stop.clone())], &file);
            assert!(is_held(&overrides, 500), "{stop:?}");
            let ending = until(stop.clone(), "2030-01-31T10:30:00Z");
            let overrides = after(&[(1, ending)], &file);
            assert!(
                is_held(&overrides, 29) && !is_held(&overrides, 30),
                "{stop:?}"
            );
        }
        let message = OperatorCommand::Message(Some("Soon".to_owned()));
        let overrides = after(&[(1, message)], &file);
        assert_eq!(
            overrides.in_effect(&file, minutes(119)).message(),
            Some("Soon")
        );
        assert_eq!(overrides.in_effect(&file, minutes(120)).message(), None);
    }

    #[test]
    fn the_next_change_removes_what_has_ended_and_does_not_log_it_as_its_own() {
        let file = sale();
        let resume = OperatorCommand::Resume;
        let overrides = after(&[(1, set(150)), (121, resume)], &file);
        assert!(overrides.values.is_empty() && overrides.set_by.is_empty());
        assert_eq!(overrides.newest.unwrap().changes, []);
        let again = after(&[(1, set(150)), (2, until(set(150), "none"))], &file);
        assert_eq!(again.set_by[TOTAL].end, None);
        let reset = OperatorCommand::Reset(Some(TOTAL.to_owned()));
        let reset = after(&[(1, set(150)), (2, reset)], &file);
        assert!(reset.set_by.is_empty());
        let entry = again.newest.unwrap();
        assert_eq!(entry.what, "set total_active_users=150 --until none");
    }

    #[test]
    fn an_end_that_cannot_come_is_a_mistake() {
        let refused = |command: OperatorCommand, file: &RoomConfig| {
            let after = RoomOverrides::default().after(&command, file, &alice(), TEN);
            after.unwrap_err().to_string()
        };
        let text = refused(until(set(1), "2030-01-31T10:00:00Z"), &sale());
        assert!(text.contains("until") && text.contains("is over"), "{text}");
        let text = refused(until(set(1), "event_end"), &room(""));
        assert!(text.contains("no event ahead"), "{text}");
        assert_eq!(Until::parse("tomorrow"), None);
    }

    #[test]
    fn a_pending_stop_keeps_its_end() {
        let file = sale();
        let pause = OperatorCommand::Pause { message: None };
        let command = until(pause, "2030-01-31T10:30:00Z");
        let mut pending = PendingStops::default();
        pending.add(PendingStop {
            stop: Stop::of(&command).unwrap(),
            who: alice(),
            at: TEN.0,
        });
        let text = serde_json::to_string(&pending).unwrap();
        let pending: PendingStops = serde_json::from_str(&text).unwrap();
        let overrides = pending.applied_over(&RoomOverrides::default(), &file);
        assert!(overrides.in_effect(&file, minutes(29)).pause.is_some());
        assert!(overrides.in_effect(&file, minutes(30)).pause.is_none());
    }

    #[test]
    fn values_that_an_event_will_not_change_are_named() {
        let file = sale();
        let sentences = |overrides: &RoomOverrides, at| {
            let hidden = overrides.hidden_values(&file, minutes(at)).into_iter();
            let near = hidden.filter(|value| value.is_near);
            near.map(|value| value.sentence).collect::<Vec<_>>()
        };
        let overrides = after(&[(-1_500, set(150))], &file);
        assert_eq!(sentences(&overrides, -91), [""; 0]);
        let expected = "event sale will not change total_active_users: alice set it to 150 at \
                        2030-01-30T09:00:00Z, with no end";
        for at in [-90, 0, 119] {
            assert_eq!(sentences(&overrides, at), [expected], "at {at}");
        }
        assert_eq!(sentences(&overrides, 120), [""; 0]);
        let ending = until(set(150), "2030-01-31T09:30:00Z");
        let ending = after(&[(-1_500, ending)], &file);
        assert_eq!(sentences(&ending, -60), [""; 0]);
        let during = after(&[(1, set(150))], &file);
        assert_eq!(sentences(&during, 2), [""; 0]);
    }
}
