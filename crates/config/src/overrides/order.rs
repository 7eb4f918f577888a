//! What may an operator say, and what becomes of what was said before?
//!
//! A pure function: what was said, what the file says, what is said now. All mistakes are told at
//! once, and nothing is changed then.

use std::collections::BTreeMap;

use anteroom_room::time::Timestamp;
use serde_json::Value;

use super::{Actor, Change, Entry, Pause, RoomOverrides};
use crate::time_text::rfc3339_millis;
use crate::{Finding, LiveValues, Owner, Problem, Problems, RoomConfig, check_live_key};

/// Most bytes of values in a record: every key there is takes less than a thousand. Each node reads
/// the record once a second.
const VALUES_BYTES_MAX: usize = 4_096;

/// Longest message. It stands on every waiting page, beside everything else that must fit.
pub(super) const MESSAGE_CHARS_MAX: usize = 500;

pub(super) const QUEUE_ALL: &str = "queue_all";
const OPENS_AT: &str = "opens_at";
const SUSPENDED: &str = "suspended";
/// What can be set back beside the keys of the file.
const OTHERS: [&str; 2] = [MESSAGE, PAUSE];
const MESSAGE: &str = "message";
const PAUSE: &str = "pause";

/// What an operator says.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OperatorCommand {
    /// These values win over the file.
    Set(LiveValues),
    /// Nobody new goes in, and the page says so.
    Pause {
        /// Why.
        message: Option<String>,
    },
    /// Ends a pause.
    Resume,
    /// Everybody who is not inside waits.
    QueueAll,
    /// Ends a pause and queue-all, and opens a room that has not opened yet.
    Open,
    /// Stands on the page; `None` takes it away.
    Message(Option<String>),
    /// As the file says: one key, or everything.
    Reset(Option<String>),
    /// Nobody is inside; changes nothing here, and is written down.
    AssumeEmpty,
}

impl OperatorCommand {
    /// The same as a command, for the log.
    #[must_use]
    pub fn command(&self) -> String {
        let quoted = |message: &Option<String>| {
            let text = message.as_deref().unwrap_or_default();
            Value::from(text).to_string()
        };
        match self {
            Self::Set(values) => {
                let pairs = values.iter().map(|(key, value)| format!(" {key}={value}"));
                format!("set{}", pairs.collect::<String>())
            }
            Self::Pause { message: None } => "pause".to_owned(),
            Self::Pause { message } => format!("pause --message {}", quoted(message)),
            Self::Resume => "resume".to_owned(),
            Self::QueueAll => "queue-all".to_owned(),
            Self::Open => "open".to_owned(),
            Self::Message(message) => format!("message {}", quoted(message)),
            Self::Reset(None) => "reset".to_owned(),
            Self::Reset(Some(key)) => format!("reset {key}"),
            Self::AssumeEmpty => "assume-empty".to_owned(),
        }
    }
}

impl RoomOverrides {
    /// What holds after `order`, in a room of which the file says `file`. `now` is the wall clock.
    ///
    /// # Errors
    ///
    /// [`Problems`] with every mistake; nothing is changed then.
    pub fn after(
        &self,
        order: &OperatorCommand,
        file: &RoomConfig,
        who: &Actor,
        now: Timestamp,
    ) -> Result<Self, Problems> {
        let mut next = self.clone();
        next.obey(order, file, now)?;
        next.check(self, order, file)?;
        let changes = changes(&self.facts(file), &next.facts(file));
        let entry = Entry::following(self, who, now, order.command(), changes);
        next.version = entry.version;
        next.decided_at.note(order, entry.at);
        next.newest = Some(entry);
        Ok(next)
    }

    /// Lets `order` hold, given at `at`, without writing it down. It was checked when it was given:
    /// if the file has changed since and it makes no sense any more, it does not hold.
    pub(super) fn put_over(&mut self, order: &OperatorCommand, file: &RoomConfig, at: u64) {
        let mut next = self.clone();
        if next.obey(order, file, Timestamp(at)).is_ok() {
            *self = next;
        }
    }

    fn obey(
        &mut self,
        order: &OperatorCommand,
        file: &RoomConfig,
        now: Timestamp,
    ) -> Result<(), Problems> {
        match order {
            OperatorCommand::Set(values) => self.values.extend(values.clone()),
            OperatorCommand::Pause { message } => {
                self.pause = Some(Pause {
                    message: checked(message.as_deref(), file)?,
                    since: self.pause.as_ref().map_or(now.0, |pause| pause.since),
                });
            }
            OperatorCommand::Resume => self.pause = None,
            OperatorCommand::QueueAll => self.put(QUEUE_ALL, Value::from(true)),
            OperatorCommand::Open => {
                self.pause = None;
                self.put(QUEUE_ALL, Value::from(false));
                let opens_at = self.applied_to(file).config.rules.opens_at;
                // Not taken away: who came before is drawn by lot, where that is the rule.
                if opens_at.is_some_and(|at| at > now) {
                    self.put(OPENS_AT, Value::from(rfc3339_millis(now)));
                }
            }
            OperatorCommand::Message(message) => self.message = checked(message.as_deref(), file)?,
            OperatorCommand::Reset(None) => {
                self.values.clear();
                self.pause = None;
                self.message = None;
            }
            OperatorCommand::Reset(Some(key)) => {
                check_live_key(file, key, &OTHERS)?;
                match key.as_str() {
                    MESSAGE => self.message = None,
                    PAUSE => self.pause = None,
                    key => {
                        self.values.remove(key);
                    }
                }
            }
            OperatorCommand::AssumeEmpty => {}
        }
        Ok(())
    }

    fn put(&mut self, key: &str, value: Value) {
        self.values.insert(key.to_owned(), value);
    }

    /// Whether it makes sense. What was wrong before, because the file has changed since, is told
    /// elsewhere: it is no reason to refuse a pause.
    fn check(
        &self,
        before: &Self,
        order: &OperatorCommand,
        file: &RoomConfig,
    ) -> Result<(), Problems> {
        let changed = self.applied_to(file);
        let mut problems = changed.problems;
        let old = before.applied_to(file).problems;
        let is_asked_for = |key: &String| {
            let set = match order {
                OperatorCommand::Set(values) => Some(values),
                _ => None,
            };
            set.is_some_and(|values| values.contains_key(key))
        };
        problems.retain(|problem| !old.contains(problem) || is_asked_for(&problem.key));
        if matches!(order, OperatorCommand::Set(values) if values.is_empty()) {
            problems.push(remark(file, "", "nothing is to be set; say key=value"));
        }
        let bytes = serde_json::to_vec(&self.values).map_or(0, |text| text.len());
        if bytes > VALUES_BYTES_MAX {
            let long = format!("{bytes} bytes of values, where {VALUES_BYTES_MAX} may be");
            problems.push(remark(file, "", &long));
        }
        let is_to_hold = matches!(
            order,
            OperatorCommand::Pause { .. } | OperatorCommand::QueueAll
        );
        if changed.config.suspended && is_to_hold {
            let remark = remark(
                file,
                SUSPENDED,
                "the room is switched off and everybody passes, so nobody can be held; \
                 set suspended=false first",
            );
            problems.push(remark);
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Problems(problems))
        }
    }

    /// Everything that holds, by name.
    fn facts(&self, file: &RoomConfig) -> BTreeMap<&'static str, Value> {
        let mut facts = self.applied_to(file).config.values();
        facts.insert(MESSAGE, Value::from(self.message.clone()));
        let pause = match &self.pause {
            None => Value::Null,
            Some(pause) => Value::from(pause.message.clone().unwrap_or_default()),
        };
        facts.insert(PAUSE, pause);
        facts
    }
}

fn changes(
    before: &BTreeMap<&'static str, Value>,
    after: &BTreeMap<&'static str, Value>,
) -> Vec<Change> {
    let differing = after
        .iter()
        .filter(|(key, value)| before.get(*key) != Some(value));
    differing
        .map(|(key, value)| Change {
            key: (*key).to_owned(),
            before: before.get(key).cloned().unwrap_or_default(),
            after: value.clone(),
        })
        .collect()
}

/// A message as it will stand on the page; `None` if there is nothing in it.
fn checked(text: Option<&str>, file: &RoomConfig) -> Result<Option<String>, Problems> {
    message(text.unwrap_or_default()).map_err(|found| {
        let problem = Problem {
            finding: Finding::Value(found),
            allowed: format!("plain text on one line, at most {MESSAGE_CHARS_MAX} characters"),
            ..remark(file, MESSAGE, "")
        };
        Problems(vec![problem])
    })
}

/// A message, if `text` is one: one line of plain text, not longer than it may be. `None` if it
/// says nothing.
///
/// # Errors
///
/// What is there instead.
pub(super) fn message(text: &str) -> Result<Option<String>, String> {
    let text = text.trim();
    let length = text.chars().count();
    if length > MESSAGE_CHARS_MAX {
        return Err(format!("{length} characters"));
    }
    if let Some(strange) = text.chars().find(|c| c.is_control()) {
        return Err(format!(
            "the control character {}",
            strange.escape_unicode()
        ));
    }
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

fn remark(file: &RoomConfig, key: &str, text: &str) -> Problem {
    Problem::remark(Owner::Room(file.name.to_string()), key, text)
}
