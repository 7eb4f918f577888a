//! Which commands does one node obey before they are written down?
//!
//! Stopping admissions must not depend on a store. A node that cannot write a stop down holds it by
//! itself, and writes it as soon as the store answers. Of each subject the newest command holds: a
//! stop that waits here is dropped when the record has a later command about the same subject.

use serde::{Deserialize, Serialize};

use super::order::QUEUE_ALL;
use super::{Actor, OperatorCommand, RoomOverrides};
use crate::RoomConfig;

/// A command that a node may obey before it is written down: it lets in nobody who would not be let
/// in without it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// Nobody new goes in.
    Pause {
        /// Why, in the operator's words.
        message: Option<String>,
    },
    /// Everybody who is not inside waits.
    QueueAll,
    /// Stands on the page; `None` takes it away.
    Message(Option<String>),
}

/// What a command is about, where the newest one holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Subject {
    /// The pause.
    Pause,
    /// The key `queue_all`.
    QueueAll,
    /// The message.
    Message,
}

/// When somebody last gave a command about each subject, in Unix milliseconds; 0 = never, or before
/// this was written down.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DecidedAt {
    pause: u64,
    queue_all: u64,
    message: u64,
}

impl DecidedAt {
    pub(super) fn is_never(&self) -> bool {
        *self == Self::default()
    }

    fn of(self, subject: Subject) -> u64 {
        match subject {
            Subject::Pause => self.pause,
            Subject::QueueAll => self.queue_all,
            Subject::Message => self.message,
        }
    }

    /// Takes note of a command.
    pub(super) fn note(&mut self, order: &OperatorCommand, at: u64) {
        let decided = |subject, before| if order.is_about(subject) { at } else { before };
        *self = Self {
            pause: decided(Subject::Pause, self.pause),
            queue_all: decided(Subject::QueueAll, self.queue_all),
            message: decided(Subject::Message, self.message),
        };
    }
}

impl OperatorCommand {
    /// Whether the command decides about `subject`.
    #[must_use]
    pub fn is_about(&self, subject: Subject) -> bool {
        match self {
            Self::Pause { .. } | Self::Resume => subject == Subject::Pause,
            Self::QueueAll => subject == Subject::QueueAll,
            Self::Open => subject != Subject::Message,
            Self::Message(_) => subject == Subject::Message,
            Self::Reset(None) => true,
            Self::Reset(Some(key)) => key == subject.key(),
            Self::Set(values) => subject == Subject::QueueAll && values.contains_key(QUEUE_ALL),
            Self::AssumeEmpty => false,
        }
    }
}

impl Subject {
    const fn key(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::QueueAll => QUEUE_ALL,
            Self::Message => "message",
        }
    }
}

impl Stop {
    /// The stop that `order` is; `None` if it is none.
    #[must_use]
    pub fn of(order: &OperatorCommand) -> Option<Self> {
        match order {
            OperatorCommand::Pause { message } => Some(Self::Pause {
                message: message.clone(),
            }),
            OperatorCommand::QueueAll => Some(Self::QueueAll),
            OperatorCommand::Message(message) => Some(Self::Message(message.clone())),
            _ => None,
        }
    }

    /// The command.
    #[must_use]
    pub fn order(&self) -> OperatorCommand {
        match self {
            Self::Pause { message } => OperatorCommand::Pause {
                message: message.clone(),
            },
            Self::QueueAll => OperatorCommand::QueueAll,
            Self::Message(message) => OperatorCommand::Message(message.clone()),
        }
    }

    const fn subject(&self) -> Subject {
        match self {
            Self::Pause { .. } => Subject::Pause,
            Self::QueueAll => Subject::QueueAll,
            Self::Message(_) => Subject::Message,
        }
    }
}

/// A stop that one node holds by itself.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldStop {
    /// Which.
    pub stop: Stop,
    /// Who gave it.
    pub who: Actor,
    /// When, in Unix milliseconds by the wall clock.
    pub at: u64,
}

impl HeldStop {
    /// Whether the record has a command about the same subject that is as new, or newer.
    #[must_use]
    pub fn is_decided_by(&self, overrides: &RoomOverrides) -> bool {
        overrides.decided_at.of(self.stop.subject()) >= self.at
    }
}

/// The stops that one node holds by itself: at most one of each subject.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct HeldStops(Vec<HeldStop>);

impl HeldStops {
    /// The stops, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &HeldStop> {
        self.0.iter()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Holds one more, in the place of an older one about the same subject.
    pub fn add(&mut self, stop: HeldStop) {
        let subject = stop.stop.subject();
        self.0.retain(|held| held.stop.subject() != subject);
        self.0.push(stop);
    }

    /// Lets go of one.
    pub fn remove(&mut self, stop: &HeldStop) {
        self.0.retain(|held| held != stop);
    }

    /// Whether `order` ends some of them.
    #[must_use]
    pub fn has_any_about(&self, order: &OperatorCommand) -> bool {
        self.iter().any(|held| order.is_about(held.stop.subject()))
    }

    /// Lets go of those that `order` is about.
    pub fn end(&mut self, order: &OperatorCommand) {
        self.0.retain(|held| !order.is_about(held.stop.subject()));
    }

    /// Lets go of those that the record has decided about, and returns them.
    pub fn settle(&mut self, overrides: &RoomOverrides) -> Vec<HeldStop> {
        let is_decided = |held: &mut HeldStop| held.is_decided_by(overrides);
        self.0.extract_if(.., is_decided).collect()
    }

    /// Takes over what another process on the same data folder has changed from `before` to
    /// `found`.
    pub fn follow(&mut self, before: &Self, found: &Self) {
        self.0
            .retain(|held| found.0.contains(held) || !before.0.contains(held));
        for stop in found.0.iter().filter(|stop| !before.0.contains(stop)) {
            let subject = stop.stop.subject();
            let is_newer = |held: &HeldStop| held.stop.subject() == subject && held.at > stop.at;
            if !self.0.iter().any(is_newer) {
                self.add(stop.clone());
            }
        }
    }

    /// What holds at this node, where the record says `overrides`.
    #[must_use]
    pub fn over(&self, overrides: &RoomOverrides, file: &RoomConfig) -> RoomOverrides {
        let mut all = overrides.clone();
        for held in &self.0 {
            all.put_over(&held.stop.order(), file, held.at);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use anteroom_room::time::Timestamp;

    use super::*;
    use crate::Config;

    fn file() -> RoomConfig {
        let text = "[[room]]\nname = \"shop\"\norigin = \"http://127.0.0.1:9\"\n\
                    total_active_users = 5\nnew_users_per_minute = 5\nbypass = []\n";
        Config::parse("t.toml", text)
            .unwrap()
            .config
            .rooms
            .remove(0)
    }

    fn held(order: &OperatorCommand, at: u64) -> HeldStop {
        HeldStop {
            stop: Stop::of(order).unwrap(),
            who: Actor::default(),
            at,
        }
    }

    /// A pause is held since `PAUSED_AT`, and the record has `order`, given at `at`.
    fn check(order: &OperatorCommand, at: u64, is_still_held: bool) {
        const PAUSED_AT: u64 = 1_000;
        let said = RoomOverrides::default();
        let said = said.after(order, &file(), &Actor::default(), Timestamp(at));
        let mut all = HeldStops::default();
        all.add(held(&OperatorCommand::Pause { message: None }, PAUSED_AT));
        all.settle(&said.unwrap());
        assert_eq!(!all.is_empty(), is_still_held, "{order:?} at {at}");
    }

    #[test]
    fn only_a_later_command_about_the_pause_ends_it() {
        let set = |key: &str| OperatorCommand::Set([(key.to_owned(), true.into())].into());
        check(&OperatorCommand::Resume, 999, true);
        check(&OperatorCommand::Resume, 1_001, false);
        check(&OperatorCommand::Open, 1_001, false);
        check(&OperatorCommand::Reset(None), 1_001, false);
        check(
            &OperatorCommand::Reset(Some("pause".to_owned())),
            1_001,
            false,
        );
        check(&OperatorCommand::Pause { message: None }, 1_000, false);
        check(&OperatorCommand::QueueAll, 1_001, true);
        check(&set("pacing"), 1_001, true);
        check(
            &OperatorCommand::Message(Some("hello".to_owned())),
            1_001,
            true,
        );
        check(&OperatorCommand::AssumeEmpty, 1_001, true);
    }

    #[test]
    fn what_is_held_stands_over_the_record() {
        let mut all = HeldStops::default();
        all.add(held(&OperatorCommand::QueueAll, 5));
        let message = Some("Back at ten".to_owned());
        all.add(held(&OperatorCommand::Pause { message }, 7));
        let overrides = all.over(&RoomOverrides::default(), &file());
        assert_eq!(overrides.pause.as_ref().map(|pause| pause.since), Some(7));
        assert_eq!(overrides.message(), Some("Back at ten"));
        assert_eq!(overrides.values[QUEUE_ALL], true);
        assert_eq!(overrides.version, 0, "nothing is written down");
        all.end(&OperatorCommand::Resume);
        assert_eq!(all.iter().count(), 1, "a resume ends no queue-all");
        all.end(&OperatorCommand::Open);
        assert!(all.is_empty());
    }

    #[test]
    fn what_another_process_has_changed_is_taken_over_and_own_changes_stay() {
        let pause = |at| held(&OperatorCommand::Pause { message: None }, at);
        let queue_all = held(&OperatorCommand::QueueAll, 3);
        let check = |own: &[HeldStop], before: &[HeldStop], found: &[HeldStop], expected| {
            let mut own = HeldStops(own.to_vec());
            own.follow(&HeldStops(before.to_vec()), &HeldStops(found.to_vec()));
            assert_eq!(own.0, expected);
        };
        check(&[], &[], &[pause(1)], vec![pause(1)]);
        check(&[pause(1)], &[pause(1)], &[], vec![]);
        check(&[pause(1)], &[], &[], vec![pause(1)]);
        check(&[pause(2)], &[], &[pause(1)], vec![pause(2)]);
        check(&[pause(2)], &[], &[pause(4)], vec![pause(4)]);
        let both = vec![pause(2), queue_all.clone()];
        check(&[pause(2)], &[], &[queue_all], both);
    }
}
