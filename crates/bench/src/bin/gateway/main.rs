//! How fast is a gateway, beside other proxies? What `cargo xtask bench gateway` calls.
//!
//! The gateway and its peers run at the same time, each on one processor, and the load goes to one
//! after the other, again and again: a machine that slows down slows all of them. Compared is the
//! processor time of the proxy per request, by the kernel's accounting. Nothing fails because it is
//! slow.
//!
//! The peer that is the measure is [`bare`]: hyper and nothing else, what the gateway is made of.

#![expect(clippy::print_stdout, reason = "a tool that prints")]

mod bare;
mod connections;
mod crowd;
mod load;
mod peers;
mod process;
mod races;
mod report;
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
    /// The gateway.
    #[arg(long, value_name = "FILE", default_value = "target/release/anteroom")]
    anteroom: PathBuf,
    /// The program of `cargo xtask bench cluster`, which has many wait in one process.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "target/release/anteroom-bench-cluster"
    )]
    bench: PathBuf,
    /// One more build of it in the same races, such as `mimalloc=target/other/anteroom`.
    #[arg(long, value_name = "NAME=FILE")]
    also: Vec<Also>,
    /// How often each proxy is measured in each race; the middle one counts.
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    /// How long each of those takes.
    #[arg(long, value_name = "SECONDS", default_value_t = 4)]
    seconds: u64,
    /// How many wait where it is measured what they cost.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    waiting: u64,
    /// The races alone, without the crowd that waits.
    #[arg(long)]
    races_only: bool,
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
}

/// What this program is when it is started by itself.
#[derive(Subcommand)]
enum Role {
    /// Be the bare peer.
    #[command(hide = true)]
    Bare(bare::Options),
    /// Measure who is answered among many waiting browsers and hostile sockets
    Connections(connections::Options),
    /// Be the browsers, or the sockets.
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
