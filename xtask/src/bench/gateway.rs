//! `cargo xtask bench gateway`: what does the gateway cost per request, beside other proxies?
//!
//! `anteroom-bench-gateway` measures, and `anteroom-bench-cluster` measures what many visitors cost
//! who wait in one process. This builds both and the gateway, optimized, and lets them print.

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
    let program = |name| {
        let messages = cargo::read(&[
            "build",
            "--profile=dist",
            "--bin",
            name,
            "--message-format=json-render-diagnostics",
        ])?;
        executable(&messages).context("cargo build names no program")
    };
    let gateway = program("anteroom")?;
    let bench = program("anteroom-bench-cluster")?;
    let program = program("anteroom-bench-gateway")?;
    let status = Command::new(program)
        .arg("--anteroom")
        .arg(gateway)
        .arg("--bench")
        .arg(bench)
        .args(options.json.then_some("--json"))
        .args(&options.arguments)
        .status()
        .context("starting anteroom-bench-gateway")?;
    ensure!(status.success(), "anteroom-bench-gateway failed ({status})");
    Ok(())
}
