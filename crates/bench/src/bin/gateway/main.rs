//! Speed of the gateway, compared with other proxies. Started by `cargo xtask bench gateway`.
//!
//! The gateway and its peers run at the same time, each on one processor. The load goes to one
//! after the other, in rounds, so a machine that slows down affects all. They are compared by the
//! proxy's processor time per request, by the kernel's accounting. Slow results are no failure.
//!
//! The baseline is [`bare`]: hyper alone, which the gateway is built on.

#![expect(clippy::print_stdout, reason = "a tool that prints")]

mod bare;
mod connections;
mod load;
mod peers;
mod process;
mod races;
mod report;
mod visitors;
mod waiting;

use std::path::PathBuf;
use std::time::Duration;

use anteroom_bench::Machine;
use anyhow::Context as _;
use clap::{Parser, Subcommand};

use peers::Also;
use races::Effort;
use report::Report;

/// Measure a gateway beside other proxies.
#[derive(Parser)]
#[command(name = "cargo xtask bench gateway")]
struct Options {
    #[command(subcommand)]
    role: Option<Role>,
    /// Program of the gateway.
    #[arg(long, value_name = "FILE", default_value = "target/release/anteroom")]
    anteroom: PathBuf,
    /// Program of `cargo xtask bench cluster`, which runs many waiting visitors in one process.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "target/release/anteroom-bench-cluster"
    )]
    bench: PathBuf,
    /// Another build of the gateway for the same races, such as `mimalloc=target/other/anteroom`.
    #[arg(long, value_name = "NAME=FILE")]
    also: Vec<Also>,
    /// Number of measurements of each proxy in each race; the median counts.
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    /// Length of each measurement.
    #[arg(long, value_name = "SECONDS", default_value_t = 4)]
    seconds: u64,
    /// Number of waiting visitors whose cost is measured.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    waiting: u64,
    /// Run the races only, without waiting visitors.
    #[arg(long)]
    races_only: bool,
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
}

/// Role of this program.
#[derive(Subcommand)]
enum Role {
    /// Run the bare peer.
    #[command(hide = true)]
    Bare(bare::Options),
    /// Measure response times among many waiting browsers and hostile sockets
    Connections(connections::Options),
    /// Run the browsers, or the sockets.
    #[command(hide = true)]
    Flood(connections::FloodOptions),
}

fn main() -> anyhow::Result<()> {
    let mut options = Options::parse();
    let role = options.role.take();
    if let Some(Role::Bare(bare)) = role {
        return bare::run(bare);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting a runtime")?;
    match role {
        Some(Role::Connections(role)) => {
            runtime.block_on(connections::run(&options.anteroom, &role))
        }
        Some(Role::Flood(role)) => {
            runtime.block_on(connections::flood(role));
            Ok(())
        }
        _ => runtime.block_on(measure(&options)),
    }
}

async fn measure(options: &Options) -> anyhow::Result<()> {
    let effort = Effort {
        rounds: options.rounds,
        time: Duration::from_secs(options.seconds),
    };
    let machine = Machine::look();
    let stage = peers::Stage::start(&options.anteroom, &options.also).await?;
    let races = races::run(&stage, &effort).await?;
    drop(stage);
    let waiting = if options.races_only {
        None
    } else {
        Some(waiting::run(&options.anteroom, &options.bench, options.waiting).await?)
    };
    let report = Report {
        machine,
        races,
        waiting,
    };
    if options.json {
        println!("{}", report.json()?);
    } else {
        print!("{}", report.text());
    }
    Ok(())
}
