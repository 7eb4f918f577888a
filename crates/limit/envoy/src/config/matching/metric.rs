//! What are the metrics of a limit called? As in the reference service, so that what is drawn of
//! them stays.
//!
//! Values are in a name only where the file has them or asks for them: names live as long as the
//! process, and values are as many as clients will.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::request::Entry;
use super::{Step, Walk};
use crate::config::descriptors::{Limit, MatchKind};

/// Domain and entries of a limit that a request brought.
pub(super) fn of_brought(domain: &str, entries: &[Entry<'_>]) -> String {
    let mut name = Name::new(domain);
    for Entry { key, value } in entries {
        name.push(key, value);
    }
    if entries.is_empty() {
        name.text.push('.');
    }
    name.text
}

/// The name for this way to a limit; nothing is copied if it is that of the file.
pub(super) fn of<'l>(walk: &Walk<'l, '_>, limit: &'l Limit, domain: &str) -> Cow<'l, str> {
    if limit.has_detailed_metric {
        return detailed(walk, domain).into();
    }
    let is_of_file = |step: &Step<'_, '_>| {
        let is_key = *step.descriptor.key == *step.entry.key;
        is_key && *told(step) == *step.descriptor.value
    };
    if walk.steps().all(is_of_file) {
        return (&*limit.metric).into();
    }
    let mut name = Name::new(domain);
    for step in walk.steps() {
        name.push(step.entry.key, &told(step));
    }
    name.text.into()
}

/// What is told of the value of an entry.
fn told<'a>(step: &Step<'a, 'a>) -> Cow<'a, str> {
    let is_told = step.descriptor.node.has_value_in_metric;
    match step.how {
        MatchKind::Value => step.entry.value.into(),
        MatchKind::Key if is_told => step.entry.value.into(),
        MatchKind::Key => "".into(),
        MatchKind::Pattern => match step.shared() {
            Some(shared) => shared,
            None if is_told => step.entry.value.into(),
            None => step.descriptor.stand_in(step.entry.key),
        },
    }
}

/// All values, but for patterns in the place of those that share a counter.
fn detailed(walk: &Walk<'_, '_>, domain: &str) -> String {
    let is_shared = walk.steps().any(|step| step.shared().is_some());
    let mut name = Name::new(domain);
    for step in walk.steps() {
        let Entry { key, value } = step.entry;
        match step.shared() {
            Some(shared) => name.push(key, &shared),
            None if is_shared => name.push(key, value),
            // With a sign for the empty value, too, as long as nothing is shared.
            None => name.push_joined(key, value),
        }
    }
    name.text
}

struct Name {
    text: String,
}

impl Name {
    fn new(domain: &str) -> Self {
        let text = domain.to_owned();
        Self { text }
    }

    fn push(&mut self, key: &str, value: &str) {
        if value.is_empty() {
            self.text.push('.');
            self.text.push_str(key);
        } else {
            self.push_joined(key, value);
        }
    }

    fn push_joined(&mut self, key: &str, value: &str) {
        write!(self.text, ".{key}_{value}").expect("a String takes all that is written to it");
    }
}
