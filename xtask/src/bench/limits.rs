//! Benchmark of limits, `cargo xtask bench limits`: the cost of a check, compared with others.
//!
//! The programs of `crates/bench/limits` measure. They are a separate workspace: a build of the
//! program alone does not need the libraries that limits are compared with.

use anyhow::{Context, ensure};
use clap::Args;

use crate::cargo;

/// Manifest of the programs.
pub(crate) const MANIFEST: &str = "crates/bench/limits/Cargo.toml";

/// Returns the arguments for a build in the target folder of this workspace instead of one below
/// `crates`; none if the environment names a folder.
pub(crate) fn target_folder() -> &'static [&'static str] {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(_) => &[],
        None => &["--target-dir", "target"],
    }
}

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
        let build = ["run", "--release", "--manifest-path", MANIFEST];
        let mut command = cargo::command(&[&build[..], target_folder()].concat());
        let program_arguments = command.args(["--bin", program, "--"]).args(arguments);
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
    run("memory", &arguments[options.arguments.len()..])
}
