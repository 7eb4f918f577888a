//! Commands of operators, and their effect on a room's overrides.
//!
//! A pure function: the overrides, the file and a command give the next overrides. It reports all
//! mistakes at once, and then changes nothing.

use std::collections::BTreeMap;

use anteroom_room::event::EventPhase;
use anteroom_room::time::Timestamp;
use serde_json::Value;

use super::{Actor, Change, Entry, Pause, RoomOverrides, Until};
use crate::time_text::rfc3339_millis;
use crate::{Finding, LiveValues, Owner, Problem, Problems, RoomConfig, RoomEvent, check_live_key};

/// Largest size of a record's values, in bytes: all keys together take less than a thousand. Each
/// node reads the record once a second.
const VALUES_BYTES_MAX: usize = 4_096;

/// Longest message, in characters. Every waiting page shows it.
pub(super) const MESSAGE_CHARS_MAX: usize = 500;

pub(super) const QUEUE_ALL: &str = "queue_all";
const OPENS_AT: &str = "opens_at";
const SUSPENDED: &str = "suspended";
/// Names that can be reset besides the keys of the file.
const OTHERS: [&str; 2] = [MESSAGE, PAUSE];
pub(super) const MESSAGE: &str = "message";
pub(super) const PAUSE: &str = "pause";
const UNTIL: &str = "until";

/// Command of an operator.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OperatorCommand {
    /// Set values that win over the file.
    Set(LiveValues),
    /// Admit no new visitor, and say so on the page.
    Pause {
        /// Reason.
        message: Option<String>,
    },
    /// End a pause.
    Resume,
    /// Queue every visitor who is not active.
    QueueAll,
    /// End a pause and queue-all, and open a room that has not opened yet.
    Open,
    /// Show this on the page; `None` removes the message.
    Message(Option<String>),
    /// Reset one key, or everything, to the file's value.
    Reset(Option<String>),
    /// Assume that no visitor is active. Changes nothing here, but is logged.
    AssumeEmpty,
    /// Return each key of a change to its value before, if it still has the value of the change.
    Undo(Box<Entry>),
    /// Do what the command says, and end its overrides then.
    Until(Box<Self>, Until),
}

impl OperatorCommand {
    /// Returns the command as an operator types it, for the log.
    #[must_use]
    pub fn to_text(&self) -> String {
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
            Self::Undo(entry) => format!("undo {}", entry.version),
            Self::Until(command, until) => format!("{} --until {until}", command.to_text()),
        }
    }
}

impl RoomOverrides {
    /// Returns the overrides after `command`, in a room with the file `file`. `now` is the wall
    /// clock.
    ///
    /// # Errors
    ///
    /// [`Problems`] with every mistake; nothing changes then.
    pub fn after(
        &self,
        command: &OperatorCommand,
        file: &RoomConfig,
        who: &Actor,
        now: Timestamp,
    ) -> Result<Self, Problems> {
        let present = self.in_effect(file, now);
        let mut next = Self::clone(&present);
        next.apply(command, file, now)?;
        next.check(&present, command, file, now)?;
        next.note_setters(&present, command, file, (who, now));
        let changes = changes((&present, &present.facts(file)), (&next, &next.facts(file)));
        let entry = Entry::following(self, who, now, command.to_text(), changes);
        next.version = entry.version;
        next.decided_at.note(command, entry.at);
        next.newest = Some(entry);
        Ok(next)
    }

    /// Applies `command`, given at `at`, without storing it. It was checked when it was given. If
    /// the file has changed since and the command is not valid any more, it has no effect.
    pub(super) fn apply_pending(
        &mut self,
        command: &OperatorCommand,
        file: &RoomConfig,
        who: &Actor,
        at: u64,
    ) {
        let mut next = self.clone();
        if next.apply(command, file, Timestamp(at)).is_ok() {
            next.note_setters(self, command, file, (who, Timestamp(at)));
            next.decided_at.note(command, at);
            *self = next;
        }
    }

    fn apply(
        &mut self,
        command: &OperatorCommand,
        file: &RoomConfig,
        now: Timestamp,
    ) -> Result<(), Problems> {
        match command {
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
                // Not removed: visitors who came before are drawn by lot, if the room has a draw.
                if opens_at.is_some_and(|at| at > now) {
                    self.put(OPENS_AT, Value::from(rfc3339_millis(now)));
                }
            }
            OperatorCommand::Message(message) => self.message = checked(message.as_deref(), file)?,
            OperatorCommand::Reset(None) => {
                self.values.clear();
                self.set_by.clear();
                self.pause = None;
                self.message = None;
            }
            OperatorCommand::Reset(Some(key)) => {
                check_live_key(file, key, &OTHERS)?;
                self.remove(key);
            }
            OperatorCommand::AssumeEmpty => {}
            OperatorCommand::Undo(entry) => self.undo(entry, file, now)?,
            OperatorCommand::Until(command, _) => self.apply(command, file, now)?,
        }
        Ok(())
    }

    /// Returns each key of a change to its value before. The value of the file needs no override.
    fn undo(&mut self, entry: &Entry, file: &RoomConfig, now: Timestamp) -> Result<(), Problems> {
        let (present, in_file) = (self.facts(file), file.values());
        let mut problems = Vec::new();
        if entry.changes.is_empty() {
            let text = format!("change {} changed no value", entry.version);
            problems.push(remark(file, "", &text));
        }
        for change in &entry.changes {
            let key = change.key.as_str();
            let value = present.get(key).cloned().unwrap_or_default();
            if value != change.after {
                let text = format!(
                    "it is now {value}; change {} made it {}",
                    entry.version, change.after
                );
                problems.push(remark(file, key, &text));
                continue;
            }
            if change
                .end_before
                .as_ref()
                .is_some_and(|end| self.has_come(end, file, now))
            {
                let text = format!("what change {} changed has ended since", entry.version);
                problems.push(remark(file, key, &text));
                continue;
            }
            let text = change.before.as_str();
            match key {
                MESSAGE => self.message = text.map(str::to_owned),
                PAUSE => {
                    self.pause = text.map(|message| Pause {
                        message: (!message.is_empty()).then(|| message.to_owned()),
                        since: now.0,
                    });
                }
                key if in_file.get(key) == Some(&change.before) => {
                    self.values.remove(key);
                }
                key => self.put(key, change.before.clone()),
            }
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Problems(problems))
        }
    }

    fn put(&mut self, key: &str, value: Value) {
        self.values.insert(key.to_owned(), value);
    }

    /// Checks the new overrides. Mistakes that were there before, because the file has changed, are
    /// reported elsewhere: they are no reason to reject a pause.
    fn check(
        &self,
        before: &Self,
        command: &OperatorCommand,
        file: &RoomConfig,
        now: Timestamp,
    ) -> Result<(), Problems> {
        let until = command.until();
        let command = command.inner();
        let changed = self.applied_to(file);
        let mut problems = changed.problems;
        let old = before.applied_to(file).problems;
        let is_set = |key: &String| {
            let set = match command {
                OperatorCommand::Set(values) => Some(values),
                _ => None,
            };
            set.is_some_and(|values| values.contains_key(key))
        };
        problems.retain(|problem| !old.contains(problem) || is_set(&problem.key));
        let phase = |event: &RoomEvent| {
            let times = &event.times;
            times.phase(self.events.phase(event.name.as_str(), times), now)
        };
        let events = file.events.iter().filter(|event| !event.is_suspended);
        for event in events.filter(|event| phase(event) < EventPhase::Over) {
            if *command == OperatorCommand::Open && phase(event) == EventPhase::Prequeue {
                let starts_at = rfc3339_millis(event.times.starts_at);
                let text = format!(
                    "visitors wait for event {}, which starts at {starts_at}; to start earlier, \
                     change event_start_time in the file and send SIGHUP",
                    event.name
                );
                problems.push(remark(file, "", &text));
            }
            let during = event.applied_to(file);
            let old = during.with_values(&before.values).problems;
            let mut more = during.with_values(&self.values).problems;
            more.retain(|problem| !problems.contains(problem));
            more.retain(|problem| !old.contains(problem) || is_set(&problem.key));
            problems.extend(more.into_iter().map(|problem| Problem {
                hint: Some(format!(
                    "this is about event {}, with its values",
                    event.name
                )),
                ..problem
            }));
        }
        problems.extend(until.and_then(|until| self.check_until(until, file, now)));
        if matches!(command, OperatorCommand::Set(values) if values.is_empty()) {
            problems.push(remark(file, "", "nothing to set; write key=value"));
        }
        let bytes = serde_json::to_vec(&self.values).map_or(0, |text| text.len());
        if bytes > VALUES_BYTES_MAX {
            let long = format!("{bytes} bytes of values, at most {VALUES_BYTES_MAX} are allowed");
            problems.push(remark(file, "", &long));
        }
        let is_stop = matches!(
            command,
            OperatorCommand::Pause { .. } | OperatorCommand::QueueAll
        );
        if changed.config.suspended && is_stop {
            let remark = remark(
                file,
                SUSPENDED,
                "the room is switched off and every visitor passes, so none can be queued; \
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

    fn check_until(&self, until: Until, file: &RoomConfig, now: Timestamp) -> Option<Problem> {
        let found = match until {
            Until::At(at) if at <= now => format!("{until}, which is over"),
            Until::EventEnd if self.ending_event(file, now, EventPhase::Upcoming).is_none() => {
                "event_end, but the room has no event ahead that ends".to_owned()
            }
            _ => return None,
        };
        Some(Problem {
            finding: Finding::Value(found),
            allowed: Until::ALLOWED.to_owned(),
            ..remark(file, UNTIL, "")
        })
    }

    /// Returns all values in effect, by name.
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

/// Returns the keys whose values differ, or the ends of their overrides.
fn changes(
    (before, facts_before): (&RoomOverrides, &BTreeMap<&'static str, Value>),
    (after, facts_after): (&RoomOverrides, &BTreeMap<&'static str, Value>),
) -> Vec<Change> {
    let differing = facts_after.iter().filter(|(key, value)| {
        facts_before.get(*key) != Some(value) || before.end_of(key) != after.end_of(key)
    });
    differing
        .map(|(key, value)| Change {
            key: (*key).to_owned(),
            before: facts_before.get(key).cloned().unwrap_or_default(),
            after: value.clone(),
            end_before: before.end_of(key).cloned(),
        })
        .collect()
}

/// Returns a message as it will stand on the page; `None` if it is empty.
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

/// Returns a message, if `text` is one: one line of plain text of the allowed length. `None` if it
/// is empty.
///
/// # Errors
///
/// What was found instead.
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
