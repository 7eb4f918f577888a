//! Names of a limit's metrics, as in the reference service, so that dashboards stay valid.
//!
//! A name contains values only where the file has them or asks for them. Names live as long as the
//! process, and clients can send any number of values.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::request::Entry;
use super::{Step, Walk};
use crate::config::descriptors::{Limit, MatchKind};

/// Returns the name for a limit that a request has sent.
pub(super) fn of_request(domain: &str, entries: &[Entry<'_>]) -> String {
    let mut name = Name::new(domain);
    for Entry { key, value } in entries {
        name.push(key, value);
    }
    if entries.is_empty() {
        name.text.push('.');
    }
    name.text
}

/// Returns the name for this walk to a limit. Nothing is copied if it equals the file's.
pub(super) fn of<'l>(walk: &Walk<'l, '_>, limit: &'l Limit, domain: &str) -> Cow<'l, str> {
    if limit.has_detailed_metric {
        return detailed(walk, domain).into();
    }
    let is_of_file = |step: &Step<'_, '_>| {
        let is_key = *step.descriptor.key == *step.entry.key;
        is_key && *named_value(step) == *step.descriptor.value
    };
    if walk.steps().all(is_of_file) {
        return (&*limit.metric).into();
    }
    let mut name = Name::new(domain);
    for step in walk.steps() {
        name.push(step.entry.key, &named_value(step));
    }
    name.text.into()
}

/// Returns the part of the name for the value of an entry.
fn named_value<'a>(step: &Step<'a, 'a>) -> Cow<'a, str> {
    let has_value = step.descriptor.node.has_value_in_metric;
    match step.kind {
        MatchKind::Value => step.entry.value.into(),
        MatchKind::Key if has_value => step.entry.value.into(),
        MatchKind::Key => "".into(),
        MatchKind::Pattern => match step.shared() {
            Some(shared) => shared,
            None if has_value => step.entry.value.into(),
            None => step.descriptor.pattern_for(step.entry.key),
        },
    }
}

/// Returns the name with all values, but with patterns in place of values that share a counter.
fn detailed(walk: &Walk<'_, '_>, domain: &str) -> String {
    let is_shared = walk.steps().any(|step| step.shared().is_some());
    let mut name = Name::new(domain);
    for step in walk.steps() {
        let Entry { key, value } = step.entry;
        match step.shared() {
            Some(shared) => name.push(key, &shared),
            None if is_shared => name.push(key, value),
            // An empty value adds a `_`, too, as long as nothing is shared.
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
