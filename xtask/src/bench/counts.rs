//! Counts of the gateway per request, `cargo xtask bench counts`: instructions, allocations and
//! system calls.
//!
//! `anteroom-bench-gateway counts` runs the gateway under valgrind and strace. This builds both.

use std::process::Command;

use anyhow::{Context, ensure};
use clap::Args;

use super::{GATEWAY, RACE, build, build_all, build_arguments};
use crate::requirements;
use crate::step::Outcome;
use crate::workspace::root;

/// Committed figures, from the root of the workspace.
const FIGURES: &str = "crates/bench/counts.json";

/// Profile of what is shipped.
const SHIPPED: &str = "dist";
/// Profile of the committed figures, which the build server has built anyway. The file names it,
/// too.
const COMPARED: &str = "release";

/// Name of the step of the tests.
pub(crate) const STEP: &str = "counts";

/// Option of the program that names the gateway.
const GATEWAY_OPTION: &str = "--anteroom";

/// Options of the counts.
#[derive(Args)]
pub(crate) struct Options {
    /// Compare a build of profile release with the committed figures, and fail if a count is more
    /// than 5 % above. `ANTEROOM_UPDATE=1` writes the figures instead.
    #[arg(long)]
    check: bool,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// More arguments of the program; `-- --help` lists them. With `-- --anteroom FILE`, that
    /// gateway is counted instead of a new build.
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<String>,
}

/// Counts and prints.
///
/// # Errors
///
/// If a program cannot be built or installed, a run fails, or a count is too far above its figure.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    requirements::ensure(&requirements::COUNTERS)?;
    let profile = if options.check { COMPARED } else { SHIPPED };
    let mut command;
    if names_gateway(&options.arguments) {
        command = Command::new(build(profile, &RACE)?);
        command.arg("counts");
    } else {
        let [program, gateway] = build_all(profile, [&RACE, &GATEWAY])?;
        command = Command::new(program);
        command.arg("counts").arg(GATEWAY_OPTION).arg(gateway);
    }
    if options.check {
        command.arg("--check").arg(root().join(FIGURES));
    }
    let status = command
        .args(options.json.then_some("--json"))
        .args(&options.arguments)
        .status()
        .context("starting anteroom-bench-gateway")?;
    ensure!(status.success(), "anteroom-bench-gateway failed ({status})");
    Ok(())
}

/// Returns the command that builds what [`check`] runs.
pub(crate) fn build_command() -> Vec<String> {
    let arguments = build_arguments(COMPARED, &[&RACE, &GATEWAY]);
    let words = ["cargo"].into_iter().chain(arguments);
    words.map(str::to_owned).collect()
}

/// Compares the counts with the committed figures.
///
/// # Errors
///
/// Those of [`run`].
pub(crate) fn check() -> anyhow::Result<Outcome> {
    // Containers often forbid it.
    let mut traced = Command::new("strace");
    traced.args(["-o", "/dev/null", "true"]);
    if !traced.output().is_ok_and(|output| output.status.success()) {
        return Ok(Outcome::Skipped(
            "strace may not trace a process here; a container needs the capability SYS_PTRACE",
        ));
    }
    run(&Options {
        check: true,
        json: false,
        arguments: Vec::new(),
    })?;
    Ok(Outcome::Passed)
}

fn names_gateway(arguments: &[String]) -> bool {
    arguments.iter().any(|argument| {
        let rest = argument.strip_prefix(GATEWAY_OPTION);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_may_be_named_in_both_forms() {
        let names = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
            names_gateway(&words)
        };
        assert!(names(&["--waves", "9", "--anteroom", "file"]));
        assert!(names(&["--anteroom=file"]));
        assert!(!names(&["--anterooms", "file"]));
    }

    #[test]
    fn the_committed_figures_name_their_profile() {
        let text = std::fs::read_to_string(root().join(FIGURES)).unwrap();
        let figures: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(figures["profile"], COMPARED);
    }
}
