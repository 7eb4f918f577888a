//! Cost of checking a limit, compared with other implementations. Started by `cargo xtask bench
//! limits`.
//!
//! All implementations run in turn within each round, in this process, and are compared by
//! processor time: ratios of that are more robust than times on a busy machine.

#![expect(clippy::print_stdout, reason = "a tool that prints")]

mod keyed;
mod layer;
mod race;
mod service;
mod shared;

use anyhow::Context as _;
use clap::Parser;

use crate::race::Race;

/// Selection of measurements.
#[derive(Parser)]
struct Options {
    /// Number of measurements of each; the median counts.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Run only races whose names contain this.
    #[arg(long)]
    only: Option<String>,
    /// Run only implementations whose names contain this, such as to profile one of them.
    #[arg(long)]
    who: Option<String>,
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let is_wanted = |name: &str| {
        options
            .only
            .as_ref()
            .is_none_or(|only| name.contains(&**only))
    };
    let mut races: Vec<Race> = Vec::new();
    for (name, run) in RACES {
        if is_wanted(name) {
            eprintln!("{name} ...");
            let race = run(name, &options).with_context(|| (*name).to_owned())?;
            if !options.json {
                println!("{race}");
            }
            races.push(race);
        }
    }
    if options.json {
        println!("{}", serde_json::to_string_pretty(&races)?);
    }
    Ok(())
}

type Run = fn(&str, &Options) -> anyhow::Result<Race>;

/// All races by name.
const RACES: &[(&str, Run)] = &[
    ("keyed: 100,000 clients by their names", keyed::many),
    ("keyed: 100,000 clients over their limit", keyed::many_over),
    ("keyed: one client, two threads", keyed::hot),
    (
        "layer: a limit for each client in the gateway",
        layer::per_client,
    ),
    ("shared: three nodes, one redis-server", shared::leases),
    ("service: ShouldRateLimit with 1 descriptor", service::one),
    ("service: ShouldRateLimit with 10 descriptors", service::ten),
];
