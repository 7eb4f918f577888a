//! Problems and warnings that were found while a file was read, with their locations.
//!
//! Nothing is decided here: the caller decides whether a problem is fatal.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::problem::{Finding, Owner, Problem, printable};
use super::source::Source;

/// Description of a key, for documentation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KnownKey {
    /// Description of what is allowed; for lists, of an element.
    pub allowed: String,
    /// Default as it would be written; `None` if there is none.
    pub default: Option<&'static str>,
}

/// Location of a value or key.
#[derive(Clone, Debug, Default)]
pub struct Location {
    /// Source other than the file that is read; without a line if that is 0.
    elsewhere: Option<Arc<str>>,
    /// Line, from 1; 0 if it stands in no text.
    pub line: usize,
    column: usize,
    owner: Option<Owner>,
    key: String,
}

/// Value and its location.
#[derive(Clone, Debug)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Location of the value.
    pub location: Location,
}

/// Problems and warnings so far.
pub struct Notes {
    /// `None`: the values came as flags.
    source: Option<Source>,
    /// Sources of values that were added after the end of the text, one offset each.
    additions: Vec<Arc<str>>,
    /// Mistakes, in the order in which they were found.
    pub problems: Vec<Problem>,
    /// Settings that are allowed but probably not meant, likewise.
    pub warnings: Vec<Problem>,
    /// Every key that was read, by its path without indices.
    pub known: BTreeMap<String, KnownKey>,
}

impl Notes {
    /// Creates an empty collection; `source` is `None` if the values came as flags.
    #[must_use]
    pub const fn new(source: Option<Source>) -> Self {
        Self {
            source,
            additions: Vec::new(),
            problems: Vec::new(),
            warnings: Vec::new(),
            known: BTreeMap::new(),
        }
    }

    /// Returns the number of mistakes so far.
    #[must_use]
    pub fn count(&self) -> usize {
        self.problems.len()
    }

    /// Whether the values came as flags.
    #[must_use]
    pub const fn is_flags(&self) -> bool {
        self.source.is_none()
    }

    /// Reports a mistake.
    pub fn report(
        &mut self,
        location: &Location,
        finding: Finding,
        allowed: impl Into<String>,
        hint: Option<String>,
    ) {
        let problem = self.problem(location, finding, allowed.into(), hint);
        self.problems.push(problem);
    }

    /// Warns of something that is allowed but probably not meant.
    pub fn warn(&mut self, location: &Location, remark: impl Into<String>) {
        let remark = Finding::Remark(remark.into());
        let warning = self.problem(location, remark, String::new(), None);
        self.warnings.push(warning);
    }

    /// Reports that the file is not TOML.
    pub fn report_syntax(&mut self, message: &str, offset: usize) {
        let location = self.location(offset, None, String::new());
        self.report(&location, Finding::Syntax(printable(message)), "", None);
    }

    fn problem(
        &self,
        location: &Location,
        finding: Finding,
        mut allowed: String,
        hint: Option<String>,
    ) -> Problem {
        if self.is_flags() && allowed.ends_with(" in quotes") {
            // A shell removes the quotes.
            allowed.truncate(allowed.len() - " in quotes".len());
        }
        let is_in_text = self.source.is_some() && location.elsewhere.is_none();
        let own = || self.source.as_ref().map(Source::name);
        Problem {
            source: location
                .elsewhere
                .clone()
                .or_else(own)
                .unwrap_or_else(|| Arc::from("")),
            line: (is_in_text || location.line > 0).then_some(location.line),
            column: is_in_text.then_some(location.column),
            owner: location.owner.clone(),
            key: location.key.clone(),
            finding,
            allowed,
            hint,
        }
    }

    /// Returns the location of `offset`; `key` is its path, or its name within its owner.
    #[must_use]
    pub fn location(&self, offset: usize, owner: Option<&Owner>, key: String) -> Location {
        let Some(source) = &self.source else {
            // The flag of `room[1].session_duration` is `--session-duration`.
            let name = match key.as_str() {
                "store.local" => "store".to_owned(),
                key => key.rsplit('.').next().unwrap_or_default().replace('_', "-"),
            };
            return Location {
                key: format!("--{name}"),
                ..Location::default()
            };
        };
        if let Some(addition) = self.addition(offset) {
            return Location {
                elsewhere: Some(Arc::clone(addition)),
                owner: owner.cloned(),
                key,
                ..Location::default()
            };
        }
        let position = source.position(offset);
        Location {
            elsewhere: None,
            line: position.line,
            column: position.column,
            owner: owner.cloned(),
            key,
        }
    }

    /// Reserves an offset for a value that is not in the text, and returns it.
    pub fn add_source(&mut self, name: &str) -> usize {
        self.additions.push(Arc::from(name));
        self.end() + self.additions.len()
    }

    /// Returns the name that was given to [`Self::add_source`] for `offset`, if there is one.
    fn addition(&self, offset: usize) -> Option<&Arc<str>> {
        let index = offset.checked_sub(self.end() + 1)?;
        self.additions.get(index)
    }

    /// Whether `offset` is that of a value that is not in the text.
    #[must_use]
    pub fn is_added(&self, offset: usize) -> bool {
        self.addition(offset).is_some()
    }

    /// Returns the mistakes: those of values that were set, then those of the file in its order,
    /// then those of files that it names.
    #[must_use]
    pub fn into_problems_in_order(self) -> Vec<Problem> {
        let own = self.source.as_ref().map(Source::name);
        let mut problems = self.problems;
        problems.sort_by_key(|problem| {
            if self.additions.contains(&problem.source) {
                (0, None, None)
            } else if own.as_ref() == Some(&problem.source) {
                (1, problem.line, problem.column)
            } else {
                (2, None, None)
            }
        });
        problems
    }

    fn end(&self) -> usize {
        self.source.as_ref().map_or(0, Source::end)
    }
}

impl Location {
    /// Returns a location in a file other than the one that is read; `line` from 1, 0 = no line.
    #[must_use]
    pub fn in_other_file(source: Arc<str>, line: usize, key: String) -> Self {
        Self {
            elsewhere: Some(source),
            line,
            key,
            ..Self::default()
        }
    }
}
