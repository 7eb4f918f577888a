//! Tests on real processes, run by hand with all of their output: `cargo xtask cluster`.
//!
//! The runs are tests of `anteroom-e2e`. This builds the program that they start, and selects the
//! tests. The run at full scale takes too long for a test and is an example there.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;

use crate::cargo;

/// Environment variable with the program to test, for `anteroom-e2e`.
pub(crate) const BINARY: &str = "ANTEROOM_BINARY";
/// Prefix of the runs' names among the tests of `anteroom-e2e`.
const MODULE: &str = "clusters::";

/// Selection of runs.
#[derive(Args)]
#[command(after_help = "Examples:
  cargo xtask cluster                               list all runs
  cargo xtask cluster a_node_is_paused              run those with this in their name
  cargo xtask cluster a_node_is_paused --times 20   repeat until one fails
  cargo xtask cluster '' --release                  run all, with optimized programs
  cargo xtask cluster --full-scale                  measure how full a room with long sessions is

Needs redis-server. A run that fails prints the folder with the logs of its nodes; with
ANTEROOM_CLUSTER_KEEP=1 all runs do.")]
pub(crate) struct Options {
    /// Part of the name of a run; without it, all names are listed.
    name: Option<String>,
    /// Build optimized programs, which use resources as in production.
    #[arg(long)]
    release: bool,
    /// Number of repetitions; the first failure ends them.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..),
    )]
    times: u32,
    /// Run the example at full scale instead of a test, always optimized. It has 300 seats,
    /// sessions of five minutes and four visitors per seat. It prints how full the room was and for
    /// how long seats were free.
    #[arg(long, conflicts_with_all = ["name", "release", "times"])]
    full_scale: bool,
    /// Length of the run, in minutes.
    #[arg(long, value_name = "N", requires = "full_scale", default_value_t = 14,
        value_parser = clap::value_parser!(u32).range(1..))]
    minutes: u32,
    /// Seconds within which the visitors arrive.
    #[arg(
        long,
        value_name = "SECONDS",
        requires = "full_scale",
        default_value_t = 1
    )]
    arrivals: u32,
    /// Test this program instead of building one.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// Lists the runs, or runs the selected ones.
///
/// # Errors
///
/// If no run has this name, a program cannot be built, or a run fails.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    if options.full_scale {
        return full_scale(options);
    }
    let names = names(options)?;
    let Some(part) = &options.name else {
        println!("{}", names.join("\n"));
        return Ok(());
    };
    if names.is_empty() {
        bail!("no run has {part:?} in its name; `cargo xtask cluster` lists all");
    }
    if options.binary.is_none() {
        cargo::run(&with_profile(options, &["build", "-p", "anteroom"]))?;
    }
    let mut arguments = test(options);
    arguments.extend(["--nocapture", "--test-threads=1", "--exact"]);
    arguments.extend(names.iter().map(String::as_str));
    for _ in 0..options.times {
        run_against(options.binary.as_deref(), &arguments)?;
    }
    Ok(())
}

fn full_scale(options: &Options) -> anyhow::Result<()> {
    if options.binary.is_none() {
        cargo::run(&["build", "-p", "anteroom", "--release"])?;
    }
    let minutes = options.minutes.to_string();
    let arrivals = options.arrivals.to_string();
    let example = ["--release", "-p", "anteroom-e2e", "--example"];
    let mut arguments = vec!["run", "-q"];
    arguments.extend(example);
    arguments.extend(["full_scale", "--", &minutes, &arrivals]);
    run_against(options.binary.as_deref(), &arguments)
}

/// Runs Cargo; tests start `binary` as nodes, or else the program that Cargo built.
fn run_against(binary: Option<&Path>, arguments: &[&str]) -> anyhow::Result<()> {
    // Tests find the built program in their own folder.
    let Some(binary) = binary else {
        return cargo::run(arguments);
    };
    // Tests run in the folder of their crate.
    let binary = std::path::absolute(binary).context("finding the program to test")?;
    let binary = binary.to_str().context("the program's path is not UTF-8")?;
    cargo::run_with(BINARY, binary, arguments)
}

fn names(options: &Options) -> anyhow::Result<Vec<String>> {
    let mut arguments = test(options);
    arguments.extend(["--list", MODULE]);
    let part = options.name.as_deref().unwrap_or_default();
    Ok(listed(&cargo::read(&arguments)?, part))
}

fn test(options: &Options) -> Vec<&'static str> {
    let mut arguments = with_profile(
        options,
        &["test", "-q", "-p", "anteroom-e2e", "--test", "it"],
    );
    arguments.push("--");
    arguments
}

fn with_profile(options: &Options, arguments: &[&'static str]) -> Vec<&'static str> {
    let mut arguments = arguments.to_vec();
    if options.release {
        arguments.push("--release");
    }
    arguments
}

/// Returns the names of runs that contain `part`, from a list of tests.
fn listed(text: &str, part: &str) -> Vec<String> {
    let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
    names
        .filter(|name| name.starts_with(MODULE) && name.contains(part))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        options: Options,
    }

    fn check(typed: &[&str], expected: &str) {
        let words = std::iter::once(&"cluster").chain(typed);
        let typed = Typed::try_parse_from(words).unwrap();
        assert_eq!(test(&typed.options).join(" "), expected);
    }

    #[test]
    fn the_test_profile_is_used_unless_release_is_requested() {
        let tests = "test -q -p anteroom-e2e --test it";
        check(&[], &format!("{tests} --"));
        check(&["a_node", "--release"], &format!("{tests} --release --"));
    }

    #[test]
    fn a_run_at_full_scale_is_no_test_and_has_no_name() {
        let parse = |words: &[&str]| Typed::try_parse_from([&["cluster"], words].concat());
        let typed = parse(&["--full-scale", "--minutes", "3"]).unwrap();
        assert!(typed.options.full_scale);
        assert_eq!(typed.options.minutes, 3);
        assert!(parse(&["--full-scale", "a_node"]).is_err());
        assert!(parse(&["--minutes", "3"]).is_err());
    }

    #[test]
    fn other_lines_in_a_list_of_tests_are_ignored() {
        let text = "clusters::a: test\nclusters::b: test\nnot::clusters::b: test\n\n3 tests";
        assert_eq!(listed(text, ""), ["clusters::a", "clusters::b"]);
        assert_eq!(listed(text, "b"), ["clusters::b"]);
        assert!(listed("", "").is_empty());
    }
}
