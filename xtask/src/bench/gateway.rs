//! `cargo xtask bench gateway`: what does the gateway cost per request, beside other proxies?
//!
//! Measured by the programs of `anteroom-speed` and, what many cost who wait in one process, of
//! `anteroom-bench`; this builds them and the gateway, optimized, and lets them print.

use std::process::Command;

use anyhow::{Context, ensure};
use clap::Args;

use super::executable;
use crate::{cargo, requirements};

/// How to measure the gateway.
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
/// When a program cannot be built or installed, or a run cannot be made.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    requirements::ensure(&requirements::RACERS)?;
    let program = |package| {
        let messages = cargo::read(&[
            "build",
            "--profile=dist",
            "-p",
            package,
            "--message-format=json-render-diagnostics",
        ])?;
        executable(&messages).context("cargo build names no program")
    };
    let (gateway, bench) = (program("anteroom")?, program("anteroom-bench")?);
    let program = program("anteroom-speed")?;
    let status = Command::new(program)
        .arg("--anteroom")
        .arg(gateway)
        .arg("--bench")
        .arg(bench)
        .args(options.json.then_some("--json"))
        .args(&options.arguments)
        .status()
        .context("starting anteroom-speed")?;
    ensure!(status.success(), "anteroom-speed failed ({status})");
    Ok(())
}
