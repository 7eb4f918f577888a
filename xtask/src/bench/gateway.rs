//! Benchmark of the gateway, `cargo xtask bench gateway`: its cost per request, compared with other
//! proxies.
//!
//! `anteroom-bench-gateway` measures, and `anteroom-bench-cluster` measures the cost of many
//! waiting visitors in one process. This builds both and the gateway, optimized, and runs them.

use std::process::Command;

use anyhow::{Context, ensure};
use clap::Args;

use super::{CLUSTER, GATEWAY, RACE, build_all};
use crate::requirements;

/// Options of the benchmark of the gateway.
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
/// If a program cannot be built or installed, or a run fails.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    requirements::ensure(&requirements::RACERS)?;
    let [program, gateway, cluster] = build_all("dist", [&RACE, &GATEWAY, &CLUSTER])?;
    let status = Command::new(program)
        .arg("--anteroom")
        .arg(gateway)
        .arg("--bench")
        .arg(cluster)
        .args(options.json.then_some("--json"))
        .args(&options.arguments)
        .status()
        .context("starting anteroom-bench-gateway")?;
    ensure!(status.success(), "anteroom-bench-gateway failed ({status})");
    Ok(())
}
