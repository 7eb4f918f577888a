//! One step of `cargo xtask test`: its description, what it reads, and how it ends.

use crate::counters::TestCounts;
use crate::requirements::Requirement;

/// Scope of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Scope {
    /// Steps and tests that a person waits for.
    Usual,
    /// All steps and tests, as on a build server.
    All,
}

/// Run of steps: its scope and its results.
#[derive(Debug)]
pub(crate) struct Run {
    /// Scope of the run.
    pub(crate) scope: Scope,
    /// Counts and times of tests.
    pub(crate) counters: TestCounts,
    /// Descriptions of what the scope excludes.
    pub(crate) left_out: Vec<String>,
    /// Commands that build what later steps need.
    pub(crate) builds: Vec<Vec<String>>,
}

impl Run {
    pub(crate) fn new(scope: Scope) -> Self {
        Self {
            scope,
            counters: TestCounts::default(),
            left_out: Vec::new(),
            builds: Vec::new(),
        }
    }
}

/// Check or run of tests.
pub(crate) struct Step {
    /// Group of adjacent steps. If one fails, the others of its group still run, then the run
    /// stops.
    pub(crate) group: &'static str,
    /// Name for `--only`.
    pub(crate) name: &'static str,
    /// Problems that it finds, for `--list`.
    pub(crate) finds: &'static str,
    /// Programs that it needs; see [`crate::requirements`].
    pub(crate) needs: &'static [Requirement],
    /// Smallest scope that includes it.
    pub(crate) scope: Scope,
    /// Runs the step, and adds its counts of tests to the run.
    pub(crate) run: fn(&mut Run) -> anyhow::Result<Outcome>,
}

/// Outcome of a step that did not fail.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// Step that ran and found no problem.
    Passed,
    /// Step that did not run: the reason and the remedy.
    Skipped(&'static str),
}
