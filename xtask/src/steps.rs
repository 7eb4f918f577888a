//! Table of the steps of `cargo xtask test`.
//!
//! [`crate::test`] runs, times and reports them.

use std::io;
use std::process::Command;
use std::thread;

use anyhow::{Context as _, bail, ensure};

use crate::ahead::Ahead;
use crate::counters::run_counted;
use crate::requirements::{
    CARGO_DENY, CHROMEDRIVER, CHROMIUM, CLIPPY, CLOUDFLARE_SDK, COUNTERS, CXX, ENVOY, GIT, HAPROXY,
    MAKE, MDBOOK, MEMCACHED, PIP, REDIS_SERVER, RUSTFMT, Requirement,
};
use crate::step::{Outcome, Run, Scope, Step};
use crate::{bench, cargo, deploy, layers, mutations, requirements, tidy, workspace};

/// All steps, cheapest first.
pub(crate) const STEPS: &[Step] = &[
    Step {
        group: "source",
        name: "fmt",
        finds: "source that is not formatted",
        needs: &[RUSTFMT],
        scope: Scope::Usual,
        run: |_| cargo_step(&["fmt", "--all", "--check"]),
    },
    Step {
        group: "source",
        name: "tidy",
        finds: "files and lines that are too long, sleeps in tests, marks of unfinished work",
        needs: &[],
        scope: Scope::Usual,
        run: |_| own_step(tidy::check),
    },
    Step {
        group: "source",
        name: "layers",
        finds: "crates that depend on a crate above them",
        needs: &[],
        scope: Scope::Usual,
        run: |_| own_step(layers::check),
    },
    Step {
        group: "deploy",
        name: "systemd",
        finds: "units that systemd does not understand, or that may do more than they need",
        needs: &[],
        scope: Scope::Usual,
        run: |_| deploy::systemd(),
    },
    Step {
        group: "deploy",
        name: "prometheus",
        finds: "alerts that Prometheus does not understand, or that do not fire",
        needs: &[],
        scope: Scope::Usual,
        run: |_| deploy::prometheus(),
    },
    Step {
        group: "lints",
        name: "clippy",
        finds: "warnings of the compiler and of clippy with all cargo features, in all targets, \
                also those of fuzzing",
        needs: &[CLIPPY, CXX, MAKE],
        scope: Scope::Usual,
        run: |_| lints(&["--all-targets", "--features", FEATURES]),
    },
    Step {
        group: "lints",
        name: "defaults",
        finds: "what `clippy` finds without the cargo features that are off by default, in \
                libraries, programs and examples",
        needs: &[CLIPPY, CXX, MAKE],
        scope: Scope::Usual,
        // Without examples, features of other packages would differ from those of `clippy`.
        run: |_| lints(&["--lib", "--bins", "--examples"]),
    },
    Step {
        group: "docs",
        name: "doc",
        finds: "broken links and other warnings in the documentation, private items too",
        needs: &[],
        scope: Scope::Usual,
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
            CLOUDFLARE_SDK,
            HAPROXY,
            CXX,
            MAKE,
            GIT,
        ],
        scope: Scope::Usual,
        run: tests,
    },
    Step {
        group: "tests",
        name: "kafka",
        finds: "limits over Kafka that a configuration with the cargo feature \"kafka\" does not \
                keep",
        needs: &[CXX, MAKE],
        scope: Scope::Usual,
        run: |run| {
            // The whole workspace for the reason that `lints` names.
            let layers = ["test", "--workspace", "--features", KAFKA];
            counted_step(&[&layers[..], &["--test", "kafka"]].concat(), run)
        },
    },
    Step {
        group: "tests",
        name: "mutations",
        finds: "a rule of the protocol whose absence no checker notices",
        needs: &[GIT],
        scope: Scope::Usual,
        run: |run| mutations::check(run).map(|()| Outcome::Passed),
    },
    Step {
        group: "tests",
        name: "doctests",
        finds: "examples in the documentation that do not work",
        needs: &[],
        scope: Scope::Usual,
        run: |run| counted_step(&["test", "--doc", "--workspace", "--no-fail-fast"], run),
    },
    Step {
        group: "cost",
        name: bench::counts::STEP,
        finds: "requests that cost more instructions, allocations or system calls than the \
                committed figures say",
        needs: &COUNTERS,
        scope: Scope::All,
        run: |_| bench::counts::check(),
    },
    Step {
        group: "packages",
        name: "deny",
        finds: "packages that are banned, or whose licence or source deny.toml does not allow",
        needs: &[CARGO_DENY],
        scope: Scope::All,
        run: |_| tool_step(&CARGO_DENY, DENY),
    },
    Step {
        group: "packages",
        name: "book",
        finds: "a book of docs/ that mdBook does not build",
        needs: &[MDBOOK],
        scope: Scope::All,
        run: |_| tool_step(&MDBOOK, BOOK),
    },
];

/// Feature with limits over Kafka.
const KAFKA: &str = "anteroom-tower/kafka";
/// All features that are off by default.
const FEATURES: &str = "anteroom-tower/kafka,anteroom-bench/limits";

/// Arguments for errors only: a warning about a package in two versions is not needed in each run.
const DENY: &[&str] = &[
    "--log-level",
    "error",
    "check",
    "bans",
    "licenses",
    "sources",
];

const BOOK: &[&str] = &["build", "--dest-dir", "target/book"];

fn own_step(check: fn() -> anyhow::Result<()>) -> anyhow::Result<Outcome> {
    check().map(|()| Outcome::Passed)
}

fn cargo_step(arguments: &[&str]) -> anyhow::Result<Outcome> {
    cargo::run(arguments).map(|()| Outcome::Passed)
}

fn counted_step(arguments: &[&str], run: &mut Run) -> anyhow::Result<Outcome> {
    cargo::announce(arguments);
    counted(cargo::command(arguments), run)
}

fn counted(command: Command, run: &mut Run) -> anyhow::Result<Outcome> {
    let (counters, has_passed) = run_counted(command, io::stdout())?;
    let counts = counters.to_string();
    run.counters.add(counters);
    if !has_passed {
        bail!("tests failed ({counts})");
    }
    Ok(Outcome::Passed)
}

/// Runs clippy. The whole workspace is always selected: for fewer packages Cargo would switch off
/// features of dependencies, and check those anew.
fn lints(selection: &[&str]) -> anyhow::Result<Outcome> {
    let arguments = [
        &["clippy", "--workspace"],
        selection,
        &["--", "-D", "warnings"],
    ];
    cargo_step(&arguments.concat())
}

fn doc(_: &mut Run) -> anyhow::Result<Outcome> {
    let arguments = [
        "doc",
        "--workspace",
        "--no-deps",
        "--document-private-items",
    ];
    cargo::run_with("RUSTDOCFLAGS", "-D warnings", &arguments).map(|()| Outcome::Passed)
}

/// Runs the tests; Cargo also builds the program that end-to-end tests start.
///
/// `.config/nextest.toml` has the tests that the usual scope excludes.
fn tests(run: &mut Run) -> anyhow::Result<Outcome> {
    if !cargo::has("nextest") {
        return tests_without_nextest(run);
    }
    // `.config/nextest.toml` has the number of these threads that a test uses.
    let threads = 2 * thread::available_parallelism()?.get();
    let threads = format!("--test-threads={threads}");
    let nextest = ["nextest", "run", "--workspace", &threads];
    match run.scope {
        Scope::All => {
            cargo::run(&[&nextest[..], &["--no-run"]].concat())?;
            let clusters = unusual_tests(&format!(" and {CLUSTERS}"))?;
            let (selected, others) = select_clusters(clusters, workspace::commits());
            run.left_out.extend(others);
            let filter = format!("--filterset=default() or not {CLUSTERS}{selected}");
            let ahead = Ahead::start(std::mem::take(&mut run.builds));
            let arguments = [&nextest[..], &["--ignore-default-filter", &filter]].concat();
            let outcome = test_step(&arguments, run);
            ahead.finish();
            outcome
        }
        Scope::Usual => {
            let outcome = test_step(&nextest, run)?;
            run.left_out.extend(unusual_tests("")?);
            Ok(outcome)
        }
    }
}

/// Filter of nextest for the runs of clusters.
const CLUSTERS: &str = "(package(anteroom-e2e) and test(/^(clusters|limit_clusters)::/))";

/// Share of the runs of clusters in the full scope, beside those of the usual one: one in six.
/// All would take a third of the time of the tests. `cargo xtask cluster ''` runs all.
const CLUSTERS_SHARE: usize = 6;

/// Returns the tests that the usual scope leaves out, as far as a filter selects them.
fn unusual_tests(filter: &str) -> anyhow::Result<Vec<String>> {
    let tests = cargo::read(&[
        "nextest",
        "list",
        "--workspace",
        "--ignore-default-filter",
        &format!("--filterset=not default(){filter}"),
        "--message-format=oneline",
    ])?;
    Ok(tests.lines().map(str::to_owned).collect())
}

/// Selects runs of clusters by the number of commits, so that each has its turn. Returns a filter
/// to append, and the others.
fn select_clusters(tests: Vec<String>, commits: usize) -> (String, Vec<String>) {
    let mut filter = String::new();
    let mut others = Vec::new();
    for (number, test) in tests.into_iter().enumerate() {
        // A line has the program and the name.
        match test.split_once(' ') {
            Some((_, name)) if number % CLUSTERS_SHARE == commits % CLUSTERS_SHARE => {
                filter += &format!(" or test(={name})");
            }
            Some(_) | None => others.push(test),
        }
    }
    (filter, others)
}

/// Runs the tests one program after the other. Without nextest the usual scope excludes all runs of
/// clusters, as single ones cannot be selected.
fn tests_without_nextest(run: &mut Run) -> anyhow::Result<Outcome> {
    // `--tests`: unit tests of libraries and binaries, and integration tests; another step runs the
    // examples in the documentation.
    const TESTS: [&str; 4] = ["test", "--workspace", "--tests", "--no-fail-fast"];
    println!("cargo-nextest is not installed: the slower `cargo test` runs the tests");
    match run.scope {
        Scope::All => test_step(&TESTS, run),
        Scope::Usual => {
            run.left_out
                .push("all tests with `clusters::` in their names".to_owned());
            test_step(&[&TESTS[..], &["--", "--skip", "clusters::"]].concat(), run)
        }
    }
}

/// Seconds of each fuzz test in the full scope: enough for tens of thousands of inputs, and short
/// enough to wait for.
const FUZZ_SECONDS_ALL: &str = "10";
const FUZZ_SECONDS: &str = "ANTEROOM_FUZZ_SECONDS";

fn test_step(arguments: &[&str], run: &mut Run) -> anyhow::Result<Outcome> {
    let given = std::env::var_os(FUZZ_SECONDS);
    match (run.scope, given) {
        (Scope::All, None) => {
            cargo::announce_with(FUZZ_SECONDS, FUZZ_SECONDS_ALL, arguments);
            let mut command = cargo::command(arguments);
            command.env(FUZZ_SECONDS, FUZZ_SECONDS_ALL);
            counted(command, run)
        }
        (Scope::Usual, None) => {
            let long = format!("fuzz tests for {FUZZ_SECONDS_ALL} s each: they ran briefly");
            run.left_out.push(long);
            counted_step(arguments, run)
        }
        (Scope::All | Scope::Usual, Some(_)) => counted_step(arguments, run),
    }
}

/// Runs a program that [`requirements`] installs, in the root of the workspace.
fn tool_step(requirement: &Requirement, arguments: &[&str]) -> anyhow::Result<Outcome> {
    let program = requirements::program(requirement);
    println!("$ {} {}", program.display(), arguments.join(" "));
    let mut command = Command::new(program);
    command.current_dir(workspace::root()).args(arguments);
    let name = requirement.binary;
    let status = command
        .status()
        .with_context(|| format!("starting {name}"))?;
    ensure!(status.success(), "{name} failed ({status})");
    Ok(Outcome::Passed)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::workspace::root;

    #[test]
    fn no_two_steps_share_a_name() {
        let names: BTreeSet<&str> = STEPS.iter().map(|step| step.name).collect();
        assert_eq!(names.len(), STEPS.len());
    }

    /// Returns all source below a folder.
    fn source(folder: &Path) -> String {
        let entries = fs::read_dir(folder).unwrap();
        let text = entries.map(|entry| {
            let path = entry.unwrap().path();
            if path.is_dir() {
                source(&path)
            } else {
                fs::read_to_string(path).unwrap()
            }
        });
        text.collect()
    }

    #[test]
    fn tests_that_the_runner_selects_by_name_exist() {
        let config = fs::read_to_string(root().join(".config/nextest.toml")).unwrap();
        let named = config.lines().filter_map(|line| {
            let name = line.strip_prefix("or test(/^")?.strip_suffix("$/)")?;
            name.rsplit("::").next()
        });
        let named: Vec<&str> = named.collect();
        assert!(named.len() >= 5, "{named:?}");
        let folder = root().join("crates/testing/e2e/tests/it");
        let of_e2e = config.lines().filter(|line| {
            line.starts_with("or test(/^") || line.contains("package(anteroom-e2e)")
        });
        let patterns = of_e2e.flat_map(|line| line.split("test(/^").skip(1));
        for pattern in patterns {
            let modules = pattern.split("::").next().unwrap_or_default();
            for module in modules.trim_matches(['(', ')']).split('|') {
                let file = folder.join(module).with_extension("rs");
                assert!(file.is_file(), "no tests are in {module}: {pattern}");
            }
        }
        let source = source(&folder);
        for name in named {
            assert!(
                source.contains(&format!("fn {name}(")),
                "no test has the name {name}"
            );
        }
    }

    #[test]
    fn each_run_of_a_cluster_has_its_turn() {
        let tests =
            || ["a", "b", "c", "d", "e", "f", "g"].map(|name| format!("anteroom-e2e::it {name}"));
        let selected = |commits| select_clusters(tests().to_vec(), commits);
        let (filter, others) = selected(6);
        assert_eq!(filter, " or test(=a) or test(=g)");
        assert_eq!(others.len(), 5);
        assert_eq!(others[0], "anteroom-e2e::it b");
        assert_eq!(selected(7).0, " or test(=b)");
        assert_eq!(selected(11).0, " or test(=f)");
    }

    #[test]
    fn steps_of_one_group_are_adjacent() {
        let runs = STEPS.chunk_by(|a, b| a.group == b.group).count();
        let groups: BTreeSet<&str> = STEPS.iter().map(|step| step.group).collect();
        assert_eq!(runs, groups.len());
    }
}
