//! Which steps does `cargo xtask test` consist of? The table to add to.
//!
//! How a step is run, timed and reported is in [`crate::test`].

use std::io;

use anyhow::bail;

use crate::requirements::{CHROMEDRIVER, CHROMIUM, CLIPPY, RUSTFMT, Requirement};
use crate::tally::{Tally, run_counted};
use crate::{cargo, layers, licences, tidy};

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
    /// Does it. Counts of tests go into the tally.
    pub(crate) run: fn(&mut Tally) -> anyhow::Result<Outcome>,
}

/// How a step ended that did not fail.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// It ran and found nothing.
    Passed,
    /// It did not run; why, and how to change that.
    Skipped(&'static str),
}

/// All steps, cheapest first.
pub(crate) const STEPS: &[Step] = &[
    Step {
        group: "source",
        name: "fmt",
        finds: "source that is not formatted",
        needs: &[RUSTFMT],
        run: |_| cargo_step(&["fmt", "--all", "--check"]),
    },
    Step {
        group: "source",
        name: "tidy",
        finds: "files that are too long, stubs, sleeps in tests, stray words",
        needs: &[],
        run: |_| own_step(tidy::check),
    },
    Step {
        group: "source",
        name: "layers",
        finds: "crates that depend on a crate above them",
        needs: &[],
        run: |_| own_step(layers::check),
    },
    Step {
        group: "source",
        name: "licences",
        finds: "packages that are banned, or with a licence or a source that deny.toml does not allow",
        needs: &[],
        run: |_| own_step(licences::check),
    },
    Step {
        group: "lints",
        name: "clippy",
        finds: "warnings of the compiler and of clippy, in all targets",
        needs: &[CLIPPY],
        run: |_| {
            cargo_step(&[
                "clippy",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ])
        },
    },
    Step {
        group: "docs",
        name: "doc",
        finds: "broken links and other warnings in the documentation, private items too",
        needs: &[],
        run: doc,
    },
    Step {
        group: "tests",
        name: "tests",
        finds: "failing unit, property, integration and browser tests",
        needs: &[CHROMIUM, CHROMEDRIVER],
        run: tests,
    },
    Step {
        group: "tests",
        name: "doctests",
        finds: "examples in the documentation that do not work",
        needs: &[],
        run: |tally| counted_step(&["test", "--doc", "--workspace", "--no-fail-fast"], tally),
    },
    Step {
        group: "packages",
        name: "deny",
        finds: "what `licences` finds, and licence files that say something else, wildcards, doubles",
        needs: &[],
        run: deny,
    },
];

fn own_step(check: fn() -> anyhow::Result<()>) -> anyhow::Result<Outcome> {
    check().map(|()| Outcome::Passed)
}

fn cargo_step(arguments: &[&str]) -> anyhow::Result<Outcome> {
    cargo::run(arguments).map(|()| Outcome::Passed)
}

fn counted_step(arguments: &[&str], tally: &mut Tally) -> anyhow::Result<Outcome> {
    cargo::announce(arguments);
    let (counts, has_passed) = run_counted(cargo::command(arguments), io::stdout())?;
    tally.add(counts);
    if !has_passed {
        bail!("tests failed ({counts})");
    }
    Ok(Outcome::Passed)
}

fn doc(_: &mut Tally) -> anyhow::Result<Outcome> {
    let arguments = [
        "doc",
        "--workspace",
        "--no-deps",
        "--document-private-items",
    ];
    cargo::run_with("RUSTDOCFLAGS", "-D warnings", &arguments).map(|()| Outcome::Passed)
}

/// The binary that end-to-end tests run is built by Cargo along with them.
fn tests(tally: &mut Tally) -> anyhow::Result<Outcome> {
    if cargo::has("nextest") {
        return counted_step(&["nextest", "run", "--workspace"], tally);
    }
    println!("cargo-nextest is not installed: the slower `cargo test` runs the same tests");
    // `--tests`: unit tests of libraries and binaries, and integration tests; examples in the
    // documentation are a step of their own.
    counted_step(&["test", "--workspace", "--tests", "--no-fail-fast"], tally)
}

fn deny(_: &mut Tally) -> anyhow::Result<Outcome> {
    if !cargo::has("deny") {
        return Ok(Outcome::Skipped(
            "cargo-deny is not installed; the step `licences` has checked licences, sources and \
             banned names, but not licence files, wildcards and doubles; to get it: \
             cargo install --locked cargo-deny",
        ));
    }
    cargo_step(&["deny", "check", "bans", "licenses", "sources"])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_steps_share_a_name() {
        let names: BTreeSet<&str> = STEPS.iter().map(|step| step.name).collect();
        assert_eq!(names.len(), STEPS.len());
    }

    #[test]
    fn steps_of_one_group_stand_together() {
        let runs = STEPS.chunk_by(|a, b| a.group == b.group).count();
        let groups: BTreeSet<&str> = STEPS.iter().map(|step| step.group).collect();
        assert_eq!(runs, groups.len());
    }
}
