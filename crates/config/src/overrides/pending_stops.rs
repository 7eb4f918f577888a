//! Commands that one node applies before they are stored.
//!
//! Stopping admissions must not depend on a store. A node that cannot store a stop keeps it as
//! pending, and stores it as soon as the store responds. The newest command about a subject wins: a
//! pending stop is dropped when the record has a later command about the same subject.

use serde::{Deserialize, Serialize};

use super::command::QUEUE_ALL;
use super::{Actor, OperatorCommand, RoomOverrides, Until};
use crate::RoomConfig;

/// Command that a node may apply before it is stored, because it can only admit fewer visitors.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// Admit no new visitor.
    Pause {
        /// Reason, in the operator's words.
        message: Option<String>,
    },
    /// Queue every visitor who is not active.
    QueueAll,
    /// Show this on the page; `None` removes the message.
    Message(Option<String>),
    /// Stop with an end.
    Until(Box<Self>, Until),
}

/// Subject of a command; the newest command about it wins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Subject {
    /// The pause.
    Pause,
    /// The key `queue_all`.
    QueueAll,
    /// The message.
    Message,
}

/// Time of the newest command about each subject, in Unix milliseconds; 0 = never, or before these
/// times were recorded.
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

    pub(super) fn of(self, subject: Subject) -> u64 {
        match subject {
            Subject::Pause => self.pause,
            Subject::QueueAll => self.queue_all,
            Subject::Message => self.message,
        }
    }

    /// Records the time of a command.
    pub(super) fn note(&mut self, command: &OperatorCommand, at: u64) {
        let decided = |subject, before| {
            if command.is_about(subject) {
                at
            } else {
                before
            }
        };
        *self = Self {
            pause: decided(Subject::Pause, self.pause),
            queue_all: decided(Subject::QueueAll, self.queue_all),
            message: decided(Subject::Message, self.message),
        };
    }
}

impl OperatorCommand {
    /// Whether the command is about `subject`.
    #[must_use]
    pub fn is_about(&self, subject: Subject) -> bool {
        match self {
            Self::Pause { .. } | Self::Resume => subject == Subject::Pause,
            Self::QueueAll => subject == Subject::QueueAll,
            Self::Open => subject != Subject::Message,
            Self::Message(_) => subject == Subject::Message,
            Self::Undo(entry) => entry
                .changes
                .iter()
                .any(|change| change.key == subject.key()),
            Self::Reset(None) => true,
            Self::Reset(Some(key)) => key == subject.key(),
            Self::Set(values) => subject == Subject::QueueAll && values.contains_key(QUEUE_ALL),
            Self::AssumeEmpty => false,
            Self::Until(command, _) => command.is_about(subject),
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
    /// Returns the stop that `command` is; `None` if it is not a stop.
    #[must_use]
    pub fn of(command: &OperatorCommand) -> Option<Self> {
        match command {
            OperatorCommand::Pause { message } => Some(Self::Pause {
                message: message.clone(),
            }),
            OperatorCommand::QueueAll => Some(Self::QueueAll),
            OperatorCommand::Message(message) => Some(Self::Message(message.clone())),
            OperatorCommand::Until(command, until) => {
                Self::of(command).map(|stop| Self::Until(Box::new(stop), *until))
            }
            _ => None,
        }
    }

    /// Returns the command.
    #[must_use]
    pub fn command(&self) -> OperatorCommand {
        match self {
            Self::Pause { message } => OperatorCommand::Pause {
                message: message.clone(),
            },
            Self::QueueAll => OperatorCommand::QueueAll,
            Self::Message(message) => OperatorCommand::Message(message.clone()),
            Self::Until(stop, until) => OperatorCommand::Until(Box::new(stop.command()), *until),
        }
    }

    fn subject(&self) -> Subject {
        match self {
            Self::Pause { .. } => Subject::Pause,
            Self::QueueAll => Subject::QueueAll,
            Self::Message(_) => Subject::Message,
            Self::Until(stop, _) => stop.subject(),
        }
    }
}

/// Stop that one node keeps until it can be stored.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingStop {
    /// The stop.
    pub stop: Stop,
    /// Operator who gave it.
    pub who: Actor,
    /// Time, in Unix milliseconds by the wall clock.
    pub at: u64,
}

impl PendingStop {
    /// Whether the record has a command about the same subject that is as new or newer.
    #[must_use]
    pub fn is_decided_by(&self, overrides: &RoomOverrides) -> bool {
        overrides.decided_at.of(self.stop.subject()) >= self.at
    }
}

/// Pending stops of one node: at most one for each subject.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct PendingStops(Vec<PendingStop>);

impl PendingStops {
    /// Returns the stops, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &PendingStop> {
        self.0.iter()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a stop; it replaces an older one about the same subject.
    pub fn add(&mut self, stop: PendingStop) {
        let subject = stop.stop.subject();
        self.0.retain(|pending| pending.stop.subject() != subject);
        self.0.push(stop);
    }

    /// Removes a stop.
    pub fn remove(&mut self, stop: &PendingStop) {
        self.0.retain(|pending| pending != stop);
    }

    /// Whether `command` ends some of them.
    #[must_use]
    pub fn has_any_about(&self, command: &OperatorCommand) -> bool {
        self.iter()
            .any(|pending| command.is_about(pending.stop.subject()))
    }

    /// Removes those that `command` is about.
    pub fn end(&mut self, command: &OperatorCommand) {
        self.0
            .retain(|pending| !command.is_about(pending.stop.subject()));
    }

    /// Removes those that the record has a newer command about, and returns them.
    pub fn remove_decided(&mut self, overrides: &RoomOverrides) -> Vec<PendingStop> {
        let is_decided = |pending: &mut PendingStop| pending.is_decided_by(overrides);
        self.0.extract_if(.., is_decided).collect()
    }

    /// Applies the changes from `before` to `found` that another process on the same data folder
    /// has made.
    pub fn merge(&mut self, before: &Self, found: &Self) {
        self.0
            .retain(|pending| found.0.contains(pending) || !before.0.contains(pending));
        for stop in found.0.iter().filter(|stop| !before.0.contains(stop)) {
            let subject = stop.stop.subject();
            let is_newer =
                |pending: &PendingStop| pending.stop.subject() == subject && pending.at > stop.at;
            if !self.0.iter().any(is_newer) {
                self.add(stop.clone());
            }
        }
    }

    /// Returns the overrides of this node: the stored ones with the pending stops over them.
    #[must_use]
    pub fn applied_over(&self, overrides: &RoomOverrides, file: &RoomConfig) -> RoomOverrides {
        let mut all = overrides.clone();
        for pending in &self.0 {
            all.apply_pending(&pending.stop.command(), file, &pending.who, pending.at);
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

    fn pending(command: &OperatorCommand, at: u64) -> PendingStop {
        PendingStop {
            stop: Stop::of(command).unwrap(),
            who: Actor::default(),
            at,
        }
    }

    /// Checks a pause that is pending since `PAUSED_AT`; the record has `command`, given at `at`.
    fn check(command: &OperatorCommand, at: u64, is_still_pending: bool) {
        const PAUSED_AT: u64 = 1_000;
        let stored = RoomOverrides::default();
        let stored = stored.after(command, &file(), &Actor::default(), Timestamp(at));
        let mut all = PendingStops::default();
        all.add(pending(
            &OperatorCommand::Pause { message: None },
            PAUSED_AT,
        ));
        all.remove_decided(&stored.unwrap());
        assert_eq!(!all.is_empty(), is_still_pending, "{command:?} at {at}");
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
    fn pending_stops_win_over_the_record() {
        let mut all = PendingStops::default();
        all.add(pending(&OperatorCommand::QueueAll, 5));
        let message = Some("Back at ten".to_owned());
        all.add(pending(&OperatorCommand::Pause { message }, 7));
        let overrides = all.applied_over(&RoomOverrides::default(), &file());
        assert_eq!(overrides.pause.as_ref().map(|pause| pause.since), Some(7));
        assert_eq!(overrides.message(), Some("Back at ten"));
        assert_eq!(overrides.message_at(), Some(Timestamp(7)));
        assert_eq!(overrides.values[QUEUE_ALL], true);
        assert_eq!(overrides.version, 0, "nothing is written down");
        all.end(&OperatorCommand::Resume);
        assert_eq!(all.iter().count(), 1, "a resume does not end queue-all");
        all.end(&OperatorCommand::Open);
        assert!(all.is_empty());
    }

    #[test]
    fn changes_of_another_process_are_merged_with_own_changes() {
        let pause = |at| pending(&OperatorCommand::Pause { message: None }, at);
        let queue_all = pending(&OperatorCommand::QueueAll, 3);
        let check =
            |own: &[PendingStop], before: &[PendingStop], found: &[PendingStop], expected| {
                let mut own = PendingStops(own.to_vec());
                own.merge(
                    &PendingStops(before.to_vec()),
                    &PendingStops(found.to_vec()),
                );
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
