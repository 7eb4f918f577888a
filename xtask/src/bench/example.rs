//! Benchmarks on real nodes: `cargo xtask bench far`, who must wait although a seat is free, and
//! `cargo xtask bench truth`, whether announced waits come true.
//!
//! Each is an example of `anteroom-e2e`. This builds the program and the example, optimized. The
//! example starts the program as nodes, measures and prints.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use clap::Args;

use super::{GATEWAY, build, executable};
use crate::cargo;
use crate::cluster::BINARY;

/// Examples of `cargo xtask bench far`.
pub(crate) const FAR: &str = "Examples:
  cargo xtask bench far                                all cases
  cargo xtask bench far --case 1000/s --case random    those with one of these in their name
  cargo xtask bench far --json -- --seconds 30         longer, as JSON
  cargo xtask bench far -- --list                      the names of the cases
  cargo xtask bench far -- --log far-logs              also write all requests and outcomes";
/// Examples of `cargo xtask bench truth`.
pub(crate) const TRUTH: &str = "Examples:
  cargo xtask bench truth                              all runs
  cargo xtask bench truth --case rush-200              those with this in their name
  cargo xtask bench truth --json > truth.json          a file for programs
  cargo xtask bench truth -- --list                    the names of the runs
  cargo xtask bench truth -- --log truth-logs          also write all announcements";

/// Options of a benchmark on real nodes.
#[derive(Args)]
pub(crate) struct Options {
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Measure the cases with this in their name only. May be repeated.
    #[arg(long, value_name = "PART")]
    case: Vec<String>,
    /// Start this program as nodes instead of building one.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// More arguments of the example; `-- --help` lists them.
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<String>,
}

/// Measures and prints.
///
/// # Errors
///
/// If a program cannot be built, a run fails, or a limit was exceeded.
pub(crate) fn run(name: &str, options: &Options) -> anyhow::Result<()> {
    let nodes = match &options.binary {
        Some(binary) => std::path::absolute(binary).context("finding the program to start")?,
        None => build("release", &GATEWAY)?,
    };
    let messages = cargo::read(&[
        "build",
        "--release",
        "-p",
        "anteroom-e2e",
        "--example",
        name,
        "--message-format=json-render-diagnostics",
    ])?;
    let example = executable(&messages, name).context("cargo build reported no program")?;
    let status = command(&example, &nodes, options).status();
    let status = status.with_context(|| format!("starting the example `{name}`"))?;
    ensure!(status.success(), "the example `{name}` failed ({status})");
    Ok(())
}

fn command(example: &Path, nodes: &Path, options: &Options) -> Command {
    let mut command = Command::new(example);
    command
        .env(BINARY, nodes)
        .args(options.json.then_some("--json"));
    for part in &options.case {
        command.args(["--case", part]);
    }
    command.args(&options.arguments);
    command
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

    #[test]
    fn everything_that_is_typed_reaches_the_example() {
        let typed = [
            "truth",
            "--json",
            "--case",
            "a",
            "--case",
            "b",
            "--",
            "--seconds",
            "30",
        ];
        let options = Typed::try_parse_from(typed).unwrap().options;
        let command = command(Path::new("example"), Path::new("/nodes"), &options);
        let arguments: Vec<_> = command.get_args().collect();
        let expected = ["--json", "--case", "a", "--case", "b", "--seconds", "30"];
        assert_eq!(arguments, expected);
        let variables: Vec<_> = command.get_envs().collect();
        assert_eq!(variables.len(), 1);
        assert_eq!(variables[0].1.unwrap(), "/nodes");
    }
}
