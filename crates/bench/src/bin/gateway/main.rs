//! Speed of the gateway, compared with other proxies. Started by `cargo xtask bench gateway`.
//!
//! The gateway and its peers run at the same time, each on one processor. The load goes to one
//! after the other, in rounds, so a machine that slows down affects all. Its rate is fixed. They
//! are compared by the proxy's processor time per request, by the kernel's accounting. Slow results
//! are no failure.
//!
//! The peers are nginx, haproxy, and [`bare`]: hyper alone, which the gateway is built on.
//! [`counts`] has figures that do not depend on the machine's speed.

#![expect(clippy::print_stdout, reason = "a tool that prints")]

mod bare;
mod certificate;
mod connections;
mod counts;
mod generator;
mod idle;
mod load;
mod peers;
mod process;
mod races;
mod report;
mod visitors;
mod waiting;

use std::path::PathBuf;

use anteroom_bench::Machine;
use anyhow::{Context as _, ensure};
use clap::{Parser, Subcommand};

use peers::{Also, Cast};
use races::Effort;
use report::Report;

/// Measure a gateway beside other proxies.
#[derive(Parser)]
#[command(name = "cargo xtask bench gateway")]
struct Options {
    #[command(subcommand)]
    role: Option<Role>,
    /// Program of the gateway.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        default_value = "target/release/anteroom"
    )]
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
    /// Requests per second in each measurement.
    #[arg(long, value_name = "N", default_value_t = 9_600)]
    rate: u64,
    /// Measure only what has this in its name, such as "TLS" or "idle". The names are those in the
    /// headings of the report.
    #[arg(long, global = true, value_name = "NAME")]
    only: Option<String>,
    /// Number of idle connections whose memory is measured.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    idle: usize,
    /// Number of waiting visitors whose cost is measured.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    waiting: u64,
    /// Run the races only, without idle connections and waiting visitors.
    #[arg(long)]
    races_only: bool,
    /// Print JSON instead of tables.
    #[arg(long, global = true)]
    json: bool,
}

/// Role of this program.
#[derive(Subcommand)]
enum Role {
    /// Run the bare peer.
    #[command(hide = true)]
    Bare(bare::Options),
    /// Run the load generator.
    #[command(hide = true)]
    Generate(generator::Options),
    /// Count instructions, allocations and system calls per request
    Counts(counts::Options),
    /// Measure response times among many waiting browsers and hostile sockets
    Connections(connections::Options),
    /// Run the browsers, or the sockets.
    #[command(hide = true)]
    Flood(connections::FloodOptions),
}

fn main() -> anyhow::Result<()> {
    let mut options = Options::parse();
    let role = match options.role.take() {
        Some(Role::Bare(bare)) => return bare::run(bare),
        Some(Role::Generate(generate)) => return generator::run(&generate),
        role => role,
    };
    let open_files = process::raise_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting a runtime")?;
    match role {
        Some(Role::Connections(role)) => {
            runtime.block_on(connections::run(&options.anteroom, &role))
        }
        Some(Role::Counts(role)) => {
            let only = options.only.as_deref();
            runtime.block_on(counts::run(&options.anteroom, only, options.json, &role))
        }
        Some(Role::Flood(role)) => {
            runtime.block_on(connections::flood(role));
            Ok(())
        }
        _ => runtime.block_on(measure(&options, open_files)),
    }
}

async fn measure(options: &Options, open_files: u64) -> anyhow::Result<()> {
    let effort = Effort {
        rounds: options.rounds,
        seconds: options.seconds,
        rate: options.rate,
        only: options.only.as_deref(),
    };
    let cast = Cast {
        anteroom: &options.anteroom,
        also: &options.also,
        with_access_log: false,
        with_tls: false,
    };
    let has = |name: &str| !options.races_only && effort.includes(name);
    let machine = Machine::look();
    let races = races::run(cast, effort).await?;
    let idle = match has(idle::NAME) {
        true => idle::run(cast, idle::fitting(options.idle, open_files)).await?,
        false => Vec::new(),
    };
    let waiting = match has(waiting::NAME) {
        true => {
            let (anteroom, bench) = (&options.anteroom, &options.bench);
            Some(waiting::run(anteroom, bench, options.waiting, options.rate).await?)
        }
        false => None,
    };
    ensure!(
        !races.is_empty() || !idle.is_empty() || waiting.is_some(),
        "no measurement has this name"
    );
    let report = Report {
        machine,
        rate: options.rate,
        races,
        idle,
        waiting,
    };
    if options.json {
        println!("{}", report.json()?);
    } else {
        print!("{}", report.text());
    }
    Ok(())
}
