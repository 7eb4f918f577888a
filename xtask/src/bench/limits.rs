//! `cargo xtask bench limits`: what does a check of a limit cost, beside others?
//!
//! Measured by the programs of `crates/bench/limits`, a workspace of its own: what limits are
//! measured beside is built by nobody who only builds the program.

use anyhow::{Context, ensure};
use clap::Args;

use crate::cargo;

/// Where the programs are.
pub(crate) const MANIFEST: &str = "crates/bench/limits/Cargo.toml";

/// Returns the arguments that keep what is built where everything else is, so that it is not below
/// `crates`, unless the environment says where.
pub(crate) fn target_folder() -> &'static [&'static str] {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(_) => &[],
        None => &["--target-dir", "target"],
    }
}

/// How to measure limits.
#[derive(Args)]
pub(crate) struct Options {
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
    /// What else the program understands; `-- --help` says it.
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<String>,
}

/// Measures and prints. A target that is missed is printed, and no error.
///
/// # Errors
///
/// When a program cannot be built, or a run cannot be made.
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
