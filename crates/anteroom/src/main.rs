//! The `anteroom` command.

use std::process::ExitCode;
use std::time::Duration;

use anteroom::{check, demo, gateway, logging, serve, status};
use clap::{Parser, Subcommand};

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
}

#[expect(
    clippy::print_stderr,
    reason = "errors of a command go to the terminal"
)]
fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let result = match runtime {
        Ok(runtime) => {
            let result = runtime.block_on(run(cli.command));
            // A thread that hangs in a disk must not keep the process.
            runtime.shutdown_timeout(Duration::from_secs(1));
            result
        }
        Err(error) => Err(anyhow::Error::new(error).context("cannot start")),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Demo(options) => {
            let _flush = logging::init(&logging::LogOptions::quiet())?;
            let summary = demo::run(&options, gateway::start_for_demo).await?;
            Ok(summary.exit_code())
        }
        Command::Serve(options) => serve::run(*options).await,
        Command::Check(options) => check::run(&options),
        Command::Status(options) => status::run(options).await,
    }
}
