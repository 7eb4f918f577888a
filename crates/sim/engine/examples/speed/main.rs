//! Measures the speed of the simulator and the largest deployment that it can run. `cargo xtask
//! bench sim` starts one process per size, because peak memory belongs to a process.

#![expect(clippy::print_stdout, reason = "a tool that prints")]

mod meter;
mod output;
mod plans;

use std::process::ExitCode;

use anteroom_room::rules::AllocationKind;
use anteroom_sim::run;
use anteroom_sim::scenario::model::Scenario;
use clap::{Parser, value_parser};

use meter::{Meter, peak_bytes};
use output::Measured;
use plans::Size;

/// Run one large deployment and print what it costs.
#[derive(Parser)]
struct Options {
    /// Number of data centers.
    #[arg(default_value_t = 300, value_parser = value_parser!(u32).range(1..=1_000))]
    data_centers: u32,
    /// Nodes per data center.
    #[arg(default_value_t = 10, value_parser = value_parser!(u32).range(1..=100))]
    nodes: u32,
    /// Number of visitors: by default 1 million, 20 million with --world.
    #[arg(value_parser = value_parser!(u32).range(1..=100_000_000))]
    visitors: Option<u32>,
    /// Virtual time in minutes: by default 10, with --world 60.
    #[arg(value_parser = value_parser!(u32).range(1..=1_440))]
    minutes: Option<u32>,
    /// Simulate a sale on every continent, with a spike, instead of the same calm load everywhere.
    #[arg(long)]
    world: bool,
    /// Repeat with the next seeds until this much CPU time is spent, in seconds. One run of a small
    /// deployment is too short to measure.
    #[arg(long, default_value_t = 0.0)]
    cpu_s_min: f64,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let default = if options.world {
        (20_000_000, 60)
    } else {
        (1_000_000, 10)
    };
    let size = Size {
        data_centers: options.data_centers,
        nodes: options.nodes,
        visitors: options.visitors.unwrap_or(default.0),
        minutes: options.minutes.unwrap_or(default.1),
    };
    let scenario = if options.world {
        plans::global_sale(size)
    } else {
        plans::even(size)
    };
    let measured = measure(size, scenario, &options);
    if options.json {
        println!("{}", measured.json());
    } else {
        println!("{measured}");
    }
    if measured.broken.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn measure(size: Size, mut scenario: Scenario, options: &Options) -> Measured {
    let meter = Meter::start();
    let mut measured = Measured::new(size, scenario.rooms[0].rules.limits);
    loop {
        let outcome = run(&scenario, 0, AllocationKind::Leases, &mut |progress| {
            // A long run prints its progress every virtual minute.
            if options.world && progress.done.0.is_multiple_of(60_000) {
                let (minute, of) = (progress.done.0 / 60_000, progress.length.0 / 60_000);
                let secs = meter.cost().wall_s;
                eprintln!(
                    "minute {minute} of {of}: {} events in {secs:.0} s",
                    progress.events
                );
            }
        });
        measured.add(outcome);
        measured.cost = meter.cost();
        if measured.cost.cpu_s >= options.cpu_s_min {
            break;
        }
        scenario.seed += 1;
    }
    measured.peak_bytes = peak_bytes();
    measured
}
