//! One step of `cargo xtask test`: its description, what it reads, and how it ends.

use crate::counters::Tally;
use crate::requirements::Requirement;

/// How much is to run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Scope {
    /// What a person waits for.
    Usual,
    /// Everything, as on a build server.
    All,
}

/// A run of steps: how much was asked for, and what came of it.
#[derive(Debug)]
pub(crate) struct Run {
    /// How much is to run.
    pub(crate) scope: Scope,
    /// Counts and times of tests.
    pub(crate) counters: Tally,
    /// What did not run because not everything was asked for, for people.
    pub(crate) left_out: Vec<String>,
}

impl Run {
    pub(crate) fn new(scope: Scope) -> Self {
        Self {
            scope,
            counters: Tally::default(),
            left_out: Vec::new(),
        }
    }
}

/// One check or one run of tests.
pub(crate) struct Step {
    /// Steps of one group stand together; all of them run even if one fails, then the run stops.
    pub(crate) group: &'static str,
    /// What people type after `--only`.
    pub(crate) name: &'static str,
    /// What it finds out, for `--list`.
    pub(crate) finds: &'static str,
    /// Programs that must be there; see [`crate::requirements`].
    pub(crate) needs: &'static [Requirement],
    /// How much must be asked for before it runs.
    pub(crate) scope: Scope,
    /// Does it. Counts of tests go into the tally.
    pub(crate) run: fn(&mut Run) -> anyhow::Result<Outcome>,
}

/// How a step ended that did not fail.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// It ran and found nothing.
    Passed,
    /// It did not run; why, and how to change that.
    Skipped(&'static str),
}
