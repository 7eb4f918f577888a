//! Commands for work on the project: `cargo xtask ...`, for people and build servers.
//!
//! Nothing here ships. The checks `tidy` and `layers` are commands and `#[test]`s, so that a plain
//! `cargo test` runs them, too.
#![expect(
    clippy::print_stdout,
    reason = "a command line program for developers prints to standard output"
)]

mod ahead;
mod bench;
mod cargo;
mod cluster;
mod counters;
mod deploy;
mod layers;
mod mutations;
mod requirements;
mod sim;
mod step;
mod steps;
mod stopwatch;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::Parser;

/// Commands for work on this project.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Command {
    /// Run all checks and tests, cheapest first; stop after the first group that fails.
    Test(test::Options),
    /// Look for an order of events that breaks an invariant, in thousands of small simulated
    /// deployments.
    ///
    /// Each seed is one deployment: a few seats, short sessions, one to three data centers, and
    /// faults in its own order (crashes, pauses, bad networks, unavailable stores, changed limits).
    /// Each invariant has a checker. The same seed and code give the same run.
    Sim(sim::Options),
    /// Remove the rules of the protocol one at a time, and test that a checker of `sim` notices.
    ///
    /// Each file of crates/sim/engine/mutations is a patch that removes one rule. It is applied to
    /// a copy of the workspace, in target/mutations. The seeds of `sim` run there until an
    /// invariant breaks. It must be one that the file names.
    Mutations(mutations::Options),
    /// Run real nodes on real stores under load, inject a fault, and check the limits.
    Cluster(cluster::Options),
    /// Measure performance.
    #[command(subcommand)]
    Bench(bench::Benchmark),
    /// Check the style of the source text.
    Tidy,
    /// Check that crates depend only on crates of lower layers.
    Layers,
}

fn main() -> ExitCode {
    let result = match Command::parse() {
        Command::Test(options) => test::run(&options),
        Command::Sim(options) => sim::run(&options),
        Command::Mutations(options) => mutations::run(&options),
        Command::Cluster(options) => cluster::run(&options),
        Command::Bench(bench::Benchmark::Sim(options)) => bench::run(&options),
        Command::Bench(bench::Benchmark::Cluster(options)) => bench::cluster::run(&options),
        Command::Bench(bench::Benchmark::Far(options)) => bench::example::run("far", &options),
        Command::Bench(bench::Benchmark::Truth(options)) => bench::example::run("truth", &options),
        Command::Bench(bench::Benchmark::Gateway(options)) => bench::gateway::run(&options),
        Command::Bench(bench::Benchmark::Counts(options)) => bench::counts::run(&options),
        Command::Bench(bench::Benchmark::Limits(options)) => bench::limits::run(&options),
        Command::Tidy => tidy::check(),
        Command::Layers => layers::check(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
