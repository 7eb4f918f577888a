//! Meaning of `[[room.event]]`.

use std::fmt;

use anteroom_room::event::EventTimes;
use anteroom_room::rules::{Limits, QueueingMethod};
use anteroom_room::time::DurationMs;

use super::{PageTemplate, RoomName};

/// An event's name: 1 to 64 of `A-Z a-z 0-9 - _`, other than [`EventName::OPENING`].
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct EventName(String);

impl EventName {
    /// Name of the event that `opens_at` of a room stands for.
    pub const OPENING: &'static str = "opening";

    /// Returns a name, if `text` is one.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let is_name = RoomName::new(text).is_some() && text != Self::OPENING;
        is_name.then(|| Self(text.to_owned()))
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One `[[room.event]]`: a scheduled change of its room.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RoomEvent {
    /// Name, unique in the room.
    pub name: EventName,
    /// Text for people; may be empty.
    pub description: String,
    /// Whether the event is ignored.
    pub is_suspended: bool,
    /// Times, by the wall clock.
    pub times: EventTimes,
    /// Whether those who come in the prequeue enter in random order.
    pub is_shuffled: bool,
    /// Values that hold from the prequeue to the end.
    pub values: EventValues,
    /// Changes of the limits after the start, in order.
    pub steps: Vec<EventStep>,
}

/// Values of an event; those of the room hold where there is none.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct EventValues {
    /// Both limits.
    pub limits: Option<Limits>,
    /// Order in which waiting visitors enter.
    pub queueing_method: Option<QueueingMethod>,
    /// Time for which a visitor stays active after its last request.
    pub session_duration: Option<DurationMs>,
    /// Whether a request extends the session.
    pub session_renewal: Option<bool>,
    /// The operator's own page.
    pub template: Option<PageTemplate>,
}

/// Change of the limits in the course of an event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct EventStep {
    /// Time after the start.
    pub after: DurationMs,
    /// Most active visitors at once from then on; `None` = as before.
    pub total_active_users: Option<u32>,
    /// Most admissions within one minute from then on; `None` = as before.
    pub new_users_per_minute: Option<u32>,
}
