//! Which steps does `cargo xtask test` consist of? The table to add to.
//!
//! How a step is run, timed and reported is in [`crate::test`].

use std::ffi::OsStr;
use std::io;
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use crate::requirements::{
    CARGO_DENY, CHROMEDRIVER, CHROMIUM, CLIPPY, CXX, ENVOY, GIT, HAPROXY, MAKE, MEMCACHED, PIP,
    REDIS_SERVER, RUSTFMT, Requirement,
};
use crate::tally::{Tally, run_counted};
use crate::{bench, cargo, deploy, layers, mutations, requirements, tidy, workspace};

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
        finds: "files and lines that are too long, sleeps in tests, marks of unfinished work",
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
        group: "deploy",
        name: "systemd",
        finds: "units that systemd does not understand, or that may do more than they need",
        needs: &[],
        run: |_| deploy::systemd(),
    },
    Step {
        group: "deploy",
        name: "prometheus",
        finds: "alerts that Prometheus does not understand, or that do not go off",
        needs: &[],
        run: |_| deploy::prometheus(),
    },
    Step {
        group: "lints",
        name: "clippy",
        finds: "warnings of the compiler and of clippy, in all targets",
        needs: &[CLIPPY, CXX, MAKE],
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
        group: "lints",
        name: "kafka-lints",
        finds: "what `clippy` would find in a program with the cargo feature \"kafka\", and in \
                the tests of that",
        needs: &[CLIPPY, CXX, MAKE],
        run: kafka_lints,
    },
    Step {
        group: "lints",
        name: "benches",
        finds: "programs of `cargo xtask bench limits` that do not compile: no other step builds \
                them",
        needs: &[],
        run: benches,
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
        needs: &[
            CHROMIUM,
            CHROMEDRIVER,
            REDIS_SERVER,
            MEMCACHED,
            PIP,
            ENVOY,
            HAPROXY,
            CXX,
            MAKE,
            GIT,
        ],
        run: tests,
    },
    Step {
        group: "tests",
        name: "kafka",
        finds: "limits over Kafka that a configuration with the cargo feature \"kafka\" does not \
                keep",
        needs: &[CXX, MAKE],
        run: |tally| {
            let layers = ["-p", "anteroom-tower", "--features", "kafka"];
            counted_step(
                &[&["test"][..], &layers, &["--test", "kafka"]].concat(),
                tally,
            )
        },
    },
    Step {
        group: "tests",
        name: "mutations",
        finds: "a rule of the protocol that could be missing and nobody would notice",
        needs: &[GIT],
        run: |tally| mutations::check(tally).map(|()| Outcome::Passed),
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
        finds: "packages that are banned, or whose licence or source deny.toml does not allow",
        needs: &[CARGO_DENY],
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
    counted(cargo::command(arguments), tally)
}

fn counted(command: Command, tally: &mut Tally) -> anyhow::Result<Outcome> {
    let (counts, has_passed) = run_counted(command, io::stdout())?;
    tally.add(counts);
    if !has_passed {
        bail!("tests failed ({counts})");
    }
    Ok(Outcome::Passed)
}

/// The tests of the program know nothing of Kafka, so only those are looked at that do.
fn kafka_lints(_: &mut Tally) -> anyhow::Result<Outcome> {
    let warnings = ["--", "-D", "warnings"];
    let program = ["clippy", "-p", "anteroom", "--features", "kafka"];
    cargo_step(&[&program[..], &warnings].concat())?;
    let layers = ["clippy", "-p", "anteroom-tower", "--features", "kafka"];
    let layers = [&layers[..], &["--all-targets"], &warnings];
    cargo_step(&layers.concat())
}

/// A workspace of its own, in the same folder: most of what it needs was checked by `clippy` just
/// before.
fn benches(_: &mut Tally) -> anyhow::Result<Outcome> {
    let folder = std::env::var_os("CARGO_TARGET_DIR").is_none();
    let folder: &[&str] = if folder {
        &["--target-dir", "target"]
    } else {
        &[]
    };
    let check = [
        "check",
        "--all-targets",
        "--manifest-path",
        bench::limits::MANIFEST,
    ];
    cargo_step(&[&check, folder].concat())
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
        return test_step(&["nextest", "run", "--workspace"], tally);
    }
    println!("cargo-nextest is not installed: the slower `cargo test` runs the same tests");
    // `--tests`: unit tests of libraries and binaries, and integration tests; examples in the
    // documentation are a step of their own.
    test_step(&["test", "--workspace", "--tests", "--no-fail-fast"], tally)
}

/// How long each fuzz test takes on a build server, in seconds. Enough for tens of thousands of
/// inputs; much more, and people stop waiting for the build.
const FUZZ_SECONDS_CI: &str = "10";
const FUZZ_SECONDS: &str = "ANTEROOM_FUZZ_SECONDS";

fn test_step(arguments: &[&str], tally: &mut Tally) -> anyhow::Result<Outcome> {
    let variable = |name: &str| std::env::var_os(name);
    let Some(seconds) = fuzz_seconds(variable("CI").as_deref(), variable(FUZZ_SECONDS).as_deref())
    else {
        return counted_step(arguments, tally);
    };
    cargo::announce_with(FUZZ_SECONDS, seconds, arguments);
    let mut command = cargo::command(arguments);
    command.env(FUZZ_SECONDS, seconds);
    counted(command, tally)
}

/// What to set [`FUZZ_SECONDS`] to: on a build server, unless somebody has said it already.
fn fuzz_seconds(ci: Option<&OsStr>, asked: Option<&OsStr>) -> Option<&'static str> {
    let is_ci = ci.is_some_and(|ci| !ci.is_empty() && ci != "false");
    (is_ci && asked.is_none()).then_some(FUZZ_SECONDS_CI)
}

/// Errors alone: packages in two versions are worth knowing, and not in each run.
fn deny(_: &mut Tally) -> anyhow::Result<Outcome> {
    let arguments = [
        "--log-level",
        "error",
        "check",
        "bans",
        "licenses",
        "sources",
    ];
    let program = requirements::cargo_deny();
    println!("$ {} {}", program.display(), arguments.join(" "));
    let mut command = Command::new(program);
    command.current_dir(workspace::root()).args(arguments);
    let status = command.status().context("starting cargo-deny")?;
    ensure!(
        status.success(),
        "cargo-deny found what deny.toml does not allow ({status})"
    );
    Ok(Outcome::Passed)
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
    fn build_servers_fuzz_longer_unless_told_how_long() {
        let check = |ci: Option<&str>, asked: Option<&str>, expected: Option<&str>| {
            let seconds = fuzz_seconds(ci.map(OsStr::new), asked.map(OsStr::new));
            assert_eq!(seconds, expected, "CI: {ci:?}, asked for: {asked:?}");
        };
        check(None, None, None);
        check(Some("true"), None, Some("10"));
        check(Some("1"), None, Some("10"));
        check(Some("false"), None, None);
        check(Some(""), None, None);
        check(Some("true"), Some("3"), None);
        check(None, Some("3"), None);
    }

    #[test]
    fn steps_of_one_group_stand_together() {
        let runs = STEPS.chunk_by(|a, b| a.group == b.group).count();
        let groups: BTreeSet<&str> = STEPS.iter().map(|step| step.group).collect();
        assert_eq!(runs, groups.len());
    }
}
