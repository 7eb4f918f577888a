//! What people and the build server type: the project's own commands, run as `cargo xtask ...`.
//!
//! Nothing here ships. The checks (`tidy`, `layers`) are commands and `#[test]`s at the
//! same time, so that a plain `cargo test` cannot miss them.
#![expect(
    clippy::print_stdout,
    reason = "a command line program for developers answers on standard output"
)]

mod bench;
mod cargo;
mod cluster;
mod counters;
mod deploy;
mod layers;
mod mutations;
mod requirements;
mod sim;
mod steps;
mod stopwatch;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::Parser;

/// The project's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Command {
    /// Run all checks and tests, cheapest first; stop after the first group that fails.
    Test(test::Options),
    /// Look for an order of events in which a promise breaks, in thousands of small simulated
    /// worlds.
    ///
    /// Each seed is a world: a few seats, short sessions, one to three data centers, and faults in
    /// an order of its own (crashes, pauses, bad networks, lost stores, changed limits). Every
    /// promise has a checker. The same seed and code give the same run.
    Sim(sim::Options),
    /// Remove the rules of the protocol one at a time, and see whether a checker of `sim` notices.
    ///
    /// Each file of crates/sim/engine/mutations is a patch that removes one rule. It is applied to
    /// a copy of the workspace, in target/mutations. The seeds of `sim` run there until a promise
    /// breaks: it must be one that the file names.
    Mutations(mutations::Options),
    /// Run real nodes on real stores under load, break something, and see whether the limits hold.
    Cluster(cluster::Options),
    /// Measure how fast something is.
    #[command(subcommand)]
    Bench(bench::What),
    /// Check lengths and habits of the source text.
    Tidy,
    /// Check that crates depend on each other only as the layers allow.
    Layers,
}

fn main() -> ExitCode {
    let done = match Command::parse() {
        Command::Test(options) => test::run(&options),
        Command::Sim(options) => sim::run(&options),
        Command::Mutations(options) => mutations::run(&options),
        Command::Cluster(options) => cluster::run(&options),
        Command::Bench(bench::What::Sim(options)) => bench::run(&options),
        Command::Bench(bench::What::Cluster(options)) => bench::cluster::run(&options),
        Command::Bench(bench::What::Gateway(options)) => bench::gateway::run(&options),
        Command::Bench(bench::What::Limits(options)) => bench::limits::run(&options),
        Command::Tidy => tidy::check(),
        Command::Layers => layers::check(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
