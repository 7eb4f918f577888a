//! The command line: the commands, and the code that runs each.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anteroom_admin::client::{history, limits as limits_command, reload, report, room, status};
use anteroom_demo as demo;
use anyhow::Context as _;
use clap::{CommandFactory as _, Parser, Subcommand};

use crate::terminal::{Messages, Output};
use crate::{check, demo_gateways, help, logging, serve, simulate};

/// Waiting room for web sites: limits the visitors on the site at once and the new visitors per
/// minute. The others wait in a fair queue until it is their turn.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, disable_help_subcommand = true, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Try it:
  anteroom demo                       simulated visitors in front of a small shop, on this machine
Rehearse next Friday's rush:
  anteroom simulate flash-sale        how long visitors would wait, and whether the limits hold
Put it in front of a site:
  anteroom serve --listen 127.0.0.1:8080 --origin http://127.0.0.1:9000 \\
      --total-active-users 200 --new-users-per-minute 200
  anteroom check --config anteroom.toml && anteroom serve --config anteroom.toml
Look at it:
  anteroom status                     every room as a table
  curl http://127.0.0.1:8081/metrics
Read how to do one task:
  anteroom help                       lists the pages, such as three-nodes
  anteroom help three-nodes";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a demo: an origin that slows down, the gateway, and more visitors than the origin bears
    Demo(demo::DemoOptions),
    /// Run the gateway, from flags or a config file
    Serve(Box<serve::ServeOptions>),
    /// Check a config file and print every mistake in it
    Check(check::CheckOptions),
    /// Print the state of a running gateway's rooms
    Status(status::StatusOptions),
    /// Print what happened in a room, minute by minute
    History(history::HistoryOptions),
    /// Print the report of an event: whether the limits held, and how long visitors waited
    Report(report::ReportOptions),
    /// Create, show and change rooms and events of a running gateway
    Room(room::RoomOptions),
    /// Show or change the limits of single clients at a running gateway
    Limits(limits_command::LimitsOptions),
    /// Have a running gateway read its config file again
    Reload(reload::ReloadOptions),
    /// Simulate a rush: how long visitors wait and whether limits hold, with the gateway's own code
    Simulate(Box<simulate::SimulateOptions>),
    /// Print a how-to page, or the help of a command
    Help(help::HelpOptions),
}

/// Reads the command line and runs the command.
#[must_use]
pub fn main() -> ExitCode {
    let (out, err) = (&mut Output, &mut Messages);
    let result = match Cli::parse().command {
        Command::Check(options) => check::run(&options, out, err),
        Command::Simulate(options) => simulate::run(&options, out, err),
        Command::Help(options) => help::run(&options, &Cli::command(), out),
        Command::Demo(options) => block_on(show(options)),
        Command::Serve(options) => block_on(serve::run(*options, err)),
        Command::Status(options) => block_on(status::run(options, out, err)),
        Command::History(options) => block_on(history::run(options, out, err)),
        Command::Report(options) => block_on(report::run(options, out, err)),
        Command::Room(options) => block_on(room::run(options, out, err)),
        Command::Reload(options) => block_on(reload::run(options, out, err)),
        Command::Limits(options) => block_on(limits_command::run(options, out, err)),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            // Whether this can be read or not, the exit code says it.
            let _ = writeln!(err, "error: {error:#}");
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
    // A thread that is stuck in disk I/O must not keep the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

async fn show(options: demo::DemoOptions) -> anyhow::Result<ExitCode> {
    let _flush = logging::init(&logging::LogOptions::quiet())?;
    let summary = demo::run(&options, demo_gateways::start).await?;
    Ok(summary.exit_code())
}
