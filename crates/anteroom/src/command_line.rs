//! The command line: which commands there are, and what runs each.

use std::process::ExitCode;
use std::time::Duration;

use anteroom_admin::client::{limits as limits_command, room, status};
use anteroom_config::terminal::tell;
use anteroom_demo as demo;
use anyhow::Context as _;
use clap::{Parser, Subcommand};

use crate::{check, demo_gateways, logging, serve, simulate};

/// A waiting room in front of a web site: at most so many visitors inside at once, at most so many
/// new ones a minute; the rest wait in a fair line and go in by themselves.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Try it:
  anteroom demo                       a crowd against a small shop, on this machine
Rehearse next Friday's rush:
  anteroom simulate flash-sale        how long people would wait, and whether the limits hold
Put it in front of a site:
  anteroom serve --listen 127.0.0.1:8080 --origin http://127.0.0.1:9000 \\
      --total-active-users 200 --new-users-per-minute 200
  anteroom check --config anteroom.toml && anteroom serve --config anteroom.toml
Look at it:
  anteroom status                     every room as a table
  curl http://127.0.0.1:8081/metrics";

#[derive(Debug, Subcommand)]
enum Command {
    /// Show what it does: an origin that slows down, the gateway, and a crowd that outgrows it
    Demo(demo::DemoOptions),
    /// Run the gateway, from flags or a config file
    Serve(Box<serve::ServeOptions>),
    /// Read a config file and print every mistake in it
    Check(check::CheckOptions),
    /// Print the state of a running gateway's rooms
    Status(status::StatusOptions),
    /// Say something about a room to a running gateway
    Room(room::RoomOptions),
    /// Give single clients limits of their own at a running gateway
    Limits(limits_command::LimitsOptions),
    /// Rehearse a rush: what would happen, by the gateway's own code under a simulated crowd
    Simulate(Box<simulate::SimulateOptions>),
}

/// Reads the command line and runs the command.
#[must_use]
pub fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Check(options) => check::run(&options),
        Command::Simulate(options) => simulate::run(&options),
        Command::Demo(options) => block_on(show(options)),
        Command::Serve(options) => block_on(serve::run(*options)),
        Command::Status(options) => block_on(status::run(options)),
        Command::Room(options) => block_on(room::run(options)),
        Command::Limits(options) => block_on(limits_command::run(options)),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            tell(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Runs a command that waits for the network.
fn block_on(command: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    let result = runtime.block_on(command);
    // A thread that hangs in a disk must not keep the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

async fn show(options: demo::DemoOptions) -> anyhow::Result<ExitCode> {
    let _flush = logging::init(&logging::LogOptions::quiet())?;
    let summary = demo::run(&options, demo_gateways::start).await?;
    Ok(summary.exit_code())
}
