//! `cargo xtask bench cluster`: how much later is a new visitor served by many nodes, and what does
//! that cost the stores?
//!
//! `anteroom-bench-cluster` measures. This builds it, optimized, and lets it print.

use std::process::Command;

use anyhow::{Context, ensure};
use clap::Args;

use super::executable;
use crate::cargo;

/// How to measure a deployment.
#[derive(Args)]
pub(crate) struct Options {
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
    /// Measure the added latency of new visitors and nothing else: two minutes.
    #[arg(long, conflicts_with = "json")]
    latency_only: bool,
}

/// Measures and prints. A target that is missed is printed, and no error.
///
/// # Errors
///
/// When the program cannot be built, or a run cannot be made: redis-server is missing, nodes do not
/// start.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let messages = cargo::read(&[
        "build",
        "--release",
        "--bin",
        "anteroom-bench-cluster",
        "--message-format=json-render-diagnostics",
    ])?;
    let program = executable(&messages).context("cargo build names no program")?;
    let status = Command::new(program)
        .args(options.json.then_some("--json"))
        .args(options.latency_only.then_some("--latency-only"))
        .status()
        .context("starting anteroom-bench-cluster")?;
    ensure!(status.success(), "anteroom-bench-cluster failed ({status})");
    Ok(())
}
