//! What is a finding? A place, what is wrong there, and what to do about it.

use std::fmt;

/// One untidy place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Problem {
    /// Path from the root of the workspace.
    pub(super) path: String,
    /// Counted from 1.
    pub(super) line: usize,
    /// What is wrong.
    pub(super) what: String,
    /// What to do about it.
    pub(super) remedy: String,
}

impl Problem {
    /// A finding in line `line` of the file at `path`.
    pub(super) fn new(
        path: &str,
        line: usize,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what: what.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            line,
            what,
            remedy,
        } = self;
        write!(f, "{path}:{line}: {what}; {remedy}")
    }
}
