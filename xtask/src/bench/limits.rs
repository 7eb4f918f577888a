//! Benchmark of limits, `cargo xtask bench limits`: the cost of a check, compared with others.
//!
//! Two programs of `anteroom-bench` measure. They need its feature `limits`, with the libraries
//! that limits are compared with.

use anyhow::{Context, ensure};
use clap::Args;

use crate::cargo;

/// Options of the benchmark of limits.
#[derive(Args)]
pub(crate) struct Options {
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
    /// More arguments of the program; `-- --help` lists them.
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<String>,
}

/// Measures and prints. A missed target is printed and is no error.
///
/// # Errors
///
/// If a program cannot be built or a run fails.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let run = |program: &str, arguments: &[String]| {
        let mut command = cargo::command(&["run", "--profile", "dist", "-p", "anteroom-bench"]);
        command.args(["--features", "limits", "--bin", program]);
        let program_arguments = command.arg("--").args(arguments);
        let status = program_arguments.status();
        let status = status.context("starting cargo")?;
        ensure!(status.success(), "{program} failed ({status})");
        anyhow::Ok(())
    };
    let mut arguments = options.arguments.clone();
    if options.json {
        arguments.push("--json".to_owned());
    }
    run("anteroom-bench-limits", &arguments)?;
    run(
        "anteroom-bench-limits-memory",
        &arguments[options.arguments.len()..],
    )
}
