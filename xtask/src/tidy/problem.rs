//! Finding: a line of a file, the problem, and the remedy.

use std::fmt;

/// Finding in a line of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Problem {
    /// Path from the root of the workspace.
    pub(super) path: String,
    /// Number of the line, counted from 1.
    pub(super) line: usize,
    /// Problem of the line.
    pub(super) what: String,
    /// Remedy for the problem.
    pub(super) remedy: String,
}

impl Problem {
    /// Creates a finding in line `line` of the file at `path`.
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
