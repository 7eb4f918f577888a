//! Benchmark of deployments, `cargo xtask bench cluster`: the added latency of new visitors and the
//! load on the stores.
//!
//! This builds and runs `anteroom-bench-cluster`, which measures and prints.

use std::process::Command;

use anyhow::{Context, ensure};
use clap::Args;

use super::{CLUSTER, build};

/// Options of the benchmark of deployments.
#[derive(Args)]
pub(crate) struct Options {
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
    /// Measure the added latency of new visitors only: two minutes.
    #[arg(long, conflicts_with = "json")]
    latency_only: bool,
}

/// Measures and prints. A missed target is printed and is no error.
///
/// # Errors
///
/// If the program cannot be built or a run fails, such as without redis-server.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let program = build("release", &CLUSTER)?;
    let status = Command::new(program)
        .args(options.json.then_some("--json"))
        .args(options.latency_only.then_some("--latency-only"))
        .status()
        .context("starting anteroom-bench-cluster")?;
    ensure!(status.success(), "anteroom-bench-cluster failed ({status})");
    Ok(())
}
